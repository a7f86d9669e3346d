//! Who writes summaries where the original asks a model: the digest, with what that model's calls
//! would take.

use crate::digest::Digest;
use crate::log::{Entry, Log};
use foldback_core::SideCall;

/// Writes summaries by rule, and counts the calls of the model that it stands in for.
#[derive(Clone, Debug)]
pub(crate) struct Summarizer {
    digest: Digest,
    max_tokens: usize,
    calls: Vec<SideCall>,
}

impl Summarizer {
    /// One that writes summaries of at most `max_tokens`.
    pub(crate) fn new(max_tokens: usize) -> Self {
        Self { digest: Digest::default(), max_tokens, calls: Vec::new() }
    }

    /// The summary of what has just left the log, and of what was summed up before; `None` when
    /// nothing left. The model would be sent the summary before and all that left; what it is told
    /// to do is not counted.
    pub(crate) fn sum_up(&mut self, gone: &[Entry], log: &Log) -> Option<String> {
        if gone.is_empty() {
            return None;
        }
        let counter = log.counter().as_ref();
        for entry in gone {
            self.digest.take(entry.recorded(), counter);
        }
        self.digest.shrink(self.max_tokens, counter);
        let text = self.digest.text();
        let left: usize = gone.iter().map(Entry::tokens).sum();
        self.calls.push(SideCall {
            purpose: "summary",
            input_tokens: log.lead_tokens() + left,
            output_tokens: counter.count(&text),
        });
        Some(text)
    }

    /// The calls since this was last asked.
    pub(crate) fn side_calls(&mut self) -> Vec<SideCall> {
        std::mem::take(&mut self.calls)
    }
}
