//! Masking old observations: what SWE-agent does. JetBrains found that it halves the cost of the agent
//! that keeps everything, at a solve rate that matches summaries (arXiv 2508.21433).
//!
//! The newest tool results are kept; each older one is replaced by a line that says how long it was.

use crate::Counters;
use crate::log::Log;
use crate::masks::Masks;
use crate::policy::{self, Rule};
use foldback_core::{ContextManager, Message, TodoId};

/// A policy that masks all tool results but the last few, whatever their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskObservations {
    /// The number of the newest results that are kept.
    pub keep_results: usize,
}

impl Default for MaskObservations {
    /// Returns the default: the last 10.
    fn default() -> Self {
        Self { keep_results: 10 }
    }
}

impl MaskObservations {
    /// Returns an empty context.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        policy::start(Masking { config: self, masks: Masks::default() }, todo, tokens)
    }
}

struct Masking {
    config: MaskObservations,
    masks: Masks,
}

impl Rule for Masking {
    fn again(&self) -> Self {
        Self { config: self.config, masks: Masks::default() }
    }

    fn apply(&mut self, log: &mut Log) {
        self.masks.see(log);
        self.masks.apply(log, self.config.keep_results, line);
    }
}

/// Returns the text in place of a masked result.
fn line(result: &Message) -> String {
    match result.text().lines().count() {
        1 => "[old result, 1 line left out]".to_owned(),
        lines => format!("[old result, {lines} lines left out]"),
    }
}
