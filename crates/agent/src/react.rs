//! Step by step: the model is asked, its calls run together, and it is asked again with what they
//! brought.

use crate::adaptive::Choice;
use crate::agent::{Agent, AgentError, Report, Task};
use crate::asker::Asker;
use crate::call_ids::CallIds;
use crate::trajectory::{Recorder, Strategy};
use crate::walk::Walk;
use crate::{Trace, execute_tools, spans};
use foldback_core::{Budget, ContextManager};
use foldback_llm::{Sampling, ToolChoice};
use std::sync::Arc;
use tracing::Instrument;

/// How an agent goes step by step.
#[derive(Clone, Debug)]
pub struct ReactSettings {
    /// How often the model is asked at most. What it may take in sum is the bound of the task's
    /// [`Purse`](crate::Purse).
    pub max_steps: u32,
    /// How large a prompt may be, tools included.
    pub prompt: Budget,
    /// How the model writes its calls.
    pub calls: CallForm,
    /// Whether the model may call tools. A call that it may not make is not made, and it is told so; where
    /// it has to call one, an answer in words does not end the run: give it
    /// [`terminate`](Self::terminate) to end it by.
    pub tool_choice: ToolChoice,
    /// Whether the model is given a tool `terminate`, by which it ends the run and says how it went.
    pub terminate: bool,
    /// How many characters of a result the model is shown at most, in a context whose policy has no tools
    /// to look back with. The rest is one call of `observation_read` away, which is declared with it.
    /// Policies that look after long results themselves are given them whole.
    pub max_observe: Option<usize>,
    /// How often the model may have said and called the same before, until it is told to change its
    /// strategy; once, until it does something else.
    pub stuck_after: Option<u32>,
    /// How often in a row the model may answer what cannot be used, before the run ends.
    pub max_unusable: u32,
    /// How answers are drawn.
    pub sampling: Sampling,
}

impl ReactSettings {
    /// A usual bound for [`max_observe`](Self::max_observe).
    pub const MAX_OBSERVE: usize = 10_000;
}

impl Default for ReactSettings {
    /// 30 steps, calls of the chat API as the model likes, results whole, a word when it does the same for
    /// the third time, three unusable answers in a row.
    fn default() -> Self {
        Self {
            max_steps: 30,
            prompt: Budget::default(),
            calls: CallForm::default(),
            tool_choice: ToolChoice::default(),
            terminate: false,
            max_observe: None,
            stuck_after: Some(2),
            max_unusable: 3,
            sampling: Sampling::default(),
        }
    }
}

/// How the model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallForm {
    /// As tool calls of the chat API.
    #[default]
    Native,
    /// As an `<execute_tools>` block in its message, which may plan several steps. How that is done, and
    /// the tools, are told in the instructions. Tool calls of the chat API work as well.
    ///
    /// A block is run where it begins a line, indented by less than four columns, outside of code fences
    /// and of the model's own `<think>`. Behind other words, as somebody's words are quoted, it is not. A text that the model
    /// repeats at the beginning of a line cannot be told from its own; tools that do harm are what an
    /// [`Approver`](crate::Approver) is for.
    ExecuteTools,
}

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
        let asker = Arc::new(Asker::open(self, task, context.todo())?);
        let recorder = Recorder::begin(self.situation(&task.request), Strategy::React);
        if let Some(choice) = choice {
            recorder.chosen_because(choice.because);
        }
        let ids = self.open(context, &self.react_system(), &task.request)?;
        let span = spans::invoke_agent("react", context.todo().as_str());
        let begun = Begun { recorder, traces: Vec::new(), ids, asker };
        let report = self.go_on(context, task, begun).instrument(span.clone()).await?;
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    /// The instructions of a run step by step.
    pub(crate) fn react_system(&self) -> String {
        match self.react.calls {
            CallForm::Native => self.head.clone(),
            CallForm::ExecuteTools => {
                execute_tools::instructions(&self.head, self.executor.toolbox())
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
        let mut walk = Walk::new(self, task, begun, context)?;
        let outcome = walk.walk(context).await?;
        Ok(Report { trajectory: walk.recorder.finish(outcome), traces: walk.traces })
    }
}

/// A run as far as it has come when it begins to go step by step.
pub(crate) struct Begun {
    pub(crate) recorder: Recorder,
    pub(crate) traces: Vec<Trace>,
    /// The ids that calls have so far.
    pub(crate) ids: CallIds,
    pub(crate) asker: Arc<Asker>,
}
