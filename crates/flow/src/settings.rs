//! How a flow goes.

use crate::PlanningTool;
use crate::executors::{self, StepExecutor};
use foldback_agent::{React, SettingError, SpendLimits, Strategy};
use foldback_llm::Sampling;
use std::sync::Arc;
use std::time::Duration;

/// How a flow goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowSettings {
    /// Who works on steps; a step that names none is the first one's. Without any, the agent itself.
    pub executors: Vec<StepExecutor>,
    /// How a step is worked on.
    pub strategy: Arc<dyn Strategy>,
    /// Where a step is worked on.
    pub context: StepContext,
    /// How much of the plan a step sees.
    pub shown: PlanShown,
    /// How often a step that failed is tried again, before the rest of the plan is made anew.
    pub max_retries: u32,
    /// How often the rest of the plan is made anew because of a failure, in the whole run.
    pub max_replans: u32,
    /// Whether the model looks at the rest of the plan after each step that is done, and may change it.
    pub replan_after_each: bool,
    /// About how many tokens of what came of the steps before it a step sees. What is left out is
    /// marked.
    pub results_tokens: usize,
    /// The same for whoever writes the answer.
    pub summary_tokens: usize,
    /// The planning tool of those that work on steps: the flow shows its plan in it.
    pub planning: Option<Arc<PlanningTool>>,
    /// What the run may spend, beside the bounds of its task. When its time is over, what goes on is
    /// cancelled; a run that is gone on with has it once more.
    pub limits: SpendLimits,
    /// How plans and the answer are drawn.
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
    /// The same, with these executors.
    #[must_use]
    pub fn with_executors(self, executors: Vec<StepExecutor>) -> Self {
        Self { executors, ..self }
    }

    /// The same, with steps worked on by this strategy.
    #[must_use]
    pub fn with_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { strategy, ..self }
    }

    /// The same, with steps in such a context.
    #[must_use]
    pub fn with_context(self, context: StepContext) -> Self {
        Self { context, ..self }
    }

    /// The same, with this much of the plan in each step's request.
    #[must_use]
    pub fn with_shown(self, shown: PlanShown) -> Self {
        Self { shown, ..self }
    }

    /// The same, with this many tries after a step's first failure.
    #[must_use]
    pub fn with_max_retries(self, max_retries: u32) -> Self {
        Self { max_retries, ..self }
    }

    /// The same, with this many new plans after failures.
    #[must_use]
    pub fn with_max_replans(self, max_replans: u32) -> Self {
        Self { max_replans, ..self }
    }

    /// The same, with a look at the rest of the plan after each step, or without.
    #[must_use]
    pub fn with_replan_after_each(self, replan_after_each: bool) -> Self {
        Self { replan_after_each, ..self }
    }

    /// The same, with about this many tokens of earlier results in a step's request.
    #[must_use]
    pub fn with_results_tokens(self, results_tokens: usize) -> Self {
        Self { results_tokens, ..self }
    }

    /// The same, with about this many tokens of results in the request for the answer.
    #[must_use]
    pub fn with_summary_tokens(self, summary_tokens: usize) -> Self {
        Self { summary_tokens, ..self }
    }

    /// The same, with its plan shown in this tool, which is among the tools of those that work on steps.
    #[must_use]
    pub fn with_planning(self, planning: Arc<PlanningTool>) -> Self {
        Self { planning: Some(planning), ..self }
    }

    /// The same, within these limits.
    #[must_use]
    pub fn with_limits(self, limits: SpendLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same, with plans and the answer drawn in this way.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Refuses settings by which no step could be worked on, or nothing be told of it.
    ///
    /// # Errors
    /// When nobody could be called by the name of an executor, two have one name, nothing may be told of
    /// results, or answers cannot be drawn so.
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
    /// In a context of its own, below the flow's: nothing of what other steps did stands in it but what
    /// came of them.
    #[default]
    Isolated,
    /// In the flow's context: everything that the steps before it did stands there.
    Shared,
}

/// How much of the plan a step sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanShown {
    /// All of it.
    #[default]
    Whole,
    /// The steps up to its own: a model that sees what comes next may run ahead and do it.
    UpToStep,
}
