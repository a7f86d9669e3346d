//! The contents of prompts, as numbers of recorded messages. A message that differs from the
//! recorded one (a light stand-in, the opening, the suffix) is kept once as a form.

use super::picture::{Form, Said};
use foldback_bench::Counts;
use foldback_core::{CallOutcome, Content, Message, Part, Prompt, Role, ToolCallId};
use foldback_disclosure::call_outcome;
use std::collections::{BTreeMap, HashMap};

/// The contents of the prompts of one conversation.
pub(super) struct Views<'a> {
    source: &'a [Message],
    /// The tool of each result, if it is known.
    tools: BTreeMap<&'a ToolCallId, &'a str>,
    /// The first message of a user with a text: it is pinned as the task.
    task: Option<usize>,
    /// How many standing instructions there are.
    head: usize,
    pub(super) forms: Vec<Form>,
    known: HashMap<(Box<str>, Option<usize>), usize>,
}

impl<'a> Views<'a> {
    pub(super) fn new(source: &'a [Message]) -> Self {
        let calls = source.iter().flat_map(Message::tool_calls);
        Self {
            source,
            tools: calls.map(|call| (&call.id, call.name.as_str())).collect(),
            task: source
                .iter()
                .position(|message| *message.role() == Role::User && !message.content().is_blank()),
            head: source.iter().take_while(|message| message.role().is_instruction()).count(),
            forms: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// The contents of a message, for the page.
    pub(super) fn said(&self, message: &Message, counts: &mut Counts) -> Said {
        let tool = message.tool_call_id().and_then(|id| self.tools.get(id));
        Said {
            r: message.role().as_str().to_owned(),
            n: message.name().or(tool.copied()).map(str::to_owned),
            t: text(message),
            c: message
                .tool_calls()
                .iter()
                .map(|call| (call.name.clone(), call.arguments.clone()))
                .collect(),
            by: None,
            x: outcome(message),
            at: message.timestamp().map(|at| at.to_string()),
            k: counts.message(message),
        }
    }

    /// All recorded messages, for the page.
    pub(super) fn all(&self, counts: &mut Counts) -> Vec<Said> {
        let mut calls: HashMap<&ToolCallId, usize> = HashMap::new();
        let said = self.source.iter().enumerate().map(|(seq, message)| {
            calls.extend(message.tool_calls().iter().map(|call| (&call.id, seq)));
            let by = match message.role() {
                Role::Assistant => Some(seq),
                _ => message.tool_call_id().and_then(|id| calls.get(id).copied()),
            };
            Said { by, ..self.said(message, counts) }
        });
        said.collect()
    }

    /// The messages of a prompt after `at` recorded ones, whose latest block or open tail begins at
    /// `from`: their numbers, and how many of them are standing instructions.
    pub(super) fn take(
        &mut self,
        prompt: &Prompt,
        from: usize,
        at: usize,
        counts: &mut Counts,
    ) -> (Vec<i64>, usize) {
        let is_head = |message: &&std::sync::Arc<Message>| message.role().is_instruction();
        let head = prompt.messages.iter().take_while(is_head).count();
        let (mut standing, mut next) = (0, from);
        let mut shown = Vec::with_capacity(prompt.messages.len());
        for (index, message) in prompt.messages.iter().enumerate() {
            let place = if index < head {
                let found = self.find(message, standing, self.head);
                standing = found.map_or(standing, |(seq, _)| seq + 1);
                found
            } else if index == head {
                None
            } else {
                let found = self.find(message, next, at);
                next = found.map_or(next, |(seq, _)| seq + 1);
                found
            };
            shown.push(match place {
                Some((seq, true)) => seq as i64,
                place => -1 - self.form(message, place.map(|(seq, _)| seq), index == head, counts),
            });
        }
        (shown, head)
    }

    /// The first recorded message of `from..to` that `shown` represents, and whether it says just
    /// the same.
    fn find(&self, shown: &Message, from: usize, to: usize) -> Option<(usize, bool)> {
        let range = self.source.get(from..to)?;
        let seq = range.iter().position(|source| stands_for(shown, source))? + from;
        self.source.get(seq).map(|source| (seq, says_the_same(shown, source)))
    }

    fn form(
        &mut self,
        message: &Message,
        of: Option<usize>,
        opens: bool,
        counts: &mut Counts,
    ) -> i64 {
        let key = (Box::from(message.json()), of);
        if let Some(known) = self.known.get(&key) {
            return *known as i64;
        }
        let mut said = self.said(message, counts);
        // The opening repeats the task before the ledger, and the task is already in the page.
        let task = self.task.filter(|_| opens).and_then(|seq| Some((seq, self.source.get(seq)?)));
        let pin = task.and_then(|(seq, task)| {
            let ledger = said.t.strip_prefix(&text(task))?.trim_start().to_owned();
            said.t = ledger;
            Some(seq)
        });
        let at = self.forms.len();
        self.forms.push(Form { said, of, pin });
        self.known.insert(key, at);
        at as i64
    }
}

/// How the call of a result went, if it did not succeed.
fn outcome(message: &Message) -> Option<&'static str> {
    if *message.role() != Role::Tool {
        return None;
    }
    match (call_outcome(message)?, message.outcome()) {
        (CallOutcome::Succeeded, _) => None,
        (CallOutcome::NotMade, _) => Some("not_made"),
        (CallOutcome::Failed, None) => Some("reads_failed"),
        (CallOutcome::Failed, Some(_)) => Some("failed"),
    }
}

/// The contents of a message as one text; a part of another kind is named.
fn text(message: &Message) -> String {
    let Content::Parts(parts) = message.content() else { return message.text().into_owned() };
    let told = parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Other(json) => {
            let size = crate::output::text::bytes(json.len() as u64);
            format!("[a part of another kind, {size}]")
        }
    });
    told.collect::<Vec<_>>().join("\n")
}

fn says_the_same(shown: &Message, source: &Message) -> bool {
    let said = |calls: &Message| -> Vec<(String, String)> {
        calls.tool_calls().iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
    };
    shown.json() == source.json()
        || (shown.role() == source.role()
            && shown.content() == source.content()
            && said(shown) == said(source))
}

/// Whether a message of a prompt is the recorded one, as it is or in a form of its own.
fn stands_for(shown: &Message, source: &Message) -> bool {
    if says_the_same(shown, source) {
        return match (shown.tool_call_id(), source.tool_call_id()) {
            (Some(shown), Some(source)) => shown.as_str().starts_with(source.as_str()),
            _ => true,
        };
    }
    match (shown.role(), source.role()) {
        (Role::Tool, Role::Tool) => shown.tool_call_id() == source.tool_call_id(),
        (Role::Assistant, Role::Assistant) => {
            let names = |message: &Message| -> Vec<String> {
                message.tool_calls().iter().map(|call| call.name.clone()).collect()
            };
            !shown.tool_calls().is_empty() && names(shown) == names(source)
        }
        (Role::User, role) => role.is_instruction() && shown.text().ends_with(&*source.text()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_testkit::transcript;
    use std::sync::Arc;

    #[test]
    fn a_prompt_is_told_by_numbers_and_each_other_text_once() {
        let source = transcript(
            "
            system: be brief
            user: 修理闸门
            assistant> read({\"path\": \"a\"}) #1
            tool #1: a very long log
            assistant: done
            user: next
            ",
        );
        let light = Message::tool_result(&ToolCallId::new("1"), "[stored at store://1-abcd]");
        let opening = |ledger: &str| Message::user(&format!("修理闸门\n\n{ledger}"));
        let prompt = |ledger: &str, tool: &Message| Prompt {
            messages: [
                &source[0],
                &opening(ledger),
                &source[2],
                tool,
                &source[4],
                &source[5],
                &Message::user("[state]"),
            ]
            .map(|message| Arc::new(message.clone()))
            .to_vec(),
            volatile: 1,
            ..Prompt::default()
        };
        let mut views = Views::new(&source);
        let mut counts = Counts::default();
        let mut take = |prompt: &Prompt| views.take(prompt, 2, 6, &mut counts);
        assert_eq!(take(&prompt("[memory]", &source[3])), (vec![0, -1, 2, 3, 4, 5, -2], 1));
        assert_eq!(take(&prompt("[memory] b1", &light)), (vec![0, -3, 2, -4, 4, 5, -2], 1));
        assert_eq!(take(&prompt("[memory]", &light)).0, [0, -1, 2, -4, 4, 5, -2]);
        let told: Vec<_> = views.forms.iter().map(|f| (f.said.t.as_str(), f.of, f.pin)).collect();
        assert_eq!(
            told,
            [
                ("[memory]", None, Some(1)),
                ("[state]", None, None),
                ("[memory] b1", None, Some(1)),
                ("[stored at store://1-abcd]", Some(3), None),
            ]
        );
        assert_eq!(views.said(&light, &mut counts).n.as_deref(), Some("read"));
    }
}
