//! Runs the steps of plans: together where they may, once each, within bounds.

mod call;
mod claim;
mod consent;
mod event;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod executor;
mod lanes;
mod run;
mod settings;
mod status;

pub(crate) use call::has_kind;
pub(crate) use claim::Claim;
pub use event::{Event, Trace, Trigger};
pub use executor::{CallReport, Executor, Outcome, RunError, RunOptions};
pub use run::Run;
pub use settings::{Eager, Quota, Retry, Settings};
