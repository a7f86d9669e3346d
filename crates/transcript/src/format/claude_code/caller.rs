//! The calls that started side chains.

use super::line::{Line, Said, blocks};
use crate::object::Object;
use std::collections::{HashMap, VecDeque};

/// Calls, by what is known about the agent that each one started.
#[derive(Default)]
pub(super) struct Callers {
    /// By the agent's id, which the call's result names.
    agents: HashMap<String, String>,
    /// By the prompt. Several calls may have the same one; their chains come in the same order.
    prompts: HashMap<String, VecDeque<String>>,
}

impl Callers {
    pub(super) fn of(lines: &[Line<'_>]) -> Self {
        let mut callers = Self::default();
        if lines.iter().any(|line| line.agent.is_some()) {
            for line in lines {
                callers.learn(line);
            }
        }
        callers
    }

    fn learn(&mut self, line: &Line<'_>) {
        match line.said {
            Some(Said::User) if !line.answers.is_empty() => {
                let agent = line.record.object().and_then(|object| object.object("toolUseResult"));
                if let Some(agent) = agent.and_then(|result| result.text("agentId"))
                    && let Some(call) = line.answers.first()
                {
                    self.agents.insert(agent.into_owned(), call.to_string());
                }
            }
            Some(Said::Assistant) if !line.calls.is_empty() => {
                let Some(message) = message_of(line) else { return };
                let content = message.get("content").and_then(blocks).unwrap_or_default();
                for block in content.into_iter().filter_map(Object::of) {
                    let is_agent = matches!(block.text("name").as_deref(), Some("Task" | "Agent"));
                    let prompt = block.object("input").and_then(|input| input.text("prompt"));
                    if let (true, Some(prompt), Some(id)) = (is_agent, prompt, block.text("id")) {
                        let calls = self.prompts.entry(prompt.into_owned()).or_default();
                        calls.push_back(id.into_owned());
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the call that started the chain of `agent`, which begins with the line `first`.
    pub(super) fn take(&mut self, agent: &str, first: Option<&Line<'_>>) -> Option<String> {
        if let Some(call) = self.agents.get(agent) {
            return Some(call.clone());
        }
        let message = message_of(first?)?;
        let prompt = match message.text("content") {
            Some(text) => text.into_owned(),
            None => {
                let blocks = message.get("content").and_then(blocks)?;
                blocks.into_iter().find_map(|block| Object::of(block)?.text("text"))?.into_owned()
            }
        };
        self.prompts.get_mut(&prompt)?.pop_front()
    }
}

fn message_of<'r>(line: &Line<'r>) -> Option<Object<'r>> {
    line.record.object()?.object("message")
}
