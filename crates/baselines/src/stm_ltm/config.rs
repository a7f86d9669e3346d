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
    /// The requirements of the kind of task.
    pub scene: Scene,
    /// The number of tokens above which L is summed up. Unanswered input above the same number becomes
    /// a step without an answer, except its latest message.
    pub memory_tokens: usize,
    /// The maximum number of tokens in a summary: half of the limit, so that L is rewritten once in
    /// several steps and is a stable prefix in between.
    pub summary_tokens: usize,
    /// The number of steps that may be late. With one more, the rule folds the oldest at once; likewise
    /// it sums L up when L exceeds twice its limit.
    pub max_late_steps: usize,
    /// The maximum number of tokens in an answer of the policy's tools.
    pub answer_tokens: usize,
    /// The writer of L.
    pub compressor: Arc<dyn Compressor>,
}

impl Default for StmLtmConfig {
    /// Returns the defaults: the scene `general`, 4,000 tokens, summaries of 2,000, four late steps,
    /// answers of 2,000 tokens, the extractive rule.
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
    /// Returns an empty context.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        Box::new(StmLtm::new(todo, tokens, self))
    }
}
