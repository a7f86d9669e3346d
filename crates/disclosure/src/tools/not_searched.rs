//! What an answer says about what was not searched.

use crate::cut::one_line;
use crate::ledger::shown_id;
use foldback_blockstore::{NotSearched, Unsearched, UnsearchedPart};

/// How many parts the text of an answer names; the structured one names more.
const NAMED: usize = 4;

/// Returns the last line of an answer: `Not searched: store://12-abcd is damaged.` Empty if everything
/// was searched.
pub(crate) fn line(not_searched: &NotSearched) -> String {
    let NotSearched { parts, more } = not_searched;
    if parts.is_empty() {
        return String::new();
    }
    let mut said: Vec<String> = parts.iter().take(NAMED).map(clause).collect();
    let more = more + parts.len().saturating_sub(NAMED) as u64;
    if more > 0 {
        said.push(format!("{more} more"));
    }
    format!("Not searched: {}.", said.join("; "))
}

/// Returns the line of a block that answers but cannot be shown.
pub(crate) fn unshown(id: &str, detail: &str) -> String {
    format!("{id} cannot be shown, it is damaged: {}\n", one_line(detail, 80))
}

/// Returns a part under the name that the reader knows.
fn clause(part: &Unsearched) -> String {
    match &part.part {
        UnsearchedPart::Block(id) if part.todo.is_none() => {
            format!("{} {}", shown_id(id), part.why_said())
        }
        _ => part.to_string(),
    }
}
