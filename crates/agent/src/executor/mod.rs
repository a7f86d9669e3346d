//! The executor, which runs the steps of plans: in parallel if they may, once each, within limits.

mod call;
mod claim;
mod consent;
mod error;
mod event;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod executor;
mod lanes;
mod outcome;
mod run;
mod run_options;
mod settings;
mod status;

pub(crate) use call::has_kind;
pub(crate) use claim::Claim;
pub use error::RunError;
pub use event::{Event, Trace, Trigger};
pub use executor::Executor;
pub use outcome::{CallReport, Outcome};
pub use run::Run;
pub use run_options::RunOptions;
pub use settings::{Eager, Quota, Retry, Settings};
