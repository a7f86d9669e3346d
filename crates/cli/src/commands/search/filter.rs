//! Which blocks a search looks into, and what is said if it finds none.

use super::Search;
use crate::error::CliError;
use crate::walk;
use foldback::Memory;
use foldback_core::{BlockType, Timestamp};
use std::path::Path;

pub(super) fn block_type(name: &str) -> Result<BlockType, String> {
    let all = [BlockType::ToolCall, BlockType::Qa, BlockType::Chat];
    let found = all.into_iter().find(|known| known.as_str() == name);
    found.ok_or_else(|| "expected a block type: tool_call, qa or chat".to_owned())
}

/// Reads a time; of a day, its first moment.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    let expected = "expected a time such as 2025-01-01 or 2025-01-01T10:00:00Z, or 2025-01-01 10:00:00 for UTC";
    Timestamp::parse(text).ok_or_else(|| expected.to_owned())
}

/// Reads a time; of a day, its last moment.
pub(super) fn until(text: &str) -> Result<Timestamp, String> {
    const DAY: i64 = 86_400_000;
    let at = time(text)?;
    let is_day = !text.trim().contains(['T', 't', ' ', ':']);
    Ok(if is_day { Timestamp(at.0.saturating_add(DAY - 1)) } else { at })
}

/// Returns what is said of a search that found nothing.
pub(super) fn nothing_found(search: &Search, memory: &Memory) -> Result<String, CliError> {
    if excludes_all(memory, search.source.as_deref(), search.folder().as_deref())? {
        let flags =
            named([("--source", search.source.is_some()), ("--folder", search.folder.is_some())]);
        return Ok(format!("nothing was searched: no todo passes {flags}"));
    }
    let more = if search.all { "" } else { "; --all shows the nearest blocks" };
    let flags = named([
        ("--type", search.block_type.is_some()),
        ("--since", search.since.is_some()),
        ("--until", search.until.is_some()),
    ]);
    if !flags.is_empty() {
        return Ok(format!(
            "nothing was found among the blocks that pass {flags}; try other words, or search without{more}"
        ));
    }
    let or = match &search.todo {
        Some(todo) => format!(", or `foldback blocks --todo {todo}`"),
        None => " or `foldback todos`".to_owned(),
    };
    Ok(format!("nothing was found; try other words, a name{or}{more}"))
}

/// Returns the flags that are given, as a list.
fn named<const N: usize>(flags: [(&str, bool); N]) -> String {
    let given: Vec<_> = flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0).collect();
    given.join(" and ")
}

/// Returns whether no todo is of this source with work in or below this folder.
fn excludes_all(
    memory: &Memory,
    source: Option<&str>,
    folder: Option<&Path>,
) -> Result<bool, CliError> {
    if source.is_none() && folder.is_none() {
        return Ok(false);
    }
    for todo in walk::todos(memory) {
        // The origin of a todo that cannot be read is unknown.
        let origin = memory.conversations().info(&todo?).unwrap_or_default().origin;
        let is_meant = source.is_none_or(|source| origin.is_of_source(source))
            && folder.is_none_or(|folder| origin.is_in_folder(folder));
        if is_meant {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_counts_to_its_end() {
        let ends = |text: &str| until(text).unwrap().to_rfc3339();
        assert_eq!(ends(" 2025-01-31 "), "2025-01-31T23:59:59.999Z");
        assert_eq!(ends("2025-01-31 10:00:00"), "2025-01-31T10:00:00Z");
        assert_eq!(ends("2025-01-31T10:00+01:00"), "2025-01-31T09:00:00Z");
        assert_eq!(time("2025-01-31").unwrap().to_rfc3339(), "2025-01-31T00:00:00Z");
        assert!(until("昨天").unwrap_err().contains("2025-01-01 or"));
    }
}
