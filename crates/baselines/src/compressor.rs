//! The port for writers of the memory, and the rule that stands in for a model.

use crate::Counters;
use crate::extractive::{BY_RULE, chosen, trimmed};
use crate::note::{Note, NoteKind};
use foldback_core::{ContextError, Message, SeqNo, SideCall};
use std::sync::Arc;

/// A writer of the long-term memory: a rule, or a model. It runs beside the loop, on any thread, and
/// may take its time.
pub trait Compressor: Send + Sync {
    /// How its texts come about, as the prompt says it: `written by a model`. A model's texts have the
    /// kind [`NoteKind::Summary`]; the prompt says that notes of other kinds are extracted by rule.
    fn name(&self) -> &str;

    /// Returns what a finished step leaves in the memory: a few hundred tokens at most. Unless a
    /// compressor overrides this, each message is trimmed by rule, without a model.
    ///
    /// # Errors
    /// When it fails; the step is then trimmed by rule.
    fn fold(&self, step: &Finished, counters: &Counters) -> Result<Written, ContextError> {
        Ok(Written { notes: trim(step, counters), call: None })
    }

    /// Sums the memory up in `task.max_tokens` tokens.
    ///
    /// # Errors
    /// When it fails; the memory is then summed up by rule.
    fn compress(
        &self,
        task: &Compression<'_>,
        counters: &Counters,
    ) -> Result<Written, ContextError>;
}

/// A finished step: what came in, what the model said or called, and what the tools answered.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its messages, each with its number: results in the order of their calls.
    pub messages: Vec<(SeqNo, Arc<Message>)>,
}

/// A memory to be summed up.
#[derive(Clone, Debug)]
pub struct Compression<'a> {
    /// The memory, oldest first.
    pub notes: &'a [Note],
    /// The maximum number of tokens in the summary.
    pub max_tokens: usize,
    /// Fields that the summary must keep; the policy adds those that it finds itself.
    pub schema: &'a [String],
    /// Whether each note is preceded by its id.
    pub with_ids: bool,
}

impl Compression<'_> {
    /// Returns the memory as one text, as a model would be given it.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: String = self.notes.iter().map(|note| note.line(self.with_ids)).collect();
        lines.trim_start().to_owned()
    }
}

/// The output of a compressor.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The notes.
    pub notes: Vec<Note>,
    /// The model call that wrote them, or that the rule stands in for.
    pub call: Option<SideCall>,
}

/// The rule that stands in for a model: it chooses notes and writes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extractive;

impl Compressor for Extractive {
    fn name(&self) -> &str {
        BY_RULE
    }

    /// Keeps what a model wrote; of requests, the model's actions and its findings, the newest of each
    /// up to a third; and the newest of the rest.
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
