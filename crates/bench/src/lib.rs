//! Measures what foldback saves, finds and cuts on your own conversations; `foldback bench` prints the
//! results.
//!
//! - [`savings`]: what a model would be sent under foldback and under other approaches, and how much of
//!   what was needed later was still available.
//! - [`gateway`]: what a conversation costs through the gateway, compared with sending it directly.
//! - [`retrieval`]: how much of a question's evidence a search finds.
//! - [`segmentation`]: how well changes of topic are found.
//!
//! The measurements for foldback's developers are in `foldback-lab`.
//!
//! A measurement takes [`Case`]s and gives the same figures each time, except for times: no clock, no
//! random number and no order of threads influences a result.
//!
//! ```
//! use foldback_bench::Case;
//! use foldback_bench::savings::{Config, measure};
//!
//! let line = r#"{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}"#;
//! let conversation = foldback_transcript::read_bytes(line.as_bytes())?.next().ok_or("nothing")??;
//! let case = Case::new("greeting".to_owned(), "talks.jsonl".to_owned(), conversation);
//! let savings = measure(&[case], &Config::default(), &|_| ())?;
//! assert_eq!(savings.conversations[0].messages, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod case;
mod counts;
mod driven;
mod error;
mod means;
mod measured_context;
mod meter;
mod quantile;
mod sheet;
mod usage;

pub mod gateway;
pub mod report;
pub mod retrieval;
pub mod savings;
pub mod segmentation;

pub use calls::Calls;
pub use case::{Case, Kind, Question};
pub use counts::Counts;
pub use driven::Driven;
pub use error::BenchError;
pub use means::Means;
pub use measured_context::measured_context;
pub use meter::Meter;
pub use quantile::quantile;
pub use sheet::Sheet;
pub use usage::Usage;
