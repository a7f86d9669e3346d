//! The writer of summaries for policies whose original asks a model: a rule, together with the usage of
//! that model's calls.

use crate::compressor::Written;
use crate::extractive::{BY_RULE, chosen, trimmed};
use crate::log::{Entry, Log};
use crate::note::{Note, NoteKind, excerpt};
use foldback_core::{Role, SideCall, message_tokens};

/// A writer of summaries by rule that counts the calls of the model it stands in for.
#[derive(Clone, Debug)]
pub(crate) struct Summarizer {
    /// The notes of the last summary.
    notes: Vec<Note>,
    has_task: bool,
    max_tokens: usize,
    calls: Vec<SideCall>,
}

impl Summarizer {
    /// Returns a writer of summaries of at most `max_tokens`.
    pub(crate) fn new(max_tokens: usize) -> Self {
        Self { notes: Vec::new(), has_task: false, max_tokens, calls: Vec::new() }
    }

    /// Returns the summary of what has just left the log and of what was summed up before; `None` if
    /// nothing left. The model would be sent the previous summary and everything that left; its
    /// instructions are not counted.
    pub(crate) fn sum_up(&mut self, gone: &[Entry], log: &Log) -> Option<String> {
        if gone.is_empty() {
            return None;
        }
        let counter = log.counters().sizes.as_ref();
        for entry in gone {
            let message = entry.recorded();
            if *message.role() == Role::User && !self.has_task {
                self.has_task = true;
                // The intent is the first of the four sections that the original asks for.
                let text = excerpt(&message.text(), self.max_tokens / 4, counter);
                let text = format!("user: {text}");
                self.notes.push(Note { kind: NoteKind::Task, of: Some(entry.seq()), text });
            } else {
                self.notes.extend(trimmed(entry.seq(), message, counter));
            }
        }
        let mut text = head(BY_RULE);
        let room = self.max_tokens.saturating_sub(counter.count(&text));
        self.notes = chosen(std::mem::take(&mut self.notes), room, false, counter);
        for note in &self.notes {
            text.push_str(&note.line(false));
        }
        let bills = log.counters().bills.as_ref();
        let sent = log.lead().into_iter().chain(gone.iter().map(Entry::shown));
        self.calls.push(SideCall {
            purpose: "summary",
            input_tokens: sent.map(|message| message_tokens(bills, message)).sum(),
            output_tokens: bills.count(&text),
            cost: None,
        });
        Some(text)
    }

    /// Takes a summary that something else has written of everything that left: the next rule-written
    /// one is based on it.
    pub(crate) fn take(&mut self, by: &str, written: Written) -> String {
        self.has_task = true;
        self.calls.extend(written.call);
        self.notes = written.notes;
        let lines: String = self.notes.iter().map(|note| note.line(false)).collect();
        head(by) + &lines
    }

    /// Records a call that was made without a result.
    pub(crate) fn was_charged(&mut self, call: Option<SideCall>) {
        self.calls.extend(call);
    }

    /// Returns the calls since this was last called.
    pub(crate) fn side_calls(&mut self) -> Vec<SideCall> {
        std::mem::take(&mut self.calls)
    }
}

/// Returns the beginning of a summary.
fn head(by: &str) -> String {
    format!("Here is a summary of the conversation to date ({by}):")
}
