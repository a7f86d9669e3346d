//! The executors of steps.

use foldback_agent::{Agent, SettingError, Strategy};
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// An agent that works on steps of a flow.
#[derive(Clone, Debug)]
pub struct StepExecutor {
    /// The name by which steps call it, in brackets; case does not matter.
    pub name: String,
    /// What it is good at, as text for the planner.
    pub description: String,
    /// The agent. It works with the journal of the flow's agent.
    pub agent: Agent,
    /// How it works on a step; without one, as the flow's settings say.
    pub strategy: Option<Arc<dyn Strategy>>,
}

impl StepExecutor {
    /// Creates an executor from an agent and a name.
    #[must_use]
    pub fn new(name: &str, description: &str, agent: Agent) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        Self { name, description, agent, strategy: None }
    }

    /// Creates executors with default names: `agent_0`, `agent_1`, ..
    #[must_use]
    pub fn numbered(agents: impl IntoIterator<Item = Agent>) -> Vec<Self> {
        let numbered = agents.into_iter().enumerate();
        numbered.map(|(n, agent)| Self::new(&format!("agent_{n}"), "", agent)).collect()
    }

    /// Returns the name as a plan writes it.
    pub(crate) fn tag(&self) -> String {
        self.name.to_uppercase()
    }
}

/// Returns the executor that a step's text calls: the first name in brackets that one of them has. A step that
/// calls none goes to the first one.
pub(crate) fn executor_of<'a>(
    step: &str,
    executors: &'a [StepExecutor],
) -> Option<&'a StepExecutor> {
    tags(step).find_map(|tag| named(tag, executors)).or_else(|| executors.first())
}

/// Returns the name that a step's text begins with, if no executor has it, and the executor of the step instead.
pub(crate) fn unknown<'s, 'e>(
    step: &'s str,
    executors: &'e [StepExecutor],
) -> Option<(&'s str, &'e StepExecutor)> {
    let tag = tags(step).next().filter(|_| step.trim_start().starts_with(OPENING))?;
    let first = executors.first()?;
    tags(step).all(|tag| named(tag, executors).is_none()).then_some((tag.trim(), first))
}

/// Refuses names by which no executor could be called.
pub(crate) fn check(executors: &[StepExecutor]) -> Result<(), SettingError> {
    for (at, StepExecutor { name, .. }) in executors.iter().enumerate() {
        let wrong = |expected| Err(SettingError::new("the name of an executor", name, expected));
        if name.trim().is_empty() || name.contains(char::is_control) {
            return wrong("a word or a few words on one line");
        }
        if name.contains(OPENING) || name.contains(CLOSING) {
            return wrong("a name without brackets");
        }
        if executors.iter().take(at).any(|other| is_named(other, name)) {
            return wrong("a name that no other executor has");
        }
    }
    Ok(())
}

/// Returns the executor with a name, in whatever width and case it is written.
fn named<'e>(tag: &str, executors: &'e [StepExecutor]) -> Option<&'e StepExecutor> {
    executors.iter().find(|executor| is_named(executor, tag))
}

fn is_named(executor: &StepExecutor, name: &str) -> bool {
    let forms = |name: &str| {
        let name: String = name.trim().nfkc().collect();
        (name.to_lowercase(), name.to_uppercase())
    };
    let ((lower, upper), own) = (forms(name), forms(&executor.name));
    own.0 == lower || own.1 == upper
}

/// The brackets around a name.
const OPENING: [char; 3] = ['[', '【', '［'];
const CLOSING: [char; 3] = [']', '】', '］'];

/// Returns the texts in brackets, in order.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    let openings = text.match_indices(OPENING);
    openings.filter_map(|(at, bracket)| {
        let rest = text.get(at + bracket.len()..)?;
        let end = rest.find(CLOSING)?;
        rest.get(..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn om9_what_stands_in_brackets_is_found() {
        let found = |text| tags(text).collect::<Vec<_>>();
        assert_eq!(found("[AGENT_0] look"), ["AGENT_0"]);
        assert_eq!(found("see [1], then 【研究员】 [code"), ["1", "研究员"]);
        assert_eq!(found("[a [b]"), ["a [b", "b"]);
        assert!(found("nothing ] here [").is_empty());
    }
}
