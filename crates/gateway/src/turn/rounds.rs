//! The requests of one turn.

use super::Recall;
use super::begun::{self, Begun};
use super::calls::{Call, answered, as_messages, calls, sent_back, without};
use super::edits::{Edits, members};
use super::failed::Failed;
use super::parked::{Answered, Parked, names};
use crate::client_message::Facts;
use crate::model_answer::message_of;
use crate::usage::Usage;
use crate::{Api, exact};
use bytes::Bytes;
use foldback::ParkedName;
use serde_json::Value;
use serde_json::value::RawValue;

/// How often our tools are answered in a turn.
const MOST: usize = 8;

/// The text after the last answers.
const NO_MORE: &str =
    "\n\n[foldback: these were the last look-ups of this turn. Continue with what you have.]";

/// The requests of one turn. A model's calls are looked up in the store, which takes time: none of this belongs on a
/// thread that serves others.
pub(super) struct Rounds {
    api: Api,
    recall: Recall,
    body: String,
    /// Whether the client wants the provider to keep nothing.
    is_unkept: bool,
    /// What was said in this turn so far, of which the client knows only a part.
    said: Vec<Value>,
    begun: Begun,
    count: usize,
}

/// What happens next.
pub(super) enum Next {
    /// The model is asked again, with this body.
    Ask(Bytes),
    /// The client gets the end of its answer; the parked messages replace it in later requests.
    End(Option<Parked>),
}

impl Rounds {
    pub(super) fn new(api: Api, body: &str, recall: Recall) -> Self {
        let store = members(body).and_then(|request| request.get("store").copied());
        let is_unkept = store.is_some_and(|store| store.get() == "false");
        let (body, said, begun) = (body.to_owned(), Vec::new(), Begun::default());
        Self { api, recall, body, is_unkept, said, begun, count: 0 }
    }

    /// Returns the names of our tools.
    pub(super) fn tools(&self) -> &[String] {
        &self.recall.tools
    }

    /// Records what the request in progress was billed, as far as the answer has reported it.
    pub(super) fn bill(&self, usage: &Usage) {
        let mut billed = self.recall.billed.lock();
        billed.truncate(self.count);
        billed.push(*usage);
    }

    /// Notes that a later request of the turn failed. A provider's words may quote it, and are not noted.
    pub(super) fn failed(&self, failed: &Failed) {
        (self.recall.log)(&failed.to_string());
        if failed.status.is_some_and(|status| !status.is_success()) {
            self.recall.ledger.refused();
        }
    }

    /// Returns what happens after an answer of the model. `is_whole` means that it ended because the model was done.
    pub(super) fn after(&mut self, answer: &str, is_whole: bool) -> Next {
        let message = message_of(self.api, answer);
        let message = message.and_then(|message| exact::read(message.get()));
        let Some(message) = message else { return Next::End(None) };
        let calls = calls(self.api, &message, &self.recall.tools);
        let ours = calls.iter().filter(|call| call.ours.is_some()).count();
        let is_answered = ours > 0 && is_whole && self.count < MOST;
        if !is_answered {
            let message = without(self.api, message, &calls);
            let parked = (!self.said.is_empty()).then(|| self.parked(message, Vec::new()));
            return Next::End(parked);
        }
        self.count += 1;
        let is_last = self.count == MOST && ours == calls.len();
        let answers: Vec<_> = calls.iter().map(|call| self.answer(call, is_last)).collect();
        if ours < calls.len() {
            let answer = |(call, ours): (&Call, Option<Value>)| Answered {
                call: call.id.clone(),
                ours: ours.and_then(|ours| RawValue::from_string(ours.to_string()).ok()),
            };
            let answers = calls.iter().zip(answers).map(answer).collect();
            return Next::End(Some(self.parked(message, answers)));
        }
        let shown = without(self.api, message.clone(), &calls);
        let mut said = sent_back(self.api, message, self.is_unkept);
        said.extend(as_messages(self.api, answers.into_iter().flatten().collect()));
        self.begun.push(self.api, &shown, &said);
        self.said.extend(said);
        self.keep_begun();
        Next::Ask(Bytes::from(self.next_body()))
    }

    /// Keeps what replaces the client's message, the one in its answer, in later requests. If that fails, the
    /// client continues with what it knows.
    pub(super) fn park(&self, parked: &Parked, answer: &str) {
        let message = message_of(self.api, answer);
        let redacts = self.recall.memory.is_redacting();
        let read = message.and_then(|message| Facts::of(self.api, message.get(), redacts).ok());
        let Some(message) = read else {
            (self.recall.log)("the look-ups of a turn are not kept: its answer broke off");
            return;
        };
        let mut said = self.recall.said.clone();
        said.push(message);
        let names = names(&said);
        let Some(name) = names.last() else { return };
        self.keep(name, &parked.to_json());
    }

    /// Keeps what was said so far, because the client may break off at any time from here on. Chat-completions
    /// have no thinking that would be bound to it.
    fn keep_begun(&self) {
        let names = begun::names(&self.recall.said);
        if let Some(name) = names.last().filter(|_| self.api != Api::ChatCompletions) {
            self.keep(name, &self.begun.to_json());
        }
    }

    fn keep(&self, name: &ParkedName, json: &str) {
        if let Err(error) = self.recall.memory.park(&self.recall.todo, name, json) {
            (self.recall.log)(&format!("the look-ups of a turn are not kept: {error}"));
        }
    }

    fn parked(&mut self, message: Value, answers: Vec<Answered>) -> Parked {
        let mut messages = std::mem::take(&mut self.said);
        messages.extend(sent_back(self.api, message, self.is_unkept));
        Parked::new(&messages, answers)
    }

    /// Returns the answer to a call, which may be among the last; `None` if the call is the client's.
    fn answer(&self, call: &Call, is_last: bool) -> Option<Value> {
        let tool = call.ours.as_deref()?;
        let Recall { memory, todo, log, .. } = &self.recall;
        let (mut text, is_error) = match memory.call_tool(todo, tool, &call.arguments) {
            Ok(answer) => (answer.text, answer.is_error),
            Err(error) => {
                log(&format!("a call of {tool} is not answered: {error}"));
                (format!("[{tool}: error] The memory cannot be read now."), true)
            }
        };
        if is_last {
            text.push_str(NO_MORE);
        }
        Some(answered(self.api, &call.id, &text, is_error))
    }

    /// Returns the body of the next request: what was said follows the client's messages.
    fn next_body(&self) -> String {
        let Some(request) = members(&self.body) else { return self.body.clone() };
        let mut edits = Edits::new(&self.body);
        let said: Vec<String> = self.said.iter().map(exact::write).collect();
        let said = said.join(",");
        let key = if self.api == Api::Responses { "input" } else { "messages" };
        match request.get(key) {
            Some(text) if text.get().starts_with('"') => {
                let first = format!("{{\"role\":\"user\",\"content\":{}}}", text.get());
                edits.replace(text.get(), format!("[{first},{said}]"));
            }
            Some(list) => edits.append(list, &said),
            None => {}
        }
        if self.count == MOST {
            let none = if self.api == Api::Messages { r#"{"type":"none"}"# } else { r#""none""# };
            edits.set(&request, "tool_choice", none);
        }
        edits.finish()
    }
}
