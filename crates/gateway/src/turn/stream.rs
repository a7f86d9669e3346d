//! One stream for a client, from several answers.

use super::chat::Chat;
use super::failed::Failed;
use super::messages::Messages;
use super::responses::Responses;
use super::wire::{Fate, Heard, Wire};
use crate::Api;
use crate::sse::{Event, Events};
use crate::usage::Usage;

/// Merges the answers of a model within a turn into one stream. It does no waiting and sends no requests.
pub(super) struct Stream {
    wire: Box<dyn Wire>,
    heard: Heard,
    events: Events,
    /// The answer as it came.
    answer: Vec<u8>,
    /// What the client has received.
    shown: Vec<u8>,
    /// The end of the client's answer, unless the model is asked again.
    held: Vec<(Event, Option<String>)>,
}

impl Stream {
    /// Creates a stream in which the client sees everything but calls of these tools.
    pub(super) fn new(api: Api, tools: Vec<String>) -> Self {
        let wire: Box<dyn Wire> = match api {
            Api::Messages => Box::new(Messages),
            Api::ChatCompletions => Box::<Chat>::default(),
            _ => Box::<Responses>::default(),
        };
        let (events, heard) = (Events::default(), Heard::new(tools));
        Self { wire, heard, events, answer: Vec::new(), shown: Vec::new(), held: Vec::new() }
    }

    /// Reads a piece of an answer, and returns what the client gets of it now.
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

    /// Returns whether the answer has ended, and something in the turn is hidden from the client.
    pub(super) fn is_to_be_decided(&self) -> bool {
        self.heard.is_over && !self.heard.is_untouched()
    }

    /// Treats the answer as ended if nothing more comes; returns whether its end was received.
    pub(super) fn close(&mut self) -> bool {
        self.heard.is_over |= !self.held.is_empty();
        self.is_to_be_decided()
    }

    /// Returns whether what is happening is hidden from the client.
    pub(super) fn is_hiding(&self) -> bool {
        !self.heard.is_untouched()
    }

    /// Returns the answer as it came, and whether it ended because the model was done.
    pub(super) fn answer(&self) -> (String, bool) {
        (String::from_utf8_lossy(&self.answer).into_owned(), self.heard.is_whole)
    }

    /// Returns what the answer is billed, as far as it reported it.
    pub(super) fn usage(&self) -> &Usage {
        &self.heard.usage
    }

    /// Prepares for the next answer: the model is asked again.
    pub(super) fn go_on(&mut self) {
        self.heard.go_on();
        self.events.rest();
        self.answer.clear();
        self.held.clear();
    }

    /// Returns the end of the client's answer.
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

    /// Returns everything that the client has received.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Returns the rest of an answer that broke off.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut out = self.end();
        out.extend_from_slice(&self.events.rest());
        out
    }

    /// Returns the event that ends the stream with an error, in the format of a provider's error.
    pub(super) fn error(&mut self, failed: &Failed) -> String {
        self.wire.error(failed)
    }

    pub(super) fn ping(&self) -> &'static str {
        self.wire.ping()
    }
}

#[cfg(test)]
mod tests;
