//! One plan for a whole request: made once, carried out by the executor, made anew only where it says
//! so or where something failed.

mod drive;
mod handover;
mod history;
mod question;
mod reading;
pub(crate) mod request;

use crate::adaptive::Choice;
use crate::agent::{Agent, AgentError, Report, Task};
use crate::facts::conversation;
use crate::model_caller::ModelCaller;
use crate::notes::settle;
use crate::react::Begun;
use crate::trajectory::{Ending, Recorder, Strategy};
use crate::{AgentEvent, AgentState, SettingError, spans};
use drive::{Around, Drive, Finish};
use foldback_core::{ContextManager, Message};
use foldback_llm::Sampling;
use foldback_tool::ContextHandle;
use handover::{handover, why};
use std::sync::Arc;
use tracing::Instrument;

/// How an agent plans.
#[derive(Clone, Debug)]
pub struct OnePlanSettings {
    /// How often the plan may be made anew in one run.
    pub max_replans: u32,
    /// Whether steps start while the first plan is still being written. Which ones may is the
    /// executor's setting: only those that do nothing to the world, unless it says otherwise.
    pub stream: bool,
    /// About how many tokens the steps take together, with arguments, tasks and results, when the model
    /// is asked again or writes the answer. What is left out is marked, and stays whole in the run.
    pub results_tokens: usize,
    /// How answers are drawn.
    pub sampling: Sampling,
}

impl Default for OnePlanSettings {
    /// Three replans, no streaming, 12,000 tokens of steps.
    fn default() -> Self {
        Self {
            max_replans: 3,
            stream: false,
            results_tokens: 12_000,
            sampling: Sampling::default(),
        }
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
}

impl Agent {
    /// Works on a task by one plan.
    ///
    /// The model is asked for a plan, with the agent's instructions, the request and the tools, and
    /// nothing of the history; then for the answer, with what the steps brought. It is asked for a new
    /// plan only when an anchor's time has come (what does not depend on it goes on meanwhile), or when
    /// a call failed, took too long or answered `status=fail` (once everything else that could go on
    /// has ended). Steps that ran are never run again.
    ///
    /// The run goes on step by step, as [`react`](Self::react), when the planner says that the task is
    /// open-ended, when neither its plan nor the repair of it is sound, and when a decision is open
    /// after the last replan. Other than that, what follows the last replan is the answer.
    ///
    /// Request, calls, results and answer are recorded in `context` at the end of the run, or when it
    /// goes on step by step. With a journal, a run of the same name goes on where it was killed or stopped:
    /// calls with a result and answers of the model are not asked for again, and a plan of which not every
    /// call has come to its end is recorded then.
    ///
    /// # Errors
    /// When the context or the journal fails.
    pub async fn one_plan(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.run(Strategy::OnePlan, context, task).await
    }

    /// The same in the context of a run, inside a span; `chosen` says why it is done by one plan.
    pub(crate) async fn plan_and_run(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
        chosen: Option<Choice>,
    ) -> Result<Report, AgentError> {
        let span = spans::invoke_agent("one_plan", context.todo().as_str());
        let report = self.plan_in_span(context, task, chosen).instrument(span.clone()).await?;
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    async fn plan_in_span(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
        chosen: Option<Choice>,
    ) -> Result<Report, AgentError> {
        self.one_plan.check()?;
        self.check(context)?;
        let model_caller = Arc::new(ModelCaller::open(self, task, context.todo())?);
        let recorder = Recorder::begin(self.situation(&task.request), Strategy::OnePlan);
        let follows = chosen.as_ref().is_some_and(|choice| choice.follows);
        if let Some(Choice { because, .. }) = chosen {
            recorder.chosen_because(because);
        }
        let (session, watch) = (context.todo().to_string(), task.watch(context.todo()));
        let context_told = self.global_context(context, &task.request);
        let (handle, mut requests) = ContextHandle::new(context.todo().clone());
        let around = Around {
            model_caller: Arc::clone(&model_caller),
            recorder,
            context: handle,
            watch: watch.clone(),
            follows,
        };
        let mut drive = Drive::begin(self, task, &session, around, context_told)?;
        let finish = requests.serve(context, drive.carry_out()).await?;
        let done = requests.serve(context, drive.end()).await?;
        let mut ids = self.open(context, &self.react_system(), &task.request)?;
        let is_over = match &finish {
            Finish::Ended(ending) => AgentState::after(&ending.stop) == AgentState::Finished,
            Finish::StepByStep(_) => true,
        };
        // A run that can go on records what changes no more; the rest when it has come to its end.
        let stays = is_over || self.executor.journal().is_none();
        let rounds = if stays { &done.rounds } else { history::ended(&done.rounds, &done.outcome) };
        if stays {
            settle(&self.executor, &task.run, &done.outcome)?;
        }
        history::record(context, rounds, &done.outcome, &mut ids)?;
        let recorder = done.recorder;
        match finish {
            Finish::Ended(Ending { stop, answer }) => {
                if let Some(answer) = answer.as_ref().filter(|_| stays) {
                    context.record(Message::assistant(answer))?;
                }
                let trajectory = recorder.finish(Ending { stop, answer });
                Ok(Report { trajectory, traces: vec![done.outcome.trace] })
            }
            Finish::StepByStep(degraded) => {
                let because = why(&degraded);
                watch.tell(&AgentEvent::Chose { strategy: Strategy::React, because });
                let told = handover(&degraded, &done.undecided, &done.rounds, &done.outcome);
                context.record(Message::observation(&told))?;
                recorder.degraded(degraded);
                let begun = Begun { recorder, traces: vec![done.outcome.trace], ids, model_caller };
                self.go_on(context, task, begun).await
            }
        }
    }

    /// What tools that see the whole context are told beside the steps, if there are any: the agent's
    /// instructions, the conversation so far, and the request.
    fn global_context(&self, context: &dyn ContextManager, request: &str) -> Option<Arc<str>> {
        if !self.executor.toolbox().specs().any(|tool| tool.global_context) {
            return None;
        }
        let told = conversation(&context.prompt(&self.react.prompt).messages);
        let system_prompt =
            if told.contains(&self.system_prompt) { "" } else { self.system_prompt.as_str() };
        let parts = [system_prompt, &told, request].into_iter().filter(|part| !part.is_empty());
        Some(parts.collect::<Vec<_>>().join("\n\n").into())
    }
}
