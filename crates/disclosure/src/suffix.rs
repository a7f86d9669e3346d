//! The end of a prompt, which changes from call to call.

use crate::contents::Contents;
use crate::cut::one_line;
use crate::quote::escaped;

/// Returns the text at the end of the prompt: what is said about messages that are `out_of_view`,
/// notices, and last the todo list. `None` if there is nothing to say.
pub(crate) fn suffix(
    contents: &Contents,
    out_of_view: Vec<String>,
    unfit: &[String],
) -> Option<String> {
    let mut sections = out_of_view;
    let notices = contents.notices.values().map(|notice| one_line(notice, 500));
    let notices = notices.chain(unfit.iter().cloned()).map(|line| format!("- {line}"));
    sections.extend(section("Notices:", notices));
    if let Some(todo_list) = &contents.todo_list {
        sections.push(format!("Todo list:\n{}", escaped(todo_list.trim_end())));
    }
    if sections.is_empty() {
        return None;
    }
    Some(format!("[state of the work, not said by the user]\n{}", sections.join("\n")))
}

/// Returns lines under a title; `None` if there are none.
pub(crate) fn section(title: &str, lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
}
