//! The settings of planning.

use crate::SettingError;
use foldback_llm::Sampling;

/// The settings of planning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OnePlanSettings {
    /// How often the plan may be remade in one run.
    pub max_replans: u32,
    /// Whether steps start while the first plan is still being written, if the model streams it. Which steps
    /// may is the executor's setting: only those without effect on the world, unless it says otherwise.
    pub stream: bool,
    /// About how many tokens the steps take together, with arguments, tasks and results, when the model is
    /// asked again or writes the answer. Omissions are marked; the run keeps everything.
    pub results_tokens: usize,
    /// How answers are sampled.
    pub sampling: Sampling,
}

impl Default for OnePlanSettings {
    /// Three replans, steps that start early, 12,000 tokens of steps.
    fn default() -> Self {
        Self { max_replans: 3, stream: true, results_tokens: 12_000, sampling: Sampling::default() }
    }
}

impl OnePlanSettings {
    /// Refuses settings by which no step could be shown, or no answer be sampled.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check_positive("results_tokens", self.results_tokens as u64)?;
        SettingError::check_sampling(&self.sampling)
    }

    /// Sets the most new plans in one run.
    #[must_use]
    pub fn with_max_replans(self, max_replans: u32) -> Self {
        Self { max_replans, ..self }
    }

    /// Sets whether steps start while the plan is being written.
    #[must_use]
    pub fn with_stream(self, stream: bool) -> Self {
        Self { stream, ..self }
    }

    /// Sets about how many tokens the steps in a request take.
    #[must_use]
    pub fn with_results_tokens(self, results_tokens: usize) -> Self {
        Self { results_tokens, ..self }
    }

    /// Sets how answers are sampled.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }
}
