//! A summary and the last messages: what LangChain's summarization does.
//!
//! When the messages (not counting the instructions at the beginning) reach a number of tokens and the
//! model is to speak next, everything but the last messages is replaced by one user message that sums
//! it up, and is gone for good. The next summary is made from the previous one and from what leaves
//! then. The cut never separates a call from its results: it moves back to the message that calls.
//!
//! If something other than the rule writes the summaries, it does so beside the loop: until it is done
//! the history is sent unchanged, and at twice the tokens the rule writes one after all.

use crate::Counters;
use crate::compressor::{Compression, Compressor, Written};
use crate::extractive::SUMMARY_TOKENS;
use crate::log::{Entry, Log};
use crate::note::{Note, NoteKind, excerpt};
use crate::policy::{self, Rule};
use crate::summarizer::Summarizer;
use crate::words::words;
use foldback_core::{
    BackgroundJob, BackgroundJobDone, ContextError, ContextManager, Message, Role, SeqNo, SideCall,
    TodoId,
};
use std::sync::{Arc, Weak};

/// The policy: when a summary is made, and of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryTopN {
    /// The number of tokens from which on the history is summed up.
    pub trigger_tokens: usize,
    /// The number of messages at the end that stay unchanged; a unit that the cut would split stays
    /// whole.
    pub keep_messages: usize,
    /// The maximum number of tokens in a summary.
    pub summary_tokens: usize,
}

impl Default for SummaryTopN {
    /// Returns the defaults: 40,000 tokens (a choice of this crate: LangChain has no trigger of its
    /// own), the last 20 messages, a summary of at most 2,000 tokens.
    fn default() -> Self {
        Self { trigger_tokens: 40_000, keep_messages: 20, summary_tokens: SUMMARY_TOKENS }
    }
}

impl SummaryTopN {
    /// Returns an empty context.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        self.start_with(todo, tokens, None)
    }

    /// Returns the same, with summaries written by this writer, if there is one.
    #[must_use]
    pub fn start_with(
        self,
        todo: TodoId,
        tokens: impl Into<Counters>,
        compressor: Option<Arc<dyn Compressor>>,
    ) -> Box<dyn ContextManager> {
        policy::start(Summing::new(self, compressor), todo, tokens)
    }
}

struct Summing {
    config: SummaryTopN,
    summarizer: Summarizer,
    compressor: Option<Arc<dyn Compressor>>,
    /// Lives as long as a summary is being written.
    writing: Weak<()>,
}

/// The result of a summary that was written beside the loop, of everything up to a message; nothing if
/// it failed. It keeps the token alive until it is taken.
struct Done {
    token: Arc<()>,
    to: SeqNo,
    written: Option<Written>,
}

impl Summing {
    fn new(config: SummaryTopN, compressor: Option<Arc<dyn Compressor>>) -> Self {
        let summarizer = Summarizer::new(config.summary_tokens);
        Self { config, summarizer, compressor, writing: Weak::new() }
    }

    /// Returns how many messages a summary would replace now; none if it is not due.
    fn due(&self, log: &Log, trigger_tokens: usize) -> usize {
        let size = log.tokens() - log.head_tokens();
        if !log.is_model_next() || size < trigger_tokens {
            return 0;
        }
        log.cut_at_or_before(log.history().len().saturating_sub(self.config.keep_messages))
    }

    fn sum_up_by_rule(&mut self, log: &mut Log, count: usize) {
        let gone = log.drop_front(count);
        if let Some(summary) = self.summarizer.sum_up(&gone, log) {
            log.set_lead(Some(Message::user(&summary)));
        }
    }
}

impl Rule for Summing {
    fn again(&self) -> Self {
        Self::new(self.config, self.compressor.clone())
    }

    fn apply(&mut self, log: &mut Log) {
        let patience = if self.compressor.is_some() { 2 } else { 1 };
        let count = self.due(log, self.config.trigger_tokens.saturating_mul(patience));
        if count > 0 {
            // A summary of it that is still being written comes too late.
            self.writing = Weak::new();
            self.sum_up_by_rule(log, count);
        }
    }

    fn works_beside(&self) -> bool {
        self.compressor.is_some()
    }

    fn next_job(&mut self, log: &Log) -> Option<BackgroundJob> {
        let compressor = Arc::clone(self.compressor.as_ref()?);
        if self.writing.strong_count() > 0 {
            return None;
        }
        let count = self.due(log, self.config.trigger_tokens);
        let to = log.history().get(count.checked_sub(1)?)?.seq();
        let before = log.lead().map(|lead| Note {
            kind: NoteKind::Summary,
            of: None,
            text: lead.text().into_owned(),
        });
        let leaving = log.history().iter().take(count).flat_map(notes_of);
        let notes: Vec<Note> = before.into_iter().chain(leaving).collect();
        let (counters, max_tokens) = (log.counters().clone(), self.config.summary_tokens);
        let token = Arc::new(());
        self.writing = Arc::downgrade(&token);
        Some(BackgroundJob(Box::new(move || {
            let task = Compression { notes: &notes, max_tokens, schema: &[], with_ids: false };
            let written = compressor.compress(&task, &counters).ok();
            BackgroundJobDone(Box::new(Done { token, to, written }))
        })))
    }

    fn absorb(&mut self, log: &mut Log, done: BackgroundJobDone) -> Result<(), ContextError> {
        let done = done.0.downcast::<Done>().map_err(|_| ContextError {
            message: "this is not a summary that the policy summary-top-n requested".to_owned(),
            source: None,
        })?;
        let Done { token, to, mut written } = *done;
        if !self.writing.ptr_eq(&Arc::downgrade(&token)) {
            // The rule was quicker; it was paid for all the same.
            self.summarizer.was_charged(written.and_then(|written| written.call));
            return Ok(());
        }
        self.writing = Weak::new();
        let count = log.history().iter().take_while(|entry| entry.seq() <= to).count();
        let (Some(written), Some(compressor)) = (&mut written, &self.compressor) else {
            self.sum_up_by_rule(log, count);
            return Ok(());
        };
        let sizes = log.counters().sizes.as_ref();
        for note in &mut written.notes {
            note.text = excerpt(&note.text, self.config.summary_tokens, sizes);
        }
        let summary = self.summarizer.take(compressor.name(), std::mem::take(written));
        log.drop_front(count);
        log.set_lead(Some(Message::user(&summary)));
        Ok(())
    }

    fn side_calls(&mut self) -> Vec<SideCall> {
        self.summarizer.side_calls()
    }
}

/// Returns a message as its summariser reads it: everything it says, and each call on a line.
fn notes_of(entry: &Entry) -> Option<Note> {
    let message = entry.shown();
    let kind = match message.role() {
        Role::Tool => NoteKind::Result,
        Role::Assistant => NoteKind::Did,
        _ => NoteKind::Asked,
    };
    let said = words(message);
    let text = format!("{}: {said}", message.role().as_str());
    (!said.trim().is_empty()).then_some(Note { kind, of: Some(entry.seq()), text })
}
