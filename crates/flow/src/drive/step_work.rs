//! The work on a step: its attempts, and how the flow records their outcome.

use super::{Drive, Halt};
use crate::StepStatus;
use crate::attempt::{Attempt, told_of};
use crate::executors::{executor_of, unknown};
use crate::progress::finish;
use crate::requests::StepResult;
use crate::settings::StepContext;
use foldback_agent::{Agent, AgentError, Report, RunEvent, SpendLimits, Stop, Strategy, Task};
use foldback_core::{ContextError, ContextManager, ItemState, Reference, quoted};
use serde::{Deserialize, Serialize};

/// An attempt that failed. It stays failed when the flow is resumed, even with other limits or another model,
/// because what came after it is already recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FailedAttempt {
    at: usize,
    number: u32,
    reason: String,
}

impl FailedAttempt {
    /// The kind under which it is noted.
    pub(super) const KIND: &str = "failed_attempt";
}

impl Drive<'_> {
    /// Works on a step until it is done or has been tried as often as allowed; the error is the reason why it
    /// cannot be done.
    pub(super) async fn work_on(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
    ) -> Result<Result<(), String>, Halt> {
        if let Some(step) = self.plan.steps.get(at)
            && let Some((tag, first)) = unknown(&step.text, &self.executors)
        {
            let (tag, first) = (quoted(tag), &first.name);
            self.note(format_args!(
                "step {at} names {tag}, but no executor has that name; {first} works on it"
            ));
        }
        let mut failed: Option<String> = None;
        for number in 1..=self.settings.max_retries.saturating_add(1) {
            self.tries.insert(at, number);
            self.mark(at, StepStatus::InProgress, None);
            self.show(context)?;
            let (attempt, reference) = self.attempt(context, at, number, failed.as_deref()).await?;
            match attempt {
                Attempt::Done(summary) => {
                    let before = failed.map(|reason| format!("failed before: {reason}"));
                    self.mark(at, StepStatus::Completed, before);
                    let result = StepResult::of(&summary);
                    let shown = told_of(&summary);
                    let mut told = format!("Step {at} is done: {shown}");
                    if shown != result.text
                        && let Some(reference) = &reference
                    {
                        told.push_str(&format!(" (the work on it ends in {reference})"));
                    }
                    self.results.insert(at, result);
                    self.ended(context, at, reference)?;
                    self.record_result(context, &told)?;
                    return Ok(Ok(()));
                }
                Attempt::Failed(reason) => {
                    self.note(format_args!("step {at} failed: {reason}"));
                    self.mark(at, StepStatus::Blocked, Some(reason.clone()));
                    self.results.insert(at, StepResult::of(&format!("not done: {reason}")));
                    self.ended(context, at, None)?;
                    self.record_result(context, &format!("Step {at} failed: {reason}"))?;
                    failed = Some(reason);
                }
                Attempt::Refused(reason) => {
                    return Err(Halt::Over(Stop::ModelFailed { message: reason }));
                }
                Attempt::Over(stop) => return Err(self.over(stop)),
            }
        }
        Ok(Err(failed.unwrap_or_default()))
    }

    /// Tries a step once. If it has a context of its own that is stored, its end can be referred to.
    async fn attempt(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        number: u32,
        failed: Option<&str>,
    ) -> Result<(Attempt, Option<Reference>), Halt> {
        let step = self.plan.steps.get(at).map_or("", |step| &step.text);
        let executor = executor_of(step, &self.executors);
        let agent = executor.map_or(self.run.agent(), |executor| &executor.agent);
        let strategy = executor.and_then(|executor| executor.strategy.as_ref());
        let strategy = &**strategy.unwrap_or(&self.settings.strategy);
        // The step's own last failure is passed separately.
        let others = self.results.iter().filter(|(other, _)| **other != at);
        let others = others.map(|(at, result)| (*at, result.clone())).collect();
        let mut task = self.run.task().clone();
        task.request = self.requests.step(&self.plan, &others, at, failed);
        task.run = format!("{}/step-{}.{number}", self.run.task().run, at + 1);
        task.depth += 1;
        let known = self.failed.iter().find(|known| (known.at, known.number) == (at, number));
        let known = known.map(|known| &*known.reason);
        if known.is_some() {
            // What the journal holds of it is repeated, and nothing more.
            let limits = SpendLimits::default().with_model_calls(0);
            task.spend = task.spend.share(limits).map_err(AgentError::from)?;
        }
        let (report, reference) = match self.settings.context {
            StepContext::Isolated => {
                self.isolated(context, at, (agent, strategy), (&task, known)).await?
            }
            // The whole flow is one conversation, which was begun or resumed together with the flow.
            StepContext::Shared => {
                (self.run.run_part(agent, strategy, context, &task).await?, None)
            }
        };
        let attempt = match Attempt::of(&report, known) {
            // In a shared context, another attempt would have the same conversation.
            Attempt::Refused(reason) if self.settings.context == StepContext::Isolated => {
                Attempt::Failed(reason)
            }
            attempt => attempt,
        };
        if let (Attempt::Failed(reason), None) = (&attempt, known) {
            let failed = FailedAttempt { at, number, reason: reason.clone() };
            self.run.note(FailedAttempt::KIND, &failed)?;
        }
        self.run.absorb(report);
        Ok((attempt, reference))
    }

    /// Has an agent work on a step in a context of its own. The work can be read through its last block, if
    /// there is one. `known` is the reason why the attempt failed in an earlier process.
    async fn isolated(
        &self,
        context: &mut dyn ContextManager,
        at: usize,
        (agent, strategy): (&Agent, &dyn Strategy),
        (task, known): (&Task, Option<&str>),
    ) -> Result<(Report, Option<Reference>), Halt> {
        let item = self.step_todo(at);
        let mut child = context.child(item.clone())?;
        let request = self.plan.steps.get(at).map_or("", |step| &step.text);
        self.run.log().emit(RunEvent::Delegated { item: &item, request });
        let report = agent.run(strategy, child.as_mut(), task).await;
        let ended = report.and_then(|report| {
            let last = child.sub_tasks().map_or(Ok(None), |kept| kept.conclude())?;
            Ok((report, last.map(Reference::Block)))
        });
        let (state, result) = match &ended {
            Ok((report, _)) => Attempt::of(report, known).handed_back(),
            Err(error) => (ItemState::Failed, error.to_string()),
        };
        self.run.log().emit(RunEvent::HandedBack { item: &item, state, result: &result });
        Ok(ended?)
    }

    /// Passes the outcome of a step to the context.
    fn ended(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        reference: Option<Reference>,
    ) -> Result<(), ContextError> {
        let list = self.list()?;
        if let Some(item) = list.item(&self.step_todo(at))
            && finish(context, item, reference.as_ref())?
            && let Some(result) = self.results.get_mut(&at)
        {
            result.reference = reference;
        }
        self.show(context)
    }

    fn mark(&mut self, at: usize, status: StepStatus, notes: Option<String>) {
        if let Some(step) = self.plan.steps.get_mut(at) {
            step.status = status;
            if let Some(notes) = notes {
                step.notes = notes;
            }
        }
    }

    /// Records the outcome of a step, unless the step was worked on in the same context.
    fn record_result(&self, context: &mut dyn ContextManager, text: &str) -> Result<(), Halt> {
        match self.settings.context {
            StepContext::Isolated => self.record(context, text),
            StepContext::Shared => Ok(()),
        }
    }
}
