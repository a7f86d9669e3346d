//! One plan for a whole request: made once, carried out by the executor, and remade only if it says so or
//! if something failed.

mod drive;
mod handover;
mod history;
mod question;
pub(crate) mod reading;
pub(crate) mod request;
mod settings;

pub use settings::OnePlanSettings;

use crate::agent::{Agent, AgentError};
use crate::facts::conversation;
use crate::model_caller::estimated;
use crate::notes::settle;
use crate::react::{React, ReactSettings};
use crate::strategy::{Strategy, StrategyName, StrategyRun};
use crate::trajectory::{DegradeReason, Ending};
use crate::{AgentState, RunEvent, SettingError};
use drive::{Drive, Finish};
use foldback_core::{ContextManager, Message};
use futures::FutureExt;
use futures::future::BoxFuture;
use handover::{handover, why};
use request::Requests;
use std::sync::Arc;

/// The strategy of one plan for a whole task.
///
/// The model is asked for a plan, with the agent's instructions, the request and the tools, and nothing of
/// the history; then for the answer, with the results of the steps. It is asked for a new plan only when
/// an anchor is reached (steps that do not depend on it continue meanwhile), or when a call failed, took
/// too long or answered `status=fail` (once everything else that could proceed has ended). Steps that ran
/// are never run again.
///
/// The run continues step by step, as [`React`], when the planner says that the task is open-ended, when the
/// first plan has no steps, when neither a plan nor its repair is sound, and when a decision is open after
/// the last replan. In all other cases, the answer follows the last replan.
///
/// Request, calls, results and answer are recorded in the context at the end of the run, or when it
/// continues step by step. With a journal, a run of the same name resumes where it was killed or stopped:
/// calls with a result and answers of the model are not requested again, and a plan with unfinished calls
/// is recorded when they have ended.
#[derive(Clone, Debug, Default)]
pub struct OnePlan {
    settings: OnePlanSettings,
    pub(crate) react: React,
}

impl OnePlan {
    /// The name of the strategy.
    pub const NAME: StrategyName = StrategyName::new("one-plan");

    /// Creates the strategy with these settings.
    #[must_use]
    pub fn new(settings: OnePlanSettings) -> Self {
        Self { settings, react: React::default() }
    }

    /// Sets how the run continues step by step.
    #[must_use]
    pub fn with_react(self, react: ReactSettings) -> Self {
        Self { react: React::new(react), ..self }
    }

    /// Returns the estimated tokens of the request for a plan.
    pub(crate) fn request_tokens(&self, run: &StrategyRun<'_>) -> usize {
        let session = run.todo().as_str();
        let requests = Requests::new(&self.settings, run.agent(), &run.task().request, session);
        estimated(&requests.plan(false)).all
    }

    /// Plans and carries out; `follows` says whether the request follows a conversation.
    pub(crate) async fn plan_and_run(
        &self,
        run: &StrategyRun<'_>,
        context: &mut dyn ContextManager,
        follows: bool,
    ) -> Result<Ending, AgentError> {
        let (agent, task) = (run.agent(), run.task());
        let context_told = self.global_context(agent, context, &task.request);
        let mut drive = Drive::begin(&self.settings, run, follows, context_told)?;
        let finish = run.serve(context, drive.carry_out()).await?;
        let done = run.serve(context, drive.end()).await?;
        run.open(context, &self.system_prompt(agent))?;
        let is_over = match &finish {
            Finish::Ended(ending) => AgentState::after(&ending.stop) == AgentState::Finished,
            Finish::StepByStep(_) => true,
        };
        // A run that can resume records what is final now, and the rest when it has ended.
        let stays = is_over || agent.executor.journal().is_none();
        let rounds = if stays { &done.rounds } else { history::ended(&done.rounds, &done.outcome) };
        if stays {
            settle(&agent.executor, &task.run, &done.outcome)?;
        }
        history::record(context, rounds, &done.outcome, run)?;
        match finish {
            Finish::Ended(ending) => {
                if let Some(answer) = ending.answer.as_ref().filter(|_| stays) {
                    context.record(Message::assistant(answer))?;
                }
                Ok(ending)
            }
            Finish::StepByStep(degraded) => {
                let because = &why(&degraded);
                run.log().emit(RunEvent::Degraded { degraded: &degraded, because });
                if degraded.because != DegradeReason::NoSteps {
                    let told = handover(&degraded, &done.undecided, &done.rounds, &done.outcome);
                    context.record(Message::observation(&told))?;
                }
                self.react.go_on(run, context).await
            }
        }
    }

    /// Returns the context for tools that see all of it, if there are any, without the steps: the agent's
    /// instructions, the conversation so far, and the request.
    fn global_context(
        &self,
        agent: &Agent,
        context: &dyn ContextManager,
        request: &str,
    ) -> Option<Arc<str>> {
        if !agent.executor.toolbox().specs().any(|tool| tool.global_context) {
            return None;
        }
        let told = conversation(&context.prompt(&self.react.settings.prompt).messages);
        let system_prompt = agent.system_prompt.as_str();
        let system_prompt = if told.contains(system_prompt) { "" } else { system_prompt };
        let parts = [system_prompt, &told, request].into_iter().filter(|part| !part.is_empty());
        Some(parts.collect::<Vec<_>>().join("\n\n").into())
    }
}

impl Strategy for OnePlan {
    fn name(&self) -> StrategyName {
        Self::NAME
    }

    fn check(&self) -> Result<(), SettingError> {
        self.settings.check()
    }

    fn system_prompt(&self, agent: &Agent) -> String {
        self.react.system_prompt(agent)
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        self.plan_and_run(run, context, false).boxed()
    }
}
