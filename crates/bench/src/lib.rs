//! What foldback saves, finds and cuts, measured on your own conversations; `foldback bench` prints it.
//!
//! - [`savings`]: what a model would be sent under foldback and under what others do, and what of
//!   that which was needed later was still to be had.
//! - [`gateway`]: what a conversation costs through the gateway, beside sending it directly.
//! - [`retrieval`]: how much of a question's evidence a search brings.
//! - [`segmentation`]: how well changes of topic are found.
//!
//! What measures foldback for its makers is in `foldback-lab`.
//!
//! A measurement takes [`Case`]s and gives the same figures each time, times aside: no clock, no
//! random number and no order of threads is part of a result.
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
