//! The stream that a client gets of several answers.

use super::chat::Chat;
use super::messages::Messages;
use super::responses::Responses;
use super::wire::{Fate, Heard, Wire};
use crate::Api;
use crate::sse::{Event, Events};
use crate::usage::Usage;

/// Makes one stream of the answers of a model within a turn. It waits for nothing and asks nobody.
pub(super) struct Stream {
    wire: Box<dyn Wire>,
    heard: Heard,
    events: Events,
    /// The answer as it came.
    answer: Vec<u8>,
    /// What the client has.
    shown: Vec<u8>,
    /// What ends the client's answer, unless the model is asked again.
    held: Vec<(Event, Option<String>)>,
}

impl Stream {
    /// A stream, of which the client sees everything but calls of these tools.
    pub(super) fn new(api: Api, tools: Vec<String>) -> Self {
        let wire: Box<dyn Wire> = match api {
            Api::Messages => Box::new(Messages),
            Api::ChatCompletions => Box::<Chat>::default(),
            _ => Box::<Responses>::default(),
        };
        let (events, heard) = (Events::default(), Heard::new(tools));
        Self { wire, heard, events, answer: Vec::new(), shown: Vec::new(), held: Vec::new() }
    }

    /// Reads what comes of an answer, and gives what the client gets of it now.
    pub(super) fn read(&mut self, piece: &[u8]) -> Vec<u8> {
        self.events.push(piece);
        let mut out = Vec::new();
        while let Some(event) = self.events.next() {
            self.answer.extend_from_slice(&event.raw);
            self.take(event, &mut out);
        }
        self.shown.extend_from_slice(&out);
        out
    }

    fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        if event.data.is_empty() {
            return out.extend_from_slice(&event.raw);
        }
        match self.wire.fate(&mut self.heard, &event.data) {
            Fate::Pass => out.extend_from_slice(&event.raw),
            Fate::Held if self.heard.is_untouched() => out.extend_from_slice(&event.raw),
            Fate::Changed(data) => out.extend_from_slice(event.with(&data).as_bytes()),
            Fate::Hidden => {}
            Fate::Held => self.held.push((event, None)),
            Fate::Split(now, later) => {
                let now = now.map(|data| event.with(&data)).unwrap_or_default();
                out.extend_from_slice(now.as_bytes());
                self.held.push((event, Some(later)));
            }
        }
    }

    /// Whether the answer is at its end, and something of the turn is hidden from the client.
    pub(super) fn is_to_be_decided(&self) -> bool {
        self.heard.is_over && !self.heard.is_untouched()
    }

    /// Takes the answer as ended where nothing more comes of it; gives whether its end is there.
    pub(super) fn close(&mut self) -> bool {
        self.heard.is_over |= !self.held.is_empty();
        self.is_to_be_decided()
    }

    /// Whether the client does not hear of what is going on.
    pub(super) fn is_hiding(&self) -> bool {
        !self.heard.is_untouched()
    }

    /// The answer as it came, and whether it ended because the model was done.
    pub(super) fn answer(&self) -> (String, bool) {
        (String::from_utf8_lossy(&self.answer).into_owned(), self.heard.is_whole)
    }

    /// What the answer is billed, as far as it said so.
    pub(super) fn usage(&self) -> &Usage {
        &self.heard.usage
    }

    /// The model is asked again.
    pub(super) fn go_on(&mut self) {
        self.heard.go_on();
        self.events.rest();
        self.answer.clear();
        self.held.clear();
    }

    /// What ends the client's answer.
    pub(super) fn end(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for (event, changed) in std::mem::take(&mut self.held) {
            let data = changed.as_ref().unwrap_or(&event.data);
            let last = self.wire.last(&self.heard, data).or(changed);
            match last.filter(|last| *last != event.data) {
                Some(last) => out.extend_from_slice(event.with(&last).as_bytes()),
                None => out.extend_from_slice(&event.raw),
            }
        }
        self.shown.extend_from_slice(&out);
        out
    }

    /// Everything that the client has.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// What there is of an answer that broke off.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut out = self.end();
        out.extend_from_slice(&self.events.rest());
        out
    }

    /// The event that says that there is no more, in the words of a provider's error.
    pub(super) fn error(&mut self, body: &str) -> String {
        self.wire.error(body)
    }

    pub(super) fn ping(&self) -> &'static str {
        self.wire.ping()
    }
}

#[cfg(test)]
mod tests;
