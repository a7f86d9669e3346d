//! A context that already holds a part of the run: what is recorded is not recorded again.

use crate::agent::AgentError;
use crate::notes::Notes;
use foldback_core::{
    Budget, CallOutcome, ContextError, ContextManager, Message, Prompt, Recorded, Role, SeqNo,
    ToolAnswer, ToolCall, ToolCallId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind under which the progress of a run in its context is noted.
const KIND: &str = "context";

/// A text of fewer bytes is shown unchanged by every policy while it is the last.
const SHORT_BYTES: usize = 400;

/// The result of a call whose run did not continue.
const STOPPED: &str =
    "Not known: the run that made this call was stopped before its result was recorded.";

/// The progress of a run in its context.
///
/// A run that resumes after a kill repeats its messages: those that the context holds are skipped, and the
/// others are recorded, so that the conversation becomes that of a run that was not killed. The context may
/// hold all of the run so far, a part, or nothing at all.
///
/// For that, the number and a mark of each message are noted before it is recorded. If the context holds
/// something else in the place of a message, somebody else has written to it, and the run ends with
/// [`AgentError::ContextMoved`].
#[derive(Debug)]
pub(crate) struct Resumed {
    notes: Notes,
    past: Past,
    /// How many messages the context held when this process opened it.
    held: u64,
    /// The number of the next message.
    next: u64,
    /// The messages that were skipped so far.
    passed: Vec<Arc<Message>>,
    /// The calls of the last message that has any, and the number of the first one's result.
    calls: (u64, Vec<ToolCallId>),
}

/// A note.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Noted {
    /// The run begins after this many messages.
    Begins(u64),
    /// A message of the run is about to be recorded.
    Says { at: u64, mark: String },
    /// A tool of the policy has answered; its result will be the message with this number.
    Recalls { at: u64, text: String, is_error: bool },
    /// The run was left, at its end or by an error, with everything before this number recorded.
    Leaves(u64),
}

/// The notes of earlier processes.
#[derive(Debug, Default)]
struct Past {
    begins: Option<u64>,
    marks: BTreeMap<u64, String>,
    recalled: BTreeMap<u64, ToolAnswer>,
    left: u64,
}

impl Past {
    fn of(notes: &Notes) -> Self {
        let mut past = Self::default();
        for noted in notes.past(KIND) {
            match noted {
                Noted::Begins(at) => past = Self { begins: Some(at), ..Self::default() },
                Noted::Says { at, mark } => drop(past.marks.insert(at, mark)),
                Noted::Recalls { at, text, is_error } => {
                    past.recalled.insert(at, ToolAnswer { text, is_error });
                }
                Noted::Leaves(at) => past.left = at,
            }
        }
        past
    }

    /// Returns whether the message with this number was recorded, as far as the notes show: a process may
    /// have been killed between the last note and its message.
    fn is_sure(&self, at: u64) -> bool {
        at < self.left || self.marks.last_key_value().is_some_and(|(last, _)| at < *last)
    }
}

impl Resumed {
    /// Restores the progress of a run in its context, as earlier processes left it. If the run begins after one
    /// that was stopped and never resumed, the calls that are open there are answered first.
    ///
    /// # Errors
    /// When the context has lost a part of what it held before the run, or fails.
    pub(crate) fn begin(
        context: &mut dyn ContextManager,
        notes: Notes,
    ) -> Result<Self, AgentError> {
        let past = Past::of(&notes);
        if past.begins.is_none() {
            for id in open_calls(&context.prompt(&Budget::default())) {
                let result = Message::tool_result(&id, STOPPED);
                context.record(result.with_outcome(CallOutcome::Failed))?;
            }
        }
        let held = context.recorded();
        let next = match past.begins {
            Some(begins) if begins <= held => begins,
            // A context that keeps nothing is given everything again.
            Some(begins) if held > 0 => {
                let detail =
                    format!("it held {begins} messages when the run began, and holds {held} now");
                return Err(moved(context, &notes, detail));
            }
            _ => held,
        };
        let calls = (0, Vec::new());
        Ok(Self { notes, past, held, next, passed: Vec::new(), calls })
    }

    /// Returns whether the context already holds the next message.
    fn is_past(&self) -> bool {
        self.next < self.held
    }

    /// Returns the number of the next message.
    pub(crate) fn recorded(&self) -> u64 {
        self.next
    }

    /// Records a message, or skips it if the context holds it.
    pub(crate) fn record(
        &mut self,
        context: &mut dyn ContextManager,
        message: Message,
    ) -> Result<Recorded, ContextError> {
        let calls: Vec<_> = message.tool_calls().iter().map(|call| call.id.clone()).collect();
        let recorded = if self.is_past() {
            self.check_past(context, &message)?;
            self.passed.push(Arc::new(message));
            Recorded { seq: SeqNo(self.next), closed: Vec::new() }
        } else {
            self.check_present(context)?;
            self.note_message(&message).map_err(AgentError::into_context)?;
            context.record(message)?
        };
        self.next = recorded.seq.0 + 1;
        if !calls.is_empty() {
            self.calls = (self.next, calls);
        }
        Ok(recorded)
    }

    /// Checks that the context holds the message in its place.
    fn check_past(
        &self,
        context: &dyn ContextManager,
        message: &Message,
    ) -> Result<(), ContextError> {
        let at = SeqNo(self.next);
        let is_last = self.next + 1 == self.held;
        let detail = match self.past.marks.get(&self.next) {
            None => format!("somebody else recorded message {at}, where the run continues"),
            Some(known) if *known != mark(message, &self.notes) => {
                format!("message {at} is not the one that the run would now record there")
            }
            Some(_) if !is_last && !self.past.is_sure(self.next) => {
                format!("somebody else recorded what follows message {at}, where the run continues")
            }
            Some(_)
                if is_last
                    && contradicts(&context.prompt(&Budget::default()), message, &self.notes) =>
            {
                format!("message {at} is not the one that the run would record there")
            }
            Some(_) => return Ok(()),
        };
        Err(moved(context, &self.notes, detail).into_context())
    }

    /// Checks that nobody else has recorded anything meanwhile.
    fn check_present(&self, context: &dyn ContextManager) -> Result<(), ContextError> {
        let (held, next) = (context.recorded(), self.next);
        if held == next {
            return Ok(());
        }
        let detail = format!("it holds {held} messages, and the run left it with {next}");
        Err(moved(context, &self.notes, detail).into_context())
    }

    /// Notes the message that is about to be recorded.
    fn note_message(&mut self, message: &Message) -> Result<(), AgentError> {
        if self.past.begins.is_none_or(|begins| begins > self.next) {
            self.notes.note(KIND, &Noted::Begins(self.next))?;
            self.past = Past { begins: Some(self.next), ..Past::default() };
        }
        let mark = mark(message, &self.notes);
        if self.past.marks.get(&self.next) == Some(&mark) {
            return Ok(());
        }
        self.notes.note(KIND, &Noted::Says { at: self.next, mark })
    }

    /// Notes that the run is left with all its messages recorded.
    pub(crate) fn leave(&self) -> Result<(), AgentError> {
        if self.is_past() || self.next == self.past.left {
            return Ok(());
        }
        self.notes.note(KIND, &Noted::Leaves(self.next))
    }

    /// Returns what the context shows; if the context is ahead of the run, the messages of the run so far: no
    /// model is asked there.
    pub(crate) fn prompt(&self, context: &dyn ContextManager, budget: &Budget) -> Prompt {
        if !self.is_past() {
            return context.prompt(budget);
        }
        let (messages, tools) = (self.passed.clone(), context.tools().to_vec());
        Prompt { messages, tools, ..Prompt::default() }
    }

    /// Runs a call of one of the policy's tools. A call whose result is recorded is not repeated. Any other
    /// is, so that the policy knows its answer when that is recorded; the first answer is kept.
    pub(crate) fn call(
        &self,
        context: &mut dyn ContextManager,
        call: &ToolCall,
    ) -> Result<ToolAnswer, ContextError> {
        let Some(at) = self.place(&call.id) else { return context.call(call) };
        let known = self.past.recalled.get(&at).cloned();
        if at < self.held {
            let text = "It was answered before.".to_owned();
            return Ok(known.unwrap_or(ToolAnswer { text, is_error: false }));
        }
        let answer = context.call(call)?;
        if let Some(known) = known {
            return Ok(known);
        }
        let ToolAnswer { text, is_error } = answer.clone();
        let noted = Noted::Recalls { at, text, is_error };
        self.notes.note(KIND, &noted).map_err(AgentError::into_context)?;
        Ok(answer)
    }

    /// Returns the number that the result of a call will have.
    fn place(&self, id: &ToolCallId) -> Option<u64> {
        let (first, calls) = &self.calls;
        let place = calls.iter().position(|call| call == id)?;
        Some(first + u64::try_from(place).ok()?)
    }
}

/// Returns the calls at the end of a prompt that have no result there.
fn open_calls(prompt: &Prompt) -> Vec<ToolCallId> {
    let shown = prompt.conversation();
    let Some(at) = shown.iter().rposition(|message| *message.role() != Role::Tool) else {
        return Vec::new();
    };
    let (before, results) = shown.split_at(at + 1);
    let is_open = |id: &ToolCallId| !results.iter().any(|result| result.tool_call_id() == Some(id));
    let calls = before.last().into_iter().flat_map(|message| message.tool_calls());
    calls.map(|call| call.id.clone()).filter(is_open).collect()
}

fn moved(context: &dyn ContextManager, notes: &Notes, detail: String) -> AgentError {
    let (todo, run) = (context.todo().clone(), notes.run().to_owned());
    AgentError::ContextMoved { todo, run, detail }
}

/// Returns the mark by which a message is recognised. For the agent's instructions and for a tool's result it
/// names only the author: instructions may be reworded, and the recorded result is kept. Texts count as the journal
/// keeps them.
fn mark(message: &Message, notes: &Notes) -> String {
    let role = message.role().as_str();
    if message.role().is_instruction() {
        return role.to_owned();
    }
    if let Some(id) = message.tool_call_id() {
        return format!("{role} {}", id.as_str());
    }
    let mut hasher = blake3::Hasher::new();
    let mut part = |text: &str| {
        let text = notes.kept(text);
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    part(&message.text());
    for call in message.tool_calls() {
        [call.id.as_str(), &call.name, &call.arguments].into_iter().for_each(&mut part);
    }
    let hash = hasher.finalize().to_hex();
    format!("{role} {}", hash.get(..16).unwrap_or_default())
}

/// Returns whether a prompt shows that its last recorded message is not this one. A policy may shorten a long
/// text, but always shows the calls that wait for results, and results with their calls.
fn contradicts(prompt: &Prompt, message: &Message, notes: &Notes) -> bool {
    let shown = prompt.conversation();
    if *message.role() == Role::Tool {
        return !shown.iter().any(|other| other.tool_call_id() == message.tool_call_id());
    }
    if let Some(call) = message.tool_calls().first() {
        let mut calls = shown.iter().flat_map(|other| other.tool_calls());
        return !calls.any(|other| other.id == call.id);
    }
    let text = message.text();
    shown.last().is_some_and(|last| {
        let other = last.text();
        let is_plain = last.tool_calls().is_empty() && last.role() == message.role();
        let is_short = text.len() < SHORT_BYTES && other.len() < SHORT_BYTES;
        is_plain && is_short && !notes.kept(&other).contains(&*notes.kept(&text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R12: a recorded message counts also if the policy shows it in the part that changes from call to call.
    #[test]
    fn r12_all_that_is_recorded_is_looked_at() {
        let call = Message::calls("", vec![ToolCall::new("c1", "up", "{}")]);
        let said: Vec<Arc<Message>> = vec![Message::user("go").into(), call.into()];
        let prompt = |said: &[Arc<Message>]| Prompt {
            messages: said.to_vec(),
            volatile: said.len(),
            conversation: Some(said.to_vec()),
            ..Prompt::default()
        };
        let none = Notes::default();
        assert_eq!(open_calls(&prompt(&said)), [ToolCallId::new("c1")]);
        assert!(!contradicts(&prompt(&said), &said[1], &none));
        assert!(!contradicts(&prompt(&said[..1]), &said[0], &none));
        assert!(contradicts(&prompt(&said[..1]), &Message::user("another"), &none));
    }

    /// R12: a run from a time when observations had no name resumes.
    #[test]
    fn r12_an_observation_is_known_without_its_name() {
        let (named, plain) = (Message::observation("晴"), Message::user("晴"));
        let none = Notes::default();
        assert_eq!(mark(&named, &none), mark(&plain, &none));
        let recorded = Prompt { messages: vec![plain.into()], ..Prompt::default() };
        assert!(!contradicts(&recorded, &named, &none));
    }
}
