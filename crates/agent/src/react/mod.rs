//! Step by step: the model is asked, its calls run together, and it is asked again with what they
//! brought.

mod execute_tools;
mod loop_tools;
mod native_turn;
mod react_loop;
mod settings;
mod stuck;

pub use settings::{CallForm, ReactSettings};

use crate::adaptive::Choice;
use crate::agent::{Agent, AgentError, Report, Task};
use crate::call_ids::CallIds;
use crate::model_caller::ModelCaller;
use crate::trajectory::{Recorder, Strategy};
use crate::{Trace, spans};
use foldback_core::ContextManager;
use react_loop::ReactLoop;
use std::sync::Arc;
use tracing::Instrument;

impl Agent {
    /// Works on a task step by step, until the model answers in words.
    ///
    /// Everything that happens is recorded in `context`, in order, and nothing is taken back: a failed
    /// call stays with its error. What the model does wrong (an unknown tool, arguments that are no
    /// JSON, a block that breaks off) is told to it and costs a step.
    ///
    /// With a journal, a run of the same name goes on where it was killed: calls with a result and
    /// answers of the model are not asked for again.
    ///
    /// # Errors
    /// When the context or the journal fails, or a run of this name is going on.
    pub async fn react(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.run(Strategy::React, context, task).await
    }

    /// The same in the context of a run, chosen for a reason where there was a choice.
    pub(crate) async fn step_by_step(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
        choice: Option<Choice>,
    ) -> Result<Report, AgentError> {
        self.check(context)?;
        let model_caller = Arc::new(ModelCaller::open(self, task, context.todo())?);
        let recorder = Recorder::begin(self.situation(&task.request), Strategy::React);
        if let Some(choice) = choice {
            recorder.chosen_because(choice.because);
        }
        let ids = self.open(context, &self.react_system(), &task.request)?;
        let span = spans::invoke_agent("react", context.todo().as_str());
        let begun = Begun { recorder, traces: Vec::new(), ids, model_caller };
        let report = self.go_on(context, task, begun).instrument(span.clone()).await?;
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    /// The instructions of a run step by step.
    pub(crate) fn react_system(&self) -> String {
        match self.react.calls {
            CallForm::Native => self.system_prompt.clone(),
            CallForm::ExecuteTools => {
                execute_tools::instructions(&self.system_prompt, self.executor.toolbox())
            }
        }
    }

    /// Goes step by step from where a conversation stands.
    pub(crate) async fn go_on(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
        begun: Begun,
    ) -> Result<Report, AgentError> {
        let mut react = ReactLoop::new(self, task, begun, context)?;
        let outcome = react.run_turns(context).await?;
        Ok(Report { trajectory: react.recorder.finish(outcome), traces: react.traces })
    }
}

/// A run as far as it has come when it begins to go step by step.
pub(crate) struct Begun {
    pub(crate) recorder: Recorder,
    pub(crate) traces: Vec<Trace>,
    /// The ids that calls have so far.
    pub(crate) ids: CallIds,
    pub(crate) model_caller: Arc<ModelCaller>,
}
