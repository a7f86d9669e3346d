//! How a run is planned.

use crate::SettingError;
use foldback_llm::Sampling;

/// How a run is planned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OnePlanSettings {
    /// How often the plan may be made anew in one run.
    pub max_replans: u32,
    /// Whether steps start while the first plan is still being written, where the model gives it piece by
    /// piece. Which ones may is the executor's setting: only those that do nothing to the world, unless it
    /// says otherwise.
    pub stream: bool,
    /// About how many tokens the steps take together, with arguments, tasks and results, when the model
    /// is asked again or writes the answer. What is left out is marked, and stays whole in the run.
    pub results_tokens: usize,
    /// How answers are drawn.
    pub sampling: Sampling,
}

impl Default for OnePlanSettings {
    /// Three replans, steps that start early, 12,000 tokens of steps.
    fn default() -> Self {
        Self { max_replans: 3, stream: true, results_tokens: 12_000, sampling: Sampling::default() }
    }
}

impl OnePlanSettings {
    /// Refuses settings by which nothing could be told of steps, or no answer be drawn.
    ///
    /// # Errors
    /// When that is so.
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check_positive("results_tokens", self.results_tokens as u64)?;
        SettingError::check_sampling(&self.sampling)
    }

    /// The same, with at most this many new plans in one run.
    #[must_use]
    pub fn with_max_replans(self, max_replans: u32) -> Self {
        Self { max_replans, ..self }
    }

    /// The same, starting steps while the plan is being written, or not.
    #[must_use]
    pub fn with_stream(self, stream: bool) -> Self {
        Self { stream, ..self }
    }

    /// The same, with about this many tokens of steps in a request.
    #[must_use]
    pub fn with_results_tokens(self, results_tokens: usize) -> Self {
        Self { results_tokens, ..self }
    }

    /// The same, with answers drawn in this way.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }
}
