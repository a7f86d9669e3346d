//! Asking before something is changed.

use super::person::AtTerminal;
use crate::output::text;
use foldback_agent::{ApprovalRequest, Approver, Decision};
use foldback_tool::{Effect, ToolSpec};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// Decides on what changes something: a person, whose answers may all have been given in advance.
pub(crate) struct Approvals {
    person: Option<AtTerminal>,
    /// Whether everything is approved from now on.
    all: AtomicBool,
}

/// The reason for a denial if nobody could be asked.
const NOBODY: &str = "this call changes something, and nobody can approve it: foldback runs without \
                      --yes and without a terminal. Continue without it, or say what you would have done";

/// The reason for a denial if somebody was asked.
const SILENCE: &str = "the user did not answer";

impl Approvals {
    pub(crate) fn new(yes: bool, person: Option<AtTerminal>) -> Self {
        Self { person, all: AtomicBool::new(yes) }
    }

    /// The person's answer to a call.
    async fn ask(&self, person: &AtTerminal, call: &ApprovalRequest) -> Decision {
        let who = call.todo.as_ref().map(|todo| person.screen.who(todo)).unwrap_or_default();
        let _turn = person.turn.lock().await;
        if self.all.load(Ordering::Relaxed) {
            return Decision::Approved;
        }
        let mut shown = Shown::Beginnings;
        loop {
            let Some(answer) = person.line(question(&who, call, shown)).await else {
                return Decision::Denied { reason: SILENCE.to_owned() };
            };
            match Answer::of(&answer) {
                Answer::Yes => return Decision::Approved,
                Answer::All => {
                    self.all.store(true, Ordering::Relaxed);
                    return Decision::Approved;
                }
                Answer::Show => shown = Shown::Whole,
                Answer::No { reason } => return Decision::Denied { reason },
            }
        }
    }
}

/// Tools that change nothing but the agent's own state, ask by themselves, or call the one tool that the person
/// named for them (`search`).
const OWN: [&str; 8] = [
    "ask_person",
    "delegate",
    "memory_share",
    "planning",
    "research",
    "search",
    "think",
    "todo_write",
];

impl Approver for Approvals {
    /// Everything that changes something, even if doing it twice would change nothing more.
    fn needs(&self, tool: &ToolSpec, _arguments: &str) -> bool {
        let is_own = tool.server.is_none() && OWN.contains(&tool.name());
        tool.effect != Effect::ReadOnly && !is_own && !self.all.load(Ordering::Relaxed)
    }

    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        async move {
            let mut decisions = Vec::with_capacity(calls.len());
            for call in calls {
                decisions.push(match &self.person {
                    _ if self.all.load(Ordering::Relaxed) => Decision::Approved,
                    Some(person) => self.ask(person, call).await,
                    None => Decision::Denied { reason: NOBODY.to_owned() },
                });
            }
            decisions
        }
        .boxed()
    }
}

/// How much is shown of a call's arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Beginnings,
    Whole,
}

/// The number of lines of an argument that are shown at first, and the characters of each.
const LINES: usize = 12;
const CHARACTERS: usize = 400;

/// The question for a person about a call: which agent wants to make it, with which arguments.
fn question(who: &str, call: &ApprovalRequest, shown: Shown) -> String {
    let who = if who.is_empty() { "the agent".to_owned() } else { format!("sub-agent {who}") };
    let mut question = format!("{who} wants to call {}\n", text::one_line(&call.function));
    let mut is_cut = false;
    for (name, value) in arguments(&call.arguments) {
        let (lines, left_out) = beginning(&value, shown);
        is_cut |= left_out.is_some();
        let is_short = lines.len() < 2 && left_out.is_none();
        question.push_str(&format!("  {}:", text::one_line(&name)));
        for line in lines {
            question.push_str(if is_short { " " } else { "\n    " });
            question.push_str(&line);
        }
        if let Some(left_out) = left_out {
            question.push_str(&format!("\n    … {left_out}"));
        }
        question.push('\n');
    }
    let show = if is_cut { "[s]how all of it, " } else { "" };
    question + &format!("allow it? [y]es, [n]o, [a]ll from now on, {show}or say what else: ")
}

/// The arguments by name, with texts as they are; anything but an object is shown as written.
fn arguments(json: &str) -> Vec<(String, String)> {
    match serde_json::from_str(json) {
        Ok(Value::Object(arguments)) => {
            let written = |(name, value)| match value {
                Value::String(text) => (name, text),
                value => (name, value.to_string()),
            };
            arguments.into_iter().map(written).collect()
        }
        _ => vec![("arguments".to_owned(), json.to_owned())],
    }
}

/// The lines of a value that are shown, and a note on what is not.
fn beginning(value: &str, shown: Shown) -> (Vec<String>, Option<String>) {
    let plain = text::plain(value);
    let lines: Vec<&str> = plain.lines().collect();
    let is_long = |line: &&str| line.chars().nth(CHARACTERS).is_some();
    let is_whole = lines.len() <= LINES && !lines.iter().any(is_long);
    if shown == Shown::Whole || is_whole {
        return (lines.into_iter().map(str::to_owned).collect(), None);
    }
    let first = lines.iter().take(LINES);
    let first = first.map(|line| line.chars().take(CHARACTERS).collect()).collect();
    let left_out = format!(
        "only the beginning of {} and {} is shown",
        text::count(lines.len() as u64, "line"),
        text::count(value.chars().count() as u64, "character"),
    );
    (first, Some(left_out))
}

/// Reads the answer of a person.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    All,
    Show,
    No { reason: String },
}

impl Answer {
    /// The meaning of an answer. An empty one is no approval.
    fn of(answer: &str) -> Self {
        match answer.to_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            "a" | "all" => Self::All,
            "s" | "show" => Self::Show,
            "" | "n" | "no" => Self::No { reason: "the user declined".to_owned() },
            _ => Self::No { reason: format!("the user declined: {answer}") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolDefinition;
    use foldback_planner::StepId;

    #[test]
    fn what_changes_something_is_asked_about() {
        let tool = |name: &str, effect| {
            ToolSpec::new(ToolDefinition {
                name: name.to_owned(),
                description: String::new(),
                parameters: "{}".to_owned(),
            })
            .with_effect(effect)
        };
        let nobody = Approvals::new(false, None);
        let asked = |name, effect| nobody.needs(&tool(name, effect), "{}");
        assert!(asked("file_write", Effect::Idempotent) && asked("mail_send", Effect::Effectful));
        assert!(!asked("file_read", Effect::ReadOnly) && !asked("todo_write", Effect::Idempotent));
        // A server's tool is not the agent's own, whatever its name.
        let mut foreign = tool("todo_write", Effect::Idempotent);
        foreign.server = Some("todo".to_owned());
        assert!(nobody.needs(&foreign, "{}"));
        assert!(!Approvals::new(true, None).needs(&foreign, "{}"));
    }

    #[test]
    fn only_yes_is_yes() {
        assert!(["y", "yes", "Yes"].map(Answer::of).iter().all(|answer| *answer == Answer::Yes));
        assert_eq!(["a", "S"].map(Answer::of), [Answer::All, Answer::Show]);
        for no in ["", "n", "no", "yesterday", "all right", "先备份"] {
            assert!(matches!(Answer::of(no), Answer::No { .. }), "{no}");
        }
        let reason = "the user declined: 先备份".to_owned();
        assert_eq!(Answer::of("先备份"), Answer::No { reason });
    }

    fn call(arguments: &str) -> ApprovalRequest {
        ApprovalRequest {
            todo: None,
            step: StepId(1),
            function: "file_write".to_owned(),
            arguments: arguments.to_owned(),
            effect: Effect::Idempotent,
        }
    }

    #[test]
    fn a_person_sees_who_wants_what() {
        let call = call(r#"{"path": "笔记.md", "content": "一\ntwo\u001b[2J", "n": 3}"#);
        assert_eq!(
            question("hotels", &call, Shown::Beginnings),
            "sub-agent hotels wants to call file_write\n  path: 笔记.md\n  content:\n    一\n    \
             two␛[2J\n  n: 3\nallow it? [y]es, [n]o, [a]ll from now on, or say what else: "
        );
        assert!(question("", &call, Shown::Beginnings).starts_with("the agent wants to call"));
    }

    #[test]
    fn what_is_not_shown_is_told_and_can_be_seen() {
        let lines: String = (1..=40).map(|n| format!("echo {n}\n")).collect();
        let long = call(&serde_json::json!({"command": lines}).to_string());
        let short = question("", &long, Shown::Beginnings);
        assert!(short.contains("echo 12\n") && !short.contains("echo 13\n"), "{short}");
        assert!(short.contains("only the beginning of 40 lines and 311 characters"), "{short}");
        assert!(short.contains("[s]how all of it"), "{short}");
        let whole = question("", &long, Shown::Whole);
        assert!(whole.contains("echo 40\n") && !whole.contains("[s]how"), "{whole}");
        let wide = call(&serde_json::json!({"command": "一".repeat(401)}).to_string());
        assert!(question("", &wide, Shown::Beginnings).contains("[s]how all of it"));
    }
}
