//! Plans whose steps are texts: a model keeps them to track its progress, and a flow follows one.

mod command;
mod plans;
mod text_plan;
mod tool;

pub use command::{PlanCommand, PlanError};
pub use plans::Plans;
pub use text_plan::{StepStatus, TextPlan, TextStep};
pub use tool::PlanningTool;
