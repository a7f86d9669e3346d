//! The port for whatever writes the memory, and the rule that stands in for a model.

use crate::Counters;
use crate::extractive::{BY_RULE, chosen, trimmed};
use crate::note::{Note, NoteKind};
use foldback_core::{ContextError, Message, SeqNo, SideCall};
use std::sync::Arc;

/// Whatever writes the long-term memory: a rule, or a model. It runs beside the loop, on any
/// thread, and may take its time.
pub trait Compressor: Send + Sync {
    /// How what it writes comes about, as the prompt tells it: `written by a model`. What a model
    /// wrote is of the kind [`NoteKind::Summary`]; of notes of other kinds the prompt says that they
    /// are extracted by rule.
    fn name(&self) -> &str;

    /// What a finished step leaves in the memory: a few hundred tokens at most. Unless a compressor
    /// knows better, each message is trimmed by rule, which asks no model.
    ///
    /// # Errors
    /// When it fails; then the step is trimmed by rule.
    fn fold(&self, step: &Finished, counters: &Counters) -> Result<Written, ContextError> {
        Ok(Written { notes: trim(step, counters), call: None })
    }

    /// Sums the memory up in `task.max_tokens` tokens.
    ///
    /// # Errors
    /// When it fails; then the memory is summed up by rule.
    fn compress(
        &self,
        task: &Compression<'_>,
        counters: &Counters,
    ) -> Result<Written, ContextError>;
}

/// A finished step: what came in, what the model said or called, and what the tools answered.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its number, from 1.
    pub number: u64,
    /// Its messages, each with its number: results in the order of their calls.
    pub messages: Vec<(SeqNo, Arc<Message>)>,
}

/// A memory that is to be summed up.
#[derive(Clone, Debug)]
pub struct Compression<'a> {
    /// The memory, oldest first.
    pub notes: &'a [Note],
    /// The greatest number of tokens of the summary.
    pub max_tokens: usize,
    /// Fields that the summary has to keep; the policy adds those that it can find itself.
    pub schema: &'a [String],
    /// Whether a note's id stands before it.
    pub with_ids: bool,
}

impl Compression<'_> {
    /// The memory as one text, as a model would be given it.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: String = self.notes.iter().map(|note| note.line(self.with_ids)).collect();
        lines.trim_start().to_owned()
    }
}

/// What a compressor wrote.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The notes.
    pub notes: Vec<Note>,
    /// The call to a model that wrote them, or that the rule stands for.
    pub call: Option<SideCall>,
}

/// The rule that stands in for a model: it chooses notes and writes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extractive;

impl Compressor for Extractive {
    fn name(&self) -> &str {
        BY_RULE
    }

    /// Keeps what a model wrote; of what was asked, what the model did and what it found the newest,
    /// a third each; and the newest of the rest.
    fn compress(
        &self,
        task: &Compression<'_>,
        counters: &Counters,
    ) -> Result<Written, ContextError> {
        let notes = task.notes.iter().filter(|note| note.kind != NoteKind::Field).cloned();
        let sizes = counters.sizes.as_ref();
        let notes = chosen(notes.collect(), task.max_tokens, task.with_ids, sizes);
        let bill = |notes: &[Note]| {
            let tokens = |note: &Note| note.tokens(task.with_ids, counters.bills.as_ref());
            notes.iter().map(tokens).sum()
        };
        let (input_tokens, output_tokens) = (bill(task.notes), bill(&notes));
        let call = SideCall { purpose: "summary", input_tokens, output_tokens, cost: None };
        Ok(Written { notes, call: Some(call) })
    }
}

/// Trims each message of a step.
pub(crate) fn trim(step: &Finished, counters: &Counters) -> Vec<Note> {
    let messages = step.messages.iter();
    messages.flat_map(|(seq, message)| trimmed(*seq, message, counters.sizes.as_ref())).collect()
}
