//! Plans as one graph: what a model writes, lowered, checked, bound and scheduled.
//!
//! A [`Plan`] is a set of numbered [`Step`]s, each with its dependences. Three written forms are
//! lowered to it: OnePlan JSON ([`parse_one_plan`]), `<execute_tools>` XML ([`parse_execute_tools`])
//! and native tool calls ([`lower_calls`]). A [`Validator`] reports everything that is wrong with it at
//! once, before anything runs. A [`Schedule`] is given what happens to the steps and says which may
//! start; [`Catalog::bind`] fills in their references. [`Replans`] and [`Progress`] say when to plan
//! again, and how a new plan joins the work that was done.
//!
//! It is not an executor: it runs nothing, and knows no model, runtime, clock or file. The same plan
//! and the same outcomes give the same schedule, in whatever order steps end.
//!
//! ```
//! use foldback_core::ToolDefinition;
//! use foldback_planner::{
//!     Action, Catalog, Intent, Limits, Schedule, StepResult, Validator, parse_one_plan,
//! };
//! use foldback_tool::{Data, ToolSpec};
//! use std::collections::BTreeMap;
//!
//! let tool = |name: &str| {
//!     let parameters = r#"{"type": "object"}"#.to_owned();
//!     ToolSpec::new(ToolDefinition { name: name.to_owned(), description: String::new(), parameters })
//! };
//! let catalog: Catalog = ["search_city", "book_flight"].map(tool).into_iter().collect();
//!
//! // What the model wrote.
//! let written = r#"{"action_plan": {
//!     "step1": {"function": "search_city", "args": {"query": "春晚分会场"}},
//!     "step2": {"function": "book_flight", "args": {"to": "$$step1.result$$"}, "dependence": [1]}
//! }}"#;
//! let Intent::Plan(mut plan) = parse_one_plan(written)?.intent else { panic!("a plan") };
//! assert!(Validator::new(&catalog).plan(&mut plan).is_empty());
//!
//! // What may start, and with which arguments.
//! let mut schedule = Schedule::new(&plan)?;
//! let mut results = BTreeMap::new();
//! let mut called = Vec::new();
//! while let Some(id) = schedule.next_ready() {
//!     schedule.start(id)?;
//!     let Some(Action::Call { function, arguments }) = plan.step(id).map(|step| &step.action) else {
//!         break;
//!     };
//!     let most_bytes = Limits::default().bound_bytes;
//!     let bound = catalog.bind(function, arguments, &results, most_bytes)?;
//!     called.push(format!("{function} {bound}"));
//!     let data = Data { text: "沈阳".to_owned(), structured: None };
//!     results.insert(id, StepResult::Success { data });
//!     schedule.finish(id)?;
//! }
//! assert!(schedule.is_done());
//! assert_eq!(called, [r#"search_city {"query":"春晚分会场"}"#, r#"book_flight {"to":"沈阳"}"#]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bind;
mod catalog;
mod encode;
mod excerpt;
mod execute_tools;
mod finding;
mod graph;
mod json;
mod limits;
mod native;
mod one_plan;
mod parse_error;
mod plan;
mod position;
mod reference;
mod replan;
mod schedule;
mod schema;
mod step;
mod step_result;
mod template;
mod tool_results;
mod validation;

pub use bind::{BindError, Results};
pub use catalog::{ArgumentsError, Catalog};
pub use encode::Refusal;
pub use execute_tools::{ExecuteTools, Expressed, parse_execute_tools, write_execute_tools};
pub use finding::{Finding, FindingKind, Findings, Position};
pub use graph::{CriticalPath, Cycle, Graph};
pub use limits::{LimitError, Limits, Quantity};
pub use native::{NativeCalls, lower_calls};
pub use one_plan::{
    Intent, OnePlan, OnePlanEvent, OnePlanReader, WriteError, parse_one_plan, write_one_plan,
};
pub use parse_error::ParseError;
pub use plan::{Form, Plan};
pub use reference::{PathSegment, Reference, Spelling};
pub use replan::{Executed, Merged, Progress, ReplanReason, Replans, Round, same_arguments};
pub use schedule::{Schedule, ScheduleError, StepState};
pub use step::{Action, FailurePolicy, Step, StepId};
pub use step_result::{Failure, StepResult};
pub use template::{Piece, Template};
pub use tool_results::render_tool_results;
pub use validation::Validator;
