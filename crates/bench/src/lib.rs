//! The measurements behind foldback's claims, as a library; `foldback bench` prints them.
//!
//! - [`savings`]: what a model would be sent under foldback and under what others do, and what of
//!   that which was needed later was still to be had.
//! - [`retrieval`]: how much of a question's evidence a search brings.
//! - [`segmentation`]: how well changes of topic are found.
//! - [`agent`]: one task, done by one agent with real tools under several context policies.
//! - [`index`]: how quick the store is, beside others on the same files, and as it grows.
//! - [`plans`]: how plans run, what they save against one step after the other, and whether mistakes
//!   in them are seen.
//!
//! A measurement takes [`Case`]s and gives the same figures each time, times aside: no clock, no
//! random number and no order of threads is part of a result.

mod calls;
mod case;
mod driven;
mod error;
mod means;
mod meter;
mod policy;
mod quantile;
mod sheet;

pub mod agent;
pub mod index;
pub mod plans;
pub mod report;
pub mod retrieval;
pub mod savings;
pub mod segmentation;

pub use calls::Calls;
pub use case::{Case, Kind, Question};
pub use driven::Driven;
pub use error::BenchError;
pub use meter::{CACHE_BLOCK, CACHE_LEAST, Counts, Meter, Usage};
pub use policy::Policy;
pub use sheet::Sheet;
