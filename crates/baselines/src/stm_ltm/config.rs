//! How the memory is kept.

use super::{Scene, StmLtm};
use crate::Counters;
use crate::compressor::{Compressor, Extractive};
use crate::extractive::SUMMARY_TOKENS;
use foldback_core::{ContextManager, TodoId};
use std::sync::Arc;

/// How the memory is kept.
#[derive(Clone)]
pub struct StmLtmConfig {
    /// What the kind of task asks of it.
    pub scene: Scene,
    /// Over so many tokens L is summed up. Over as many, what came in and was not answered is a step
    /// without an answer, but for its latest message.
    pub memory_tokens: usize,
    /// The greatest number of tokens of a summary. Half of the limit, so that L is rewritten once in
    /// several steps and is a stable prefix in between.
    pub summary_tokens: usize,
    /// So many steps may be late. One more, and the rule folds the oldest at once; so it sums L up
    /// when it is over twice its limit.
    pub max_late_steps: usize,
    /// The greatest number of tokens of an answer of the policy's tools.
    pub answer_tokens: usize,
    /// What writes L.
    pub compressor: Arc<dyn Compressor>,
}

impl Default for StmLtmConfig {
    /// The scene `general`, 4,000 tokens, summaries of 2,000, four late steps, answers of 2,000
    /// tokens, the extractive rule.
    fn default() -> Self {
        Self {
            scene: Scene::default(),
            memory_tokens: 4_000,
            summary_tokens: SUMMARY_TOKENS,
            max_late_steps: 4,
            answer_tokens: 2_000,
            compressor: Arc::new(Extractive),
        }
    }
}

impl StmLtmConfig {
    /// A context that holds nothing yet.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        Box::new(StmLtm::new(todo, tokens, self))
    }
}
