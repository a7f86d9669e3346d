//! How plans run: whether a schedule wastes time, what one plan saves against one step after the
//! other, and whether mistakes in plans are seen.
//!
//! [`Recorded`] reads plans that others have published, [`generated`] makes more of known shapes.
//! [`measure`] runs them all: on a clock that stands still while something works, so that a second
//! of a tool costs nothing and each millisecond of waiting for nothing is seen, and for what the
//! executor itself takes on the clock of the wall. What judges a run (the longest way, the
//! arguments that a tool has to be given) is worked out here, apart from the code that is judged.

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
