//! Asking before something is changed.

use super::person::AtTerminal;
use super::screen::Screen;
use crate::output::text;
use foldback_agent::{ApprovalRequest, Approver, Decision};
use foldback_planner::{Effect, ToolSpec};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::sync::Arc;

/// Who decides on what changes something.
pub(crate) enum Approvals {
    /// All of it is approved of.
    All,
    /// A person at the terminal is asked.
    Person(AtTerminal),
    /// Nobody is there.
    Nobody,
}

/// Why a call was denied where nobody could be asked.
const NOBODY: &str = "this changes something, and nobody can be asked: foldback runs without --yes and \
                      without a terminal. Go on without it, or say what you would have done";

impl Approvals {
    /// Who is there to decide.
    pub(crate) fn new(yes: bool, screen: &Arc<Screen>) -> Self {
        match AtTerminal::find(screen) {
            _ if yes => Self::All,
            Some(person) => Self::Person(person),
            None => Self::Nobody,
        }
    }
}

/// Tools that change nothing but the agent's own mind, or ask by themselves.
const OWN: [&str; 6] =
    ["ask_person", "delegate", "memory_share", "research", "think", "todo_write"];

impl Approver for Approvals {
    /// Everything that changes something, also where doing it twice would change nothing more.
    fn needs(&self, tool: &ToolSpec, _arguments: &str) -> bool {
        let is_own = tool.server.is_none() && OWN.contains(&tool.name());
        tool.effect != Effect::ReadOnly && !is_own
    }

    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        async move {
            let mut decisions = Vec::with_capacity(calls.len());
            for call in calls {
                decisions.push(match self {
                    Self::All => Decision::Approved,
                    Self::Nobody => Decision::Denied { reason: NOBODY.to_owned() },
                    Self::Person(person) => {
                        decision(&person.line(question(call)).await.unwrap_or_default())
                    }
                });
            }
            decisions
        }
        .boxed()
    }
}

/// What a person is asked about a call.
fn question(call: &ApprovalRequest) -> String {
    let what = text::one_line(&format!("{} {}", call.function, call.arguments));
    format!("{what}\n  may it do that? [y]es, [n]o, or what else: ")
}

/// What an answer means. An empty one is no approval.
fn decision(answer: &str) -> Decision {
    match answer.to_lowercase().as_str() {
        "y" | "yes" => Decision::Approved,
        "" | "n" | "no" => Decision::Denied { reason: "the person said no".to_owned() },
        _ => Decision::Denied { reason: format!("the person said no: {answer}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolDefinition;

    #[test]
    fn what_changes_something_is_asked_about() {
        let tool = |name: &str, effect| ToolSpec {
            effect,
            ..ToolSpec::new(ToolDefinition {
                name: name.to_owned(),
                description: String::new(),
                parameters: "{}".to_owned(),
            })
        };
        let asked = |name, effect| Approvals::Nobody.needs(&tool(name, effect), "{}");
        assert!(asked("file_write", Effect::Idempotent) && asked("mail_send", Effect::Effectful));
        assert!(!asked("file_read", Effect::ReadOnly) && !asked("todo_write", Effect::Idempotent));
        // A server's tool is not the agent's own, whatever its name is.
        let mut foreign = tool("todo_write", Effect::Idempotent);
        foreign.server = Some("todo".to_owned());
        assert!(Approvals::Nobody.needs(&foreign, "{}"));
    }

    #[test]
    fn only_yes_is_yes() {
        assert!(["y", "yes", "Yes"].map(decision).iter().all(|d| *d == Decision::Approved));
        let denied = ["", "n", "no", "yesterday", "先备份"].map(decision);
        assert!(denied.iter().all(|d| matches!(d, Decision::Denied { .. })));
        let Decision::Denied { reason } = decision("先备份") else { panic!("it is no yes") };
        assert_eq!(reason, "the person said no: 先备份");
    }
}
