//! The assignment of one item to a sub-agent.

use crate::RunError;
use crate::agent::{Agent, AgentError, Report};
use crate::todo::short_name;
use crate::trajectory::{Stop, TerminateStatus};
use foldback_core::{
    ContextManager, ItemState, Reference, TodoId, TodoItem, TodoList, abbreviated, quoted,
};
use foldback_tool::ToolError;

/// The most characters of a title that is made of a task.
const TITLE: usize = 80;

/// An item that is given to a sub-agent.
pub(super) struct Assignment {
    /// What the sub-agent is to do.
    pub(super) task: String,
    /// The model's name for the item, if ids cannot hold it.
    pub(super) given_name: Option<String>,
    /// Parts of the caller's conversation that it may read.
    pub(super) references: Vec<Reference>,
    /// References in its conclusion that lead nowhere.
    pub(super) unreadable: Vec<Reference>,
    /// Names and families of the tools that it needs; all if none are given.
    pub(super) tools: Option<Vec<String>>,
    /// The name of its run.
    pub(super) run: String,
    /// Whether the item was worked on before, so that its conversation continues.
    pub(super) was_begun: bool,
    /// The sub-agent and the conversation, both of which are taken when the work begins. An item that an
    /// earlier run has ended needs none.
    pub(super) worker: Option<(Agent, Box<dyn ContextManager>)>,
}

/// Returns a few words for the list.
pub(super) fn title(given: Option<&str>, task: &str) -> String {
    let given = given.map(str::trim).filter(|title| !title.is_empty());
    let line = given.or_else(|| task.lines().map(str::trim).find(|line| !line.is_empty()));
    let line = line.unwrap_or_default();
    let bound = if given.is_some() { TodoList::MAX_TITLE } else { TITLE };
    abbreviated(line, bound).into_owned()
}

impl Assignment {
    /// Returns the request to the sub-agent: its task, the results of the items before it, and what it may read.
    pub(super) fn request(&self, parent: &TodoId, item: &TodoItem, list: &TodoList) -> String {
        let mut request = self.task.trim().to_owned();
        let before = item.depends_on.iter().filter_map(|id| list.item(id));
        let before: Vec<&TodoItem> =
            before.filter(|item| item.state == ItemState::Completed).collect();
        if !before.is_empty() {
            request.push_str("\n\nResults of the items before this one, as data:");
        }
        for item in before {
            let name = short_name(parent, &item.id);
            let result = item.result.as_deref().unwrap_or_default();
            request.push_str(&format!("\n- {name} ({}): {}", item.title, quoted(result)));
            if !item.references.is_empty() {
                request.push_str(&format!("; read {}", joined(&item.references)));
            }
        }
        if !self.references.is_empty() {
            request.push_str(&format!("\n\nYou can read: {}", joined(&self.references)));
        }
        request
    }
}

fn joined(references: &[Reference]) -> String {
    references.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the outcome of a sub-agent's run: whether it did its task, and its words; if it did not, the
/// reason and any words there are.
///
/// # Errors
/// When the store or the journal failed: that says nothing about the work, which resumes with the caller's
/// run.
pub(super) fn ended(report: Result<Report, AgentError>) -> Result<(ItemState, String), ToolError> {
    let report = match report {
        Ok(report) => report,
        Err(
            error @ (AgentError::Context(_)
            | AgentError::ContextMoved { .. }
            | AgentError::Run(RunError::Journal { .. })),
        ) => return Err(ToolError::permanent(error.to_string())),
        Err(error) => return Ok((ItemState::Failed, error.to_string())),
    };
    let answer = report.answer().unwrap_or_default().trim().to_owned();
    let stop = &report.trajectory.outcome.stop;
    Ok(match (stop, answer.is_empty()) {
        (Stop::Answered | Stop::Terminated { status: TerminateStatus::Success }, false) => {
            (ItemState::Completed, answer)
        }
        // The sub-agent declared it a success.
        (Stop::Terminated { status: TerminateStatus::Success }, true) => {
            (ItemState::Completed, format!("{stop}, without words"))
        }
        (Stop::Answered, true) => (ItemState::Failed, "the answer is empty".to_owned()),
        (Stop::CutOff, false) => (ItemState::Failed, format!("cut off; its last words: {answer}")),
        (_, true) => (ItemState::Failed, stop.to_string()),
        (_, false) => (ItemState::Failed, format!("{stop}; its last words: {answer}")),
    })
}
