//! Recognises failures of tools from their answers.

use crate::cut::one_line;
use crate::ledger::short_id;
use crate::quote::escaped;
use crate::raw::RawObject;
use foldback_core::{CallOutcome, Message, ToolCall};
use serde::{Deserialize, Serialize};

/// How many unresolved failures are kept; older ones are forgotten, so that a view does not grow.
pub(crate) const FAILURES_KEPT: usize = 12;

/// A call that failed and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The number of the result that reports it.
    pub(crate) seq: u64,
    /// The tool.
    pub(crate) tool: String,
    /// The target of the call: its main argument.
    pub(crate) target: String,
    /// The first telling line of the error.
    pub(crate) head: String,
    /// The payload that holds the whole result, if it is stored outside.
    pub(crate) stored: Option<String>,
    /// The number of the block that the result went into.
    pub(crate) block: Option<u32>,
}

impl Failure {
    /// Returns the failure as one line of a list, with the place of its full text.
    pub(crate) fn line(&self) -> String {
        let line = format!(
            "{} on {} failed: {}",
            one_line(&self.tool, 64),
            one_line(&self.target, 120),
            one_line(&self.head, 160)
        );
        let line = escaped(&line);
        match self.stored.clone().or(self.block.map(short_id)) {
            Some(reference) => format!("- {line} (load {reference})"),
            None => format!("- {line}"),
        }
    }
}

/// Returns how a call went, by its result: what the result [states](Message::outcome) or, where it states nothing,
/// [`CallOutcome::Failed`] if its text reports an error.
///
/// ```
/// use foldback_core::{CallOutcome, Message, ToolCallId};
/// use foldback_disclosure::call_outcome;
///
/// let result = Message::tool_result(&ToolCallId::new("c"), "错误：文件不存在");
/// assert_eq!(call_outcome(&result), Some(CallOutcome::Failed));
/// let stated = result.with_outcome(CallOutcome::Succeeded);
/// assert_eq!(call_outcome(&stated), Some(CallOutcome::Succeeded), "it is a line of a file");
/// ```
#[must_use]
pub fn call_outcome(result: &Message) -> Option<CallOutcome> {
    result.outcome().or_else(|| error_head(result).map(|_| CallOutcome::Failed))
}

/// Returns the target of a call: the argument with a telling name, else the first that is a text, else the arguments
/// as they are. Two calls of one tool on the same target are attempts at the same thing.
pub(crate) fn target(call: &ToolCall) -> String {
    /// The names that tools give to their main argument, the most telling first.
    const MAIN: [&str; 16] = [
        "path",
        "file_path",
        "file",
        "filename",
        "command",
        "cmd",
        "url",
        "query",
        "sql",
        "pattern",
        "code",
        "script",
        "id",
        "ref",
        "name",
        "input",
    ];
    let Some(members) = call.members() else { return one_line(&call.arguments, 120) };
    let text = |name: Option<&str>| {
        members
            .iter()
            .filter(|(key, _)| name.is_none_or(|name| key == name))
            .find_map(|(_, value)| serde_json::from_str::<String>(value.get()).ok())
    };
    let main = MAIN.into_iter().find_map(|name| text(Some(name))).or_else(|| text(None));
    one_line(&main.unwrap_or_else(|| call.arguments.clone()), 120)
}

/// Returns the telling line of the error that a tool's message reports, if any.
///
/// If the message [states](Message::outcome) the outcome of the call, that counts, whatever its text says. Otherwise
/// an error is recognised by a JSON object with an `error`, by the beginning of its first line, by a traceback, or by
/// an exit code other than 0. A text that merely contains the word somewhere reports no error.
pub(crate) fn error_head(message: &Message) -> Option<String> {
    let outcome = message.outcome();
    if outcome == Some(CallOutcome::Succeeded) {
        return None;
    }
    let text = message.text();
    let head = json_error(&text).or_else(|| text_error(&text));
    head.or_else(|| outcome.map(|_| one_line(first_line(&text), 160)))
}

/// Returns the error of a result that is a JSON object.
fn json_error(text: &str) -> Option<String> {
    let text = text.trim();
    // A larger result is data, and reading it whole would cost more than the answer is worth.
    if !text.starts_with('{') || text.len() > 1 << 16 {
        return None;
    }
    let object = RawObject::parse(text)?;
    let is_true = |key: &str| object.get(key).is_some_and(|value| value.get() == "true");
    let is_false = |key: &str| object.get(key).is_some_and(|value| value.get() == "false");
    let error = object
        .get("error")
        .map(|value| value.get())
        .filter(|json| !matches!(*json, "null" | "false" | "\"\"" | "[]" | "{}" | "0"));
    let code = ["exit_code", "exitCode", "returncode", "return_code"]
        .into_iter()
        .find_map(|key| object.get(key))
        .map(|value| value.get())
        .filter(|code| *code != "0" && code.parse::<i64>().is_ok());
    let said = |key: &str| {
        let text: String = serde_json::from_str(object.get(key)?.get()).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    };
    if let Some(error) = error {
        let said = said("error").or_else(|| said("message"));
        return Some(one_line(said.as_deref().unwrap_or(error), 160));
    }
    if let Some(code) = code {
        let said = said("stderr").or_else(|| said("output")).or_else(|| said("stdout"));
        let said = said.map(|text| error_line(&text).unwrap_or_default());
        return Some(one_line(&format!("exit code {code} {}", said.unwrap_or_default()), 160));
    }
    (is_true("is_error") || is_true("isError") || is_false("success") || is_false("ok")).then(
        || {
            let said = said("message").or_else(|| said("reason"));
            one_line(said.as_deref().unwrap_or(text), 160)
        },
    )
}

/// Returns the error of a result that is text.
fn text_error(text: &str) -> Option<String> {
    // A program reports its outcome at its beginning or its end.
    let start = first_line(text);
    let lower: String = start.chars().take(80).collect::<String>().to_lowercase();
    let begins = [
        "error",
        "[error",
        "fatal:",
        "exception",
        "traceback (most recent call last)",
        "failed:",
        "failure:",
        "command failed",
        "panicked at",
        "thread 'main' panicked",
        "错误",
        "失败",
        "异常",
        "エラー",
        "오류",
    ];
    let end_from = text.floor_char_boundary(text.len().saturating_sub(2_000));
    let end = text.get(end_from..).unwrap_or("");
    let start_to = text.floor_char_boundary(2_000.min(text.len()));
    let beginning = text.get(..start_to).unwrap_or("");
    let named = begins.iter().any(|begin| {
        lower.strip_prefix(begin).is_some_and(|rest| {
            // "errors: 0" and "Error handling in Rust" are not errors.
            let next = rest.chars().next();
            begin.ends_with(':')
                || !begin.is_ascii()
                || begin.contains(' ')
                || matches!(next, None | Some(':' | ']' | '!'))
                || lower.starts_with("error executing")
                || lower.starts_with("error while")
                || lower.starts_with("error occurred")
                || lower.starts_with("error[")
                || has_kind(rest)
        })
    });
    // `ValueError: ...`, `java.io.IOException: ...`.
    let typed = start.split_once(':').is_some_and(|(name, _)| {
        (name.ends_with("Error") || name.ends_with("Exception"))
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'))
    });
    let traceback = beginning.contains("Traceback (most recent call last)")
        || end.contains("Traceback (most recent call last)");
    let code = exit_code(beginning).or_else(|| exit_code(end));
    // A wrapper reports its own outcome, and a pipe hides the exit code of what failed in it.
    let line = || beginning.lines().chain(end.lines()).find(|line| line.starts_with("Error:"));
    match code {
        // Otherwise a program that reports success succeeded, whatever its output talks about.
        Some(0) if !traceback => line().map(|line| one_line(line, 160)),
        Some(code) if code != 0 => {
            let line = error_line(text).unwrap_or_default();
            Some(one_line(&format!("exit code {code} {line}"), 160))
        }
        _ if traceback => Some(one_line(&error_line(end).unwrap_or_default(), 160)),
        _ if named || typed => Some(one_line(start, 160)),
        _ => None,
    }
}

/// Returns whether a kind in brackets and a colon follow: `Error (timeout): ...`.
fn has_kind(rest: &str) -> bool {
    let kind = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
    kind.is_some_and(|(kind, rest)| !kind.trim().is_empty() && rest.starts_with(':'))
}

/// Returns the number in `exit code: 1`, `exit status 1`, `returncode=1` and the like, if a line
/// begins so. Further inside, a line quotes a program or talks about one.
fn exit_code(text: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        // The line is about the code; prose that mentions one is longer.
        if line.len() > 120 {
            return None;
        }
        let lower = line.trim_start_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        let rest = [
            "process exited with code",
            "command exited with code",
            "process finished with exit code",
            "exit code",
            "exit status",
            "exited with code",
            "returncode",
            "return code",
            "exit_code",
            "exitcode",
        ]
        .into_iter()
        .find_map(|name| lower.strip_prefix(name))?;
        // A comparison is a program's text.
        if rest.trim_start().starts_with("==") {
            return None;
        }
        let rest = rest.trim_start_matches([' ', ':', '=', '"', '\'', '(', '`', '>']);
        let digits: String = rest
            .chars()
            .enumerate()
            .take_while(|(i, c)| c.is_ascii_digit() || (*i == 0 && *c == '-'))
            .map(|(_, c)| c)
            .collect();
        digits.parse().ok()
    })
}

/// Returns the most telling line of a long output: the last that names an error, else the first.
fn error_line(text: &str) -> Option<String> {
    let from = text.floor_char_boundary(text.len().saturating_sub(8_000));
    let end = text.get(from..).unwrap_or("");
    let telling = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        let word = ["error", "exception", "panicked", "fatal", "failed", "not found", "denied"]
            .into_iter()
            .any(|word| lower.contains(word));
        word || line.contains("错误") || line.contains("失败")
    };
    let is_code = |line: &&str| exit_code(line).is_none();
    let line = end
        .lines()
        .rev()
        .filter(is_code)
        .find(telling)
        .or_else(|| text.lines().filter(is_code).find(|line| !line.trim().is_empty()))?;
    Some(line.trim().to_owned())
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolCallId;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let message = Message::tool_result(&ToolCallId::new("a"), text);
        assert_eq!(error_head(&message).as_deref(), expected, "{text}");
    }

    #[test]
    fn lv10_an_error_is_told_from_what_the_tool_says() {
        check("Error: no such file\nmore", Some("Error: no such file"));
        check("error[E0308]: mismatched types", Some("error[E0308]: mismatched types"));
        check("Error (tool): there is no 表.md", Some("Error (tool): there is no 表.md"));
        check("Error (unknown outcome): killed", Some("Error (unknown outcome): killed"));
        check("ValueError: bad", Some("ValueError: bad"));
        check("错误：文件不存在", Some("错误：文件不存在"));
        check(
            "out\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'x'",
            Some("KeyError: 'x'"),
        );
        check("running\ntest a FAILED\nexit code: 101", Some("exit code 101 test a FAILED"));
        check("[Process exited with code 2]", Some("exit code 2"));
        check(
            "Traceback (most recent call last):\n  assert p.returncode == 0\nAssertionError",
            Some("AssertionError"),
        );
        check(
            "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\nexit code: 0",
            Some("KeyError: 'x'"),
        );
        check("exit code: 0\nError: 没有权限", Some("Error: 没有权限"));
        check(r#"{"error":{"message":"no"}}"#, Some(r#"{"message":"no"}"#));
        check(r#"{"error":"no key"}"#, Some("no key"));
        check(r#"{"exit_code":2,"stderr":"ls: not found"}"#, Some("exit code 2 ls: not found"));
        check(r#"{"success":false,"message":"用户不存在"}"#, Some("用户不存在"));
    }

    #[test]
    fn lv10_a_text_about_errors_is_no_error() {
        for fine in [
            "",
            "errors: 0",
            "Error handling in Rust is done by Result",
            "Error (of measurement) is below 1 mm",
            "Error (): nothing",
            "all good\nexit code: 0",
            "ValueError is raised when: never",
            r#"{"error":null,"data":[1]}"#,
            r#"{"exit_code":0,"stderr":"warning: error-like"}"#,
            "the log says: Error: x",
            "src/run.py:12: returncode = 1",
            "if p.returncode != 1:\n    raise",
            "returncode == 1",
            "the exit code: 3 means that it is busy",
            "没有错误",
        ] {
            check(fine, None);
        }
    }

    #[test]
    fn lv10_a_key_says_so() {
        let read = |key: &str, content: &str| {
            let json =
                format!(r#"{{"role":"tool","tool_call_id":"a","content":"{content}",{key}}}"#);
            error_head(&Message::from_json(&json).unwrap())
        };
        assert_eq!(read(r#""is_error":true"#, "\\n没有").as_deref(), Some("没有"));
        assert_eq!(read(r#""status":"failed""#, "no").as_deref(), Some("no"));
        assert_eq!(read(r#""isError":true"#, "").as_deref(), Some(""));
        // A known outcome is not inferred from the text.
        assert_eq!(read(r#""is_error":false"#, "Error: is the first line of the log"), None);
        let both = read(r#""is_error":false,"status":"error""#, "no");
        assert_eq!(both.as_deref(), Some("no"));
    }

    #[test]
    fn lv10_the_target_is_the_main_argument() {
        let target = |arguments| target(&ToolCall::new("a", "t", arguments));
        assert_eq!(target(r#"{"content":"x","path":"a/b.rs"}"#), "a/b.rs");
        assert_eq!(target(r#"{"n":1,"city":"上海"}"#), "上海");
        assert_eq!(target(r#"{"n":1}"#), r#"{"n":1}"#);
        assert_eq!(target("ls  -l\n"), "ls -l");
    }
}
