//! How plans run: whether a schedule wastes time, what one plan saves compared with working step by
//! step, and whether mistakes in plans are detected.
//!
//! [`Recorded`] reads published plans, [`generated()`] generates more of known shapes. [`measure()`] runs
//! them all: on a paused clock, so that a second of a tool costs nothing and each millisecond of
//! needless waiting shows, and in wall-clock time for the executor's own overhead. The reference values
//! (the critical path, the arguments that a tool must be given) are computed here, independently of the
//! code under test.

mod bfcl;
mod gold;
mod nestful;
mod parallel_qa;
mod python_call;
mod recorded;

mod closed_form;
mod dag;
mod generated;
mod mutation;

mod clock;
mod form;
mod makespan;
mod mistakes;
mod overhead;
mod peer;
mod strategy;
mod streaming;
mod stub;

mod measure;
mod page;
mod result;
mod sheets;

pub use closed_form::{ClosedForm, MODEL_TIMES};
pub use dag::{Dag, DagKind, DagStep, Dags, LADDER, tool_times};
pub use generated::{Family, SIZES, generated, plan};
pub use gold::{GoldPlan, PlanSet};
pub use measure::{Config, measure};
pub use mutation::Mutation;
pub use peer::{BegunCall, PeerRun, PeerTime};
pub use python_call::{PythonCall, PythonCallError};
pub use recorded::{LeftOut, Recorded};
pub use result::{
    AtModelTime, Forms, MutationFigures, Overhead, Peer, PeerRow, Placeholders, PlanFigures, Plans,
    SetFigures, Streaming, TokensByCalls, Totals, Way,
};
