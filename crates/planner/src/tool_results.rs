//! `<tool_results>`: what a model reads after `<execute_tools>`.
//!
//! Each call has one result, at its index, whatever its outcome. The text is well-formed XML for any
//! data. Control characters, which XML 1.0 cannot represent, are written as in JSON (`\u0000`, a
//! backslash as `\\`) in a `<data escapes="json">`; other data has no such attribute and no escapes but
//! XML's own.

use crate::StepResult;
use std::borrow::Cow;

/// Writes one `<tool_result>` for each result, in the order of the calls.
///
/// ```
/// use foldback_planner::{StepId, StepResult, render_tool_results};
/// use foldback_tool::Data;
///
/// let data = |text: &str| Data { text: text.to_owned(), structured: None };
/// let results = [
///     StepResult::Success { data: data("$170") },
///     StepResult::Success { data: data("4.0") },
/// ];
/// assert_eq!(
///     render_tool_results(&results),
///     "<tool_results>
///     <tool_result index=\"0\"><status>success</status><data>$170</data></tool_result>
///     <tool_result index=\"1\"><status>success</status><data>4.0</data></tool_result>
/// </tool_results>"
/// );
/// ```
#[must_use]
pub fn render_tool_results<'a>(results: impl IntoIterator<Item = &'a StepResult>) -> String {
    let mut out = String::from("<tool_results>\n");
    for (index, result) in results.into_iter().enumerate() {
        let (status, data) = match result {
            StepResult::Success { data } => {
                let text = match &data.structured {
                    Some(structured) if data.text.is_empty() => structured,
                    _ => &data.text,
                };
                ("success", Cow::Borrowed(text.as_str()))
            }
            StepResult::Error { failure } => ("error", Cow::Borrowed(failure.message.as_str())),
            StepResult::Skipped { because } => {
                let index = because.0.saturating_sub(1);
                (
                    "skipped",
                    Cow::Owned(format!("not run, because the call at index {index} failed")),
                )
            }
        };
        out.push_str(&format!("    <tool_result index=\"{index}\"><status>{status}</status>"));
        write_data(&data, &mut out);
        out.push_str("</tool_result>\n");
    }
    out.push_str("</tool_results>");
    out
}

fn write_data(text: &str, out: &mut String) {
    let escapes = text.chars().any(is_forbidden);
    out.push_str(if escapes { "<data escapes=\"json\">" } else { "<data>" });
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML parsers turn a bare one into a line feed.
            '\r' => out.push_str("&#13;"),
            '\\' if escapes => out.push_str("\\\\"),
            _ if is_forbidden(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push_str("</data>");
}

/// Returns whether XML 1.0 cannot represent a character.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}
