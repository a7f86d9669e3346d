//! Tools for files: read, write, edit, list, search.

mod bounds;
mod edit;
mod globs;
mod grep;
mod list;
mod near_miss;
mod read;
mod text;
mod walk;
mod write;

use crate::{FilePermissions, Workspace};
use bounds::{Bounds, Cut};
use foldback_core::{HandOver, PayloadRef, ToolDefinition};
use foldback_tool::{
    CallContext, Concurrency, Effect, Tool, ToolError, ToolFuture, ToolOutput, ToolSpec,
};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Returns the tools for the files of a workspace that its folders and these permissions allow.
pub(crate) fn tools(
    workspace: &Arc<Workspace>,
    permissions: &FilePermissions,
) -> Vec<Arc<dyn Tool>> {
    let writes = !permissions.write.is_empty();
    let reads = writes || !permissions.read.is_empty();
    let permitted = KINDS.iter().filter(|kind| match kind.effect {
        Effect::ReadOnly => reads,
        _ => writes,
    });
    permitted
        .map(|kind| {
            let tool = FileTool {
                spec: kind.spec(),
                run: kind.run,
                workspace: Arc::clone(workspace),
                permissions: permissions.clone(),
            };
            Arc::new(tool) as Arc<dyn Tool>
        })
        .collect()
}

/// One of the tools: what a model reads about it, and what it does. Each has its own module.
struct Kind {
    name: &'static str,
    description: &'static str,
    /// The JSON schema of its arguments.
    parameters: &'static str,
    /// The JSON schema of its structured answer, if it gives one.
    output: Option<&'static str>,
    /// The argument that a call's body is for.
    primary: &'static str,
    effect: Effect,
    run: Run,
}

type Run = fn(&Workspace, &Bounds, &str) -> Result<ToolOutput, ToolError>;

/// The way to hand a call the contents of references, if its arguments may name any.
type Handing = Option<Arc<dyn HandOver>>;

const KINDS: [Kind; 5] = [edit::KIND, grep::KIND, list::KIND, read::KIND, write::KIND];

impl Kind {
    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(ToolDefinition {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: self.parameters.to_owned(),
        });
        spec.output = self.output.map(str::to_owned);
        spec.primary = Some(self.primary.to_owned());
        spec.effect = self.effect;
        // The content of a file says nothing about the call.
        spec.answers_data = true;
        // Tools that write run alone and in the order of the calls, so that two writes of one file give
        // the same result each time, and a read sees the file before or after a write, never in between.
        spec.concurrency = match self.effect {
            Effect::ReadOnly => Concurrency::Parallel,
            _ => Concurrency::Exclusive,
        };
        spec
    }
}

struct FileTool {
    spec: ToolSpec,
    run: Run,
    workspace: Arc<Workspace>,
    permissions: FilePermissions,
}

impl Tool for FileTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        // A call ends by itself once its time is over; this limit is for a disk that does not answer.
        Some(Duration::from_secs(self.permissions.time_s).saturating_mul(2))
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        let (run, workspace) = (self.run, Arc::clone(&self.workspace));
        let arguments = arguments.to_owned();
        Box::pin(async move {
            let may_name =
                self.spec.effect != Effect::ReadOnly && arguments.contains(PayloadRef::SCHEME);
            // If nothing is stored, a text that only looks like a reference is written as it is.
            let handing = if may_name { context.hand_over().await.ok() } else { None };
            let bounds = Bounds::new(&self.permissions, context.cancelled.clone(), handing);
            let work = move || run(&workspace, &bounds, &arguments);
            tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|_| Err(ToolError::permanent("the tool failed; try another way")))
        })
    }
}

/// Parses the arguments of a call.
fn arguments<T: DeserializeOwned>(arguments: &str) -> Result<T, ToolError> {
    serde_json::from_str(arguments)
        .map_err(|error| ToolError::arguments(format!("the arguments do not fit: {error}")))
}
