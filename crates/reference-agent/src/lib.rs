//! The agent of `foldback run`, as a library for your own program.
//!
//! A [`ReferenceAgent`] builds an agent from a model, tools for a workspace, a todo list, a person to ask,
//! sub-agents, research in documents, and any tools that it is given, including those of MCP servers. The result
//! is a [`ReadyAgent`], which works on a task by a strategy, in a context of any policy. `foldback run` is this
//! agent with a terminal around it.
//!
//! The loop itself is in `foldback-agent`. This crate has no terminal and prints nothing, and it reaches the
//! network only through the model and the tools that it is given. Models over HTTP come from
//! `foldback-providers`, documents from `foldback-documents`, and tools of MCP servers from `foldback-mcp`.
//!
//! The crates that a program needs to use it are re-exported: [`agent`], [`deep_search`], [`flow`],
//! [`foldback`], [`llm`], [`planner`], [`policies`], [`tool`] and [`tools`].
//!
//! ```
//! use foldback_reference_agent::ReferenceAgent;
//! use foldback_reference_agent::agent::Task;
//! use foldback_reference_agent::foldback::core::{TodoId, ToolCall};
//! use foldback_reference_agent::foldback::{Memory, Options};
//! use foldback_reference_agent::llm::ScriptedModel;
//! use foldback_reference_agent::tools::Permissions;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("潮汐.md"), "杭州湾: 6.4 m\n")?;
//!
//! // A script stands in for the model: it reads a file, and then it answers.
//! let read = ToolCall::new("c1", "file_read", r#"{"path": "潮汐.md"}"#);
//! let model = Arc::new(ScriptedModel::new([vec![read].into(), "6.4 m.".into()]));
//!
//! let permissions = Permissions::in_workspace(folder.path());
//! let agent = ReferenceAgent::new(model).in_workspace(permissions).with_strategy_named("react").build()?;
//! let memory = Memory::in_memory(Options::default())?;
//! let mut context = memory.session(&TodoId::new("tides")?)?;
//! let task = Task::new("tides", "How high is high water at 杭州湾?");
//! let report = agent.run(&mut context, &task).await?;
//! assert_eq!(report.answer(), Some("6.4 m."));
//! # Ok(())
//! # }
//! ```

mod calculator;
mod context_reader;
mod error;
mod flow_executor;
mod named_tool;
mod ready_agent;
mod reference_agent;
mod strategies;
mod tool_families;
mod workspace_tools;

pub use calculator::Calculator;
pub use error::ReferenceAgentError;
pub use flow_executor::FlowExecutor;
pub use ready_agent::ReadyAgent;
pub use reference_agent::ReferenceAgent;
pub use strategies::{STRATEGIES, strategy_name};
pub use tool_families::{BUILT_IN, check_tool_families};

pub use foldback;
pub use foldback_agent as agent;
pub use foldback_deep_search as deep_search;
pub use foldback_flow as flow;
pub use foldback_llm as llm;
pub use foldback_planner as planner;
pub use foldback_policies as policies;
pub use foldback_tool as tool;
pub use foldback_tools as tools;
