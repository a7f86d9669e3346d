//! The settings of a flow.

use crate::PlanningTool;
use crate::executors::{self, StepExecutor};
use foldback_agent::{React, SettingError, SpendLimits, Strategy};
use foldback_llm::Sampling;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a flow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowSettings {
    /// The executors of steps; a step that names none goes to the first one. Without any, the agent itself.
    pub executors: Vec<StepExecutor>,
    /// How a step is worked on.
    pub strategy: Arc<dyn Strategy>,
    /// Where a step is worked on.
    pub context: StepContext,
    /// How much of the plan a step sees.
    pub shown: PlanShown,
    /// How often a step that failed is retried before the rest of the plan is remade.
    pub max_retries: u32,
    /// How often the rest of the plan is remade because of a failure, in the whole run.
    pub max_replans: u32,
    /// Whether the model reviews the rest of the plan after each step that is done, and may change it.
    pub replan_after_each: bool,
    /// About how many tokens of the results of earlier steps a step sees. Omissions are marked.
    pub results_tokens: usize,
    /// The same for the request for the answer.
    pub summary_tokens: usize,
    /// The planning tool of the executors, in which the flow shows its plan.
    pub planning: Option<Arc<PlanningTool>>,
    /// What the run may spend, in addition to the limits of its task. When its time is over, the work in
    /// progress is cancelled; a resumed run has the whole time again.
    pub limits: SpendLimits,
    /// How plans and the answer are sampled.
    pub sampling: Sampling,
}

impl Default for FlowSettings {
    /// The agent itself, step by step, in a context of its own for each step, which sees the whole plan;
    /// two retries, three replans, 4,000 tokens of results, 12,000 for the answer, one hour.
    fn default() -> Self {
        Self {
            executors: Vec::new(),
            strategy: Arc::new(React::default()),
            context: StepContext::default(),
            shown: PlanShown::default(),
            max_retries: 2,
            max_replans: 3,
            replan_after_each: false,
            results_tokens: 4_000,
            summary_tokens: 12_000,
            planning: None,
            limits: SpendLimits::default().with_time(Duration::from_secs(3_600)),
            sampling: Sampling::default(),
        }
    }
}

impl FlowSettings {
    /// Sets the executors.
    #[must_use]
    pub fn with_executors(self, executors: Vec<StepExecutor>) -> Self {
        Self { executors, ..self }
    }

    /// Sets the strategy for steps.
    #[must_use]
    pub fn with_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { strategy, ..self }
    }

    /// Sets the context in which steps are worked on.
    #[must_use]
    pub fn with_context(self, context: StepContext) -> Self {
        Self { context, ..self }
    }

    /// Sets how much of the plan each step's request shows.
    #[must_use]
    pub fn with_shown(self, shown: PlanShown) -> Self {
        Self { shown, ..self }
    }

    /// Sets how often a step is retried after its first failure.
    #[must_use]
    pub fn with_max_retries(self, max_retries: u32) -> Self {
        Self { max_retries, ..self }
    }

    /// Sets how often the plan is remade after failures.
    #[must_use]
    pub fn with_max_replans(self, max_replans: u32) -> Self {
        Self { max_replans, ..self }
    }

    /// Sets whether the rest of the plan is reviewed after each step.
    #[must_use]
    pub fn with_replan_after_each(self, replan_after_each: bool) -> Self {
        Self { replan_after_each, ..self }
    }

    /// Sets about how many tokens of earlier results a step's request holds.
    #[must_use]
    pub fn with_results_tokens(self, results_tokens: usize) -> Self {
        Self { results_tokens, ..self }
    }

    /// Sets about how many tokens of results the request for the answer holds.
    #[must_use]
    pub fn with_summary_tokens(self, summary_tokens: usize) -> Self {
        Self { summary_tokens, ..self }
    }

    /// Sets the tool in which the plan is shown, which is among the tools of the executors.
    #[must_use]
    pub fn with_planning(self, planning: Arc<PlanningTool>) -> Self {
        Self { planning: Some(planning), ..self }
    }

    /// Sets what the run may spend.
    #[must_use]
    pub fn with_limits(self, limits: SpendLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets how plans and the answer are sampled.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Refuses settings by which no step could be worked on, or no result be shown.
    ///
    /// # Errors
    /// When an executor could not be called by its name, two have the same name, results may have no tokens, or
    /// the sampling is invalid.
    pub fn check(&self) -> Result<(), SettingError> {
        executors::check(&self.executors)?;
        SettingError::check_positive("results_tokens", self.results_tokens as u64)?;
        SettingError::check_positive("summary_tokens", self.summary_tokens as u64)?;
        SettingError::check_sampling(&self.sampling)
    }
}

/// Where a step is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepContext {
    /// In a context of its own, below the flow's, which holds only the results of other steps.
    #[default]
    Isolated,
    /// In the flow's context, which holds everything that the steps before it did.
    Shared,
}

/// How much of the plan a step sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanShown {
    /// All of it.
    #[default]
    Whole,
    /// The steps up to its own: a model that sees the next ones may run ahead and do them.
    UpToStep,
}
