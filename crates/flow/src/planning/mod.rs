//! Plans whose steps are texts: what a model keeps to know where it stands, and what a flow goes by.

mod command;
mod plans;
mod text_plan;
mod tool;

pub use command::{PlanCommand, PlanError};
pub use plans::Plans;
pub use text_plan::{StepStatus, TextPlan, TextStep};
pub use tool::PlanningTool;
