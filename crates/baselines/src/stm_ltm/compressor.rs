//! The port for whatever writes the memory, and the rule that stands in for a model.

use super::note::{Note, NoteKind, excerpt};
use foldback_core::{ContextError, Message, Role, SeqNo, SideCall, TokenCounter};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whatever writes the long-term memory: a rule, or a model. It runs beside the loop, on any
/// thread, and may take its time.
pub trait Compressor: Send + Sync {
    /// How the memory comes about, as the prompt tells it: `extracted by rule`.
    fn name(&self) -> &str;

    /// What a finished step leaves in the memory: a few hundred tokens at most. Unless a compressor
    /// knows better, each message is trimmed by rule, which asks no model.
    ///
    /// # Errors
    /// When it fails; then the step is trimmed by rule.
    fn fold(&self, step: &Finished, counter: &dyn TokenCounter) -> Result<Written, ContextError> {
        Ok(Written { notes: trim(step, counter), call: None })
    }

    /// Sums the memory up in `task.max_tokens` tokens.
    ///
    /// # Errors
    /// When it fails; then the memory is summed up by rule.
    fn compress(
        &self,
        task: &Compression<'_>,
        counter: &dyn TokenCounter,
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
        "extracted by rule, not written by a model"
    }

    /// Gives up results first, then what the model did, then what was asked, of each kind the
    /// oldest; and of notes that say the same all but the newest.
    fn compress(
        &self,
        task: &Compression<'_>,
        counter: &dyn TokenCounter,
    ) -> Result<Written, ContextError> {
        let is_kept = |note: &&Note| note.kind != NoteKind::Field;
        // No note may take so much that nothing else has room.
        let cut = |note: &Note| match note.tokens(task.with_ids, counter) <= task.max_tokens / 2 {
            true => note.clone(),
            false => {
                Note { text: excerpt(&note.text, task.max_tokens / 2, counter), ..note.clone() }
            }
        };
        let mut notes: Vec<Note> = task.notes.iter().filter(is_kept).map(cut).collect();
        let mut order: Vec<(usize, &Note)> = notes.iter().enumerate().collect();
        order.sort_by_key(|(at, note)| Reverse((note.kind, *at)));
        let (mut said, mut stay) = (BTreeSet::new(), BTreeSet::new());
        let mut output_tokens = 0;
        for (at, note) in order {
            if !said.insert(&note.text) {
                continue;
            }
            let tokens = note.tokens(task.with_ids, counter);
            if output_tokens + tokens > task.max_tokens {
                break;
            }
            output_tokens += tokens;
            stay.insert(at);
        }
        let mut places = 0..;
        notes.retain(|_| places.next().is_some_and(|at| stay.contains(&at)));
        let input = task.notes.iter().map(|note| note.tokens(task.with_ids, counter));
        let call = SideCall { purpose: "summary", input_tokens: input.sum(), output_tokens };
        Ok(Written { notes, call: Some(call) })
    }
}

/// The greatest number of tokens of what was asked, of what the model said, of one call's
/// arguments, and of one result. Such a step takes about 300, so that the memory holds a dozen.
const ASKED_TOKENS: usize = 120;
const SAID_TOKENS: usize = 60;
const CALL_TOKENS: usize = 60;
const RESULT_TOKENS: usize = 160;

/// Trims each message of a step.
pub(crate) fn trim(step: &Finished, counter: &dyn TokenCounter) -> Vec<Note> {
    let mut notes = Vec::new();
    for (seq, message) in &step.messages {
        let mut push = |kind, text| notes.push(Note { kind, of: Some(*seq), text });
        let (kind, max) = match message.role() {
            Role::Tool => (NoteKind::Result, RESULT_TOKENS),
            Role::User => (NoteKind::Asked, ASKED_TOKENS),
            _ => (NoteKind::Did, SAID_TOKENS),
        };
        let text = excerpt(&message.text(), max, counter);
        match message.role() {
            Role::Tool => push(kind, format!("-> {text}")),
            _ if text.is_empty() => {}
            role => push(kind, format!("{}: {text}", role.as_str())),
        }
        for call in message.tool_calls() {
            let arguments = excerpt(&call.arguments, CALL_TOKENS, counter);
            push(NoteKind::Did, format!("{} {arguments}", call.name).trim_end().to_owned());
        }
    }
    notes
}
