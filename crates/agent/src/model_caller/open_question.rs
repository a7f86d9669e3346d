//! A question in progress, and what it takes if its answer cannot be used.

use super::{ModelCaller, recorded_answers};
use crate::spend_tracker::BegunCall;
use foldback_core::{Estimate, TokenCounter};
use foldback_llm::{ChatResponse, ModelError, ModelErrorKind, Usage};
use parking_lot::Mutex;

/// A question in progress. If it is dropped after its answer began, the estimated tokens of the request and of
/// what was heard are charged, where a limit depends on them.
pub(super) struct OpenQuestion<'a> {
    caller: &'a ModelCaller,
    /// `None` once it is answered.
    begun: Option<BegunCall>,
    /// The estimated tokens of the request.
    input: u64,
    /// What was heard of the answer, if it has begun.
    heard: Mutex<Option<String>>,
}

impl<'a> OpenQuestion<'a> {
    pub(super) fn new(caller: &'a ModelCaller, begun: BegunCall, input: u64) -> Self {
        Self { caller, begun: Some(begun), input, heard: Mutex::default() }
    }

    /// Notes more of the answer, which has begun.
    pub(super) fn hear(&self, more: &str) {
        self.heard.lock().get_or_insert_default().push_str(more);
    }

    /// Notes that the answer broke off and is requested again: what it took is lost.
    pub(super) fn again(&self) {
        self.caller.lose(self.estimate());
        *self.heard.lock() = None;
    }

    /// Notes the outcome; a failure gets the tokens that its answer took. Until the returned call is dropped, its
    /// estimate counts as spent.
    pub(super) fn end(
        mut self,
        answer: &mut Result<ChatResponse, ModelError>,
    ) -> Option<BegunCall> {
        if let Err(error) = answer {
            let is_unknown = error.usage.unwrap_or_default() == Usage::default();
            if is_unknown && error.usage.is_some() {
                // The answer came, although nothing was heard of it.
                self.hear("");
            }
            if is_unknown {
                error.usage = Some(self.estimate()).filter(|usage| *usage != Usage::default());
            }
            if let (Some(usage), false) = (error.usage, error.kind == ModelErrorKind::Response) {
                self.caller.note_lost(usage);
            }
        }
        self.begun.take()
    }

    /// Returns the estimated tokens so far: none before the answer begins, or if no limit depends on them.
    fn estimate(&self) -> Usage {
        match &*self.heard.lock() {
            Some(heard) if self.caller.log.spend().bounds_usage() => Usage {
                input: self.input,
                output: Estimate.count(heard) as u64,
                ..Usage::default()
            },
            _ => Usage::default(),
        }
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.begun.is_some() {
            self.caller.lose(self.estimate());
        }
    }
}

impl ModelCaller {
    /// Charges what an answer took that nobody receives.
    fn lose(&self, usage: Usage) {
        if usage != Usage::default() {
            self.log.spend().charge(usage);
            self.note_lost(usage);
        }
    }

    /// Records what such an answer took, for a resumed run to count.
    fn note_lost(&self, usage: Usage) {
        let Some(journal) = &self.journal else { return };
        let noted = recorded_answers::lost(usage);
        if let Err(error) = noted.and_then(|note| journal.append(&self.run, &note)) {
            tracing::warn!(run = self.run, %error, "the tokens of a lost answer were not recorded");
        }
    }
}
