//! The answer of `delegate`: each item with its result.

use super::assignment::Assignment;
use crate::todo::short_name;
use foldback_core::{ItemState, TodoId, TodoItem, quoted};
use foldback_tool::{ToolError, ToolOutput};
use serde::Serialize;

/// Said if there are no references.
const WORDS_ONLY: &str =
    "These words are all there is: nothing else of the sub-agents' work can be read.";

#[derive(Serialize)]
struct ItemsReport<'a> {
    /// The states come before the words, which may be too long to be shown whole.
    states: String,
    items: Vec<ItemReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct ItemReport<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    state: ItemState,
    result: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<String>,
    /// References in the result that lead nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// Returns the items with their results, as JSON. If none was completed, the call has failed.
pub(super) fn report(
    parent: &TodoId,
    items: &[TodoItem],
    assignments: &[Assignment],
) -> Result<ToolOutput, ToolError> {
    let shown = items.iter().zip(assignments).map(|(item, assignment)| ItemReport {
        id: short_name(parent, &item.id),
        name: assignment.given_name.as_deref(),
        state: item.state,
        result: item.result.as_deref().unwrap_or_default(),
        references: item.references.iter().map(ToString::to_string).collect(),
        unreadable: assignment.unreadable.iter().map(ToString::to_string).collect(),
    });
    let keeps_nothing = items.iter().all(|item| item.references.is_empty());
    let states =
        items.iter().map(|item| format!("{}={}", short_name(parent, &item.id), item.state));
    let states = states.collect::<Vec<_>>().join(" ");
    let report =
        ItemsReport { states, items: shown.collect(), note: keeps_nothing.then_some(WORDS_ONLY) };
    if !items.iter().any(|item| item.state == ItemState::Completed) {
        let lines = report.items.iter().map(|item| {
            let read = if item.references.is_empty() {
                String::new()
            } else {
                format!(" (read {})", item.references.join(", "))
            };
            let name = item.name.map(|name| format!(" ({name})")).unwrap_or_default();
            format!("\n- {}{name}: {}{read}", item.id, quoted(item.result))
        });
        let states = &report.states;
        let message = format!("no item was completed: {states}{}", lines.collect::<String>());
        return Err(ToolError::permanent(message));
    }
    let json = serde_json::to_string(&report).map_err(|error| {
        ToolError::permanent(format!("the results cannot be written as JSON: {error}"))
    })?;
    Ok(ToolOutput::json(json))
}
