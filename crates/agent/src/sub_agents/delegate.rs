//! `delegate`: the model gives items of its todo list to sub-agents.

use super::SubAgents;
use super::delegation::Delegation;
use crate::own_tool::{context_of, read, spec};
use crate::todo::short_name;
use foldback_core::TodoId;
use foldback_tool::{CallContext, ContextHandle, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use std::time::Duration;

/// The name of the tool.
pub(super) const NAME: &str = "delegate";

const DESCRIPTION: &str = "Gives items of your todo list to sub-agents, each with a conversation of its own. Items that wait for \
     nothing run in parallel. You get a short conclusion from each, and the names of what can be read of \
     its work. Use it for parts that stand on their own and would fill your conversation.";

const PARAMETERS: &str = r#"{
    "type": "object",
    "required": ["items"],
    "additionalProperties": false,
    "properties": {
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["id", "task"],
                "additionalProperties": false,
                "properties": {
                    "id": {"type": "string", "minLength": 1, "description": "An item of the list; a new one is added."},
                    "task": {"type": "string", "minLength": 1, "description": "All that the sub-agent gets: it sees nothing of your conversation."},
                    "title": {"type": "string", "description": "A few words for the list; by default the beginning of the task."},
                    "depends_on": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Ids of the items that come before it; it gets their results."
                    },
                    "references": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Parts of your conversation that it may read: b_003, store://2-k4qd"
                    },
                    "tools": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Names or families (file_) of the tools it needs; all if left out."
                    }
                }
            }
        }
    }
}"#;

const OUTPUT: &str = r#"{
    "type": "object",
    "properties": {
        "states": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "name": {"type": "string"},
                    "state": {"type": "string"},
                    "result": {"type": "string"},
                    "references": {"type": "array", "items": {"type": "string"}},
                    "unreadable": {"type": "array", "items": {"type": "string"}}
                }
            }
        },
        "note": {"type": "string"}
    }
}"#;

#[derive(Deserialize)]
struct Arguments {
    items: Vec<Ordered>,
}

/// An item as the model delegates it.
#[derive(Deserialize)]
pub(super) struct Ordered {
    pub(super) id: String,
    pub(super) task: String,
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) depends_on: Vec<String>,
    #[serde(default)]
    pub(super) references: Vec<String>,
    pub(super) tools: Option<Vec<String>>,
}

/// The tool.
pub(super) struct Delegate {
    spec: ToolSpec,
    sub_agents: SubAgents,
    /// The items in progress, in all calls, each with the context that its list belongs to: one agent may
    /// work in several stores, and for several runs.
    working: Mutex<Vec<(ContextHandle, TodoId)>>,
}

impl Delegate {
    pub(super) fn new(sub_agents: SubAgents) -> Self {
        let spec = spec(NAME, DESCRIPTION, PARAMETERS)
            // The effects of a sub-agent are in the journal of its own run.
            .with_effect(Effect::Idempotent)
            .with_output(OUTPUT);
        Self { spec, sub_agents, working: Mutex::default() }
    }

    async fn delegate(&self, arguments: &str, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let Arguments { items } = read(arguments)?;
        let context = context_of(call, NAME)?;
        let mut delegation = Delegation::plan(&self.sub_agents, call, context, items).await?;
        let _claim = self.claim(context, delegation.ids())?;
        delegation.prepare().await?;
        delegation.run().await
    }

    /// Prevents these items from being given to two sub-agents at once.
    fn claim(&self, context: &ContextHandle, ids: Vec<TodoId>) -> Result<Claim<'_>, ToolError> {
        let mut working = self.working.lock();
        let is_worked_on =
            |id: &TodoId| working.iter().any(|(of, item)| item == id && of.is_same(context));
        if let Some(id) = ids.iter().find(|id| is_worked_on(id)) {
            let name = short_name(context.todo(), id);
            let message = format!(
                "a sub-agent is already working on item {name}; wait for its result, or give the work an \
                 item of its own"
            );
            return Err(ToolError::arguments(message));
        }
        working.extend(ids.iter().map(|id| (context.clone(), id.clone())));
        Ok(Claim { delegate: self, context: context.clone(), ids })
    }
}

/// Items that count as in progress as long as this value exists.
struct Claim<'d> {
    delegate: &'d Delegate,
    context: ContextHandle,
    ids: Vec<TodoId>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut working = self.delegate.working.lock();
        working.retain(|(of, item)| !(of.is_same(&self.context) && self.ids.contains(item)));
    }
}

impl Tool for Delegate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns an unlimited time: the sub-agents have limits of their own.
    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        Some(Duration::MAX)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.delegate(arguments, context).boxed()
    }
}
