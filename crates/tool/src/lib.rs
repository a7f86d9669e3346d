//! The interface between a tool and its caller: what the author of a tool needs, and nothing else.
//!
//! A [`Tool`] is something that a model can call. Its [`ToolSpec`] holds what a model reads about it, and what
//! a caller has to know to run it. A call is given its arguments as JSON text and a [`CallContext`], and returns
//! a [`ToolOutput`] or a [`ToolError`]. A [`Toolbox`] holds tools by name. [`canonical_tools`] and its
//! siblings write declarations in a canonical form, so that the same tools give the same bytes.
//!
//! The crate is not a set of tools (`foldback-tools` is one), and nothing here calls a tool: there is no
//! model, no loop, no plan, no file, no network and no runtime.
//!
//! ```
//! use foldback_core::ToolDefinition;
//! use foldback_tool::{
//!     CallContext, Effect, Tool, ToolError, ToolFuture, ToolOutput, ToolSpec, Toolbox,
//! };
//! use std::sync::Arc;
//!
//! /// Counts the letters of a text.
//! struct CountLetters {
//!     spec: ToolSpec,
//! }
//!
//! impl CountLetters {
//!     fn new() -> Self {
//!         let spec = ToolSpec::new(ToolDefinition {
//!             name: "count_letters".into(),
//!             description: "How many letters a text has.".into(),
//!             parameters: r#"{
//!                 "type": "object",
//!                 "properties": {"text": {"type": "string"}},
//!                 "required": ["text"]
//!             }"#
//!             .into(),
//!         })
//!         // It changes nothing in the world: it may be retried, and may run beside other calls.
//!         .with_effect(Effect::ReadOnly);
//!         Self { spec }
//!     }
//! }
//!
//! impl Tool for CountLetters {
//!     fn spec(&self) -> &ToolSpec {
//!         &self.spec
//!     }
//!
//!     fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
//!         Box::pin(async move {
//!             // A message that a model reads and can act on.
//!             let wrong = |error| ToolError::arguments(format!("the arguments are wrong: {error}"));
//!             let arguments: serde_json::Value = serde_json::from_str(arguments).map_err(wrong)?;
//!             let Some(text) = arguments["text"].as_str() else {
//!                 return Err(ToolError::arguments("`text` is missing; a string was expected"));
//!             };
//!             // Long work checks whether anybody still waits for it.
//!             if context.cancelled.is_cancelled() {
//!                 return Err(ToolError::permanent("the call was cancelled"));
//!             }
//!             Ok(ToolOutput::text(text.chars().count().to_string()))
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let toolbox = Toolbox::new([Arc::new(CountLetters::new()) as Arc<dyn Tool>])?;
//! let tool = toolbox.get("count_letters").expect("it was put in");
//! let output = tool.call(r#"{"text": "杭州"}"#, &CallContext::default()).await?;
//! assert_eq!(output.data.text, "2");
//!
//! let error = tool.call("{}", &CallContext::default()).await.unwrap_err();
//! assert_eq!(error.to_string(), "`text` is missing; a string was expected");
//! # Ok(())
//! # }
//! ```

mod cancellation;
mod canonical;
mod context_handle;
mod error;
mod extensions;
mod function_tool;
mod hand_over;
mod output;
mod spec;
mod tool;
mod toolbox;

pub use cancellation::CancellationToken;
pub use canonical::{CanonicalError, canonical_json, canonical_schema, canonical_tools};
pub use context_handle::{ContextHandle, Requests};
pub use error::{FailureKind, ToolError, ToolErrorKind};
pub use extensions::Extensions;
pub use function_tool::FunctionTool;
pub use hand_over::handed_bytes;
pub use output::{Data, ToolOutput};
pub use spec::{Concurrency, Effect, Language, ToolSpec};
pub use tool::{CallContext, Tool, ToolFuture};
pub use toolbox::{DuplicateTool, Toolbox};
