//! The log of a run, to which each event is emitted once.

mod event;

pub use event::{RunEvent, ToolOwner};

use crate::trajectory::Recorder;
use crate::{Observer, SpendTracker, observer, spans};
use foldback_core::{ContextManager, TodoId};
use foldback_llm::Usage;
use foldback_tool::CallContext;
use std::fmt;
use std::sync::Arc;

/// The log of a run: the one place to which its events are emitted.
///
/// Each [`RunEvent`] is emitted once. Its subscribers receive it in a fixed order: the spending, the record
/// (the trajectory), the spans, the observer. All of these are derived data: whatever has to be durable
/// before it has an effect is in the journal before it is emitted.
///
/// Clones share one log. The default is that of a run without an agent: it has no record and no observer.
#[derive(Clone, Default)]
pub struct RunLog {
    spend: SpendTracker,
    agent: Option<AgentRun>,
}

/// The subscribers to the run of an agent.
#[derive(Clone)]
struct AgentRun {
    todo: Arc<TodoId>,
    /// The record, if a strategy is working.
    recorder: Option<Recorder>,
    observer: Option<Arc<dyn Observer>>,
}

impl RunLog {
    /// Returns the log of the run that makes a call.
    #[must_use]
    pub fn of(call: &CallContext) -> Self {
        call.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Creates the log of an agent's run that belongs to this todo.
    pub(crate) fn new(
        todo: &TodoId,
        spend: SpendTracker,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let todo = Arc::new(todo.clone());
        Self { spend, agent: Some(AgentRun { todo, recorder: None, observer }) }
    }

    /// Returns the same log with this record.
    pub(crate) fn with_recorder(&self, recorder: &Recorder) -> Self {
        let recorder = Some(recorder.clone());
        let agent = self.agent.clone().map(|agent| AgentRun { recorder, ..agent });
        Self { agent, ..self.clone() }
    }

    /// Returns the same log with another tracker of spending.
    pub(crate) fn with_spend(&self, spend: SpendTracker) -> Self {
        Self { spend, ..self.clone() }
    }

    /// Emits an event.
    pub fn emit(&self, event: RunEvent<'_>) {
        self.spend.hear(&event);
        if let Some(AgentRun { recorder: Some(recorder), .. }) = &self.agent {
            recorder.hear(&event);
        }
        spans::hear(&event);
        if let Some(AgentRun { todo, observer: Some(observer), .. }) = &self.agent {
            observer::hear(&**observer, todo, &self.spend, &event);
        }
    }

    /// Emits a note on something that has no event of its own.
    pub fn note(&self, text: fmt::Arguments<'_>) {
        self.emit(RunEvent::Noted { text });
    }

    /// Takes over the calls of a model that a context's policy made for its own purposes.
    pub(crate) fn side_calls(&self, context: &mut dyn ContextManager) {
        for call in context.take_side_calls() {
            let (input, output) = (call.input_tokens as u64, call.output_tokens as u64);
            let usage = Usage { input, output, ..Usage::default() };
            self.emit(RunEvent::PolicyAsked { usage, cost: call.cost });
        }
    }

    /// Returns whether the run has an observer. Without one, costly details need not be built.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.observer().is_some()
    }

    /// Returns the observer, if there is one.
    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.agent.as_ref()?.observer.as_ref()
    }

    /// Returns the tracker of what the run has spent, and may spend.
    #[must_use]
    pub fn spend(&self) -> &SpendTracker {
        &self.spend
    }

    /// Returns the number of the next turn with tool calls.
    #[must_use]
    pub fn next_turn(&self) -> u32 {
        self.recorder().map_or(0, Recorder::next_turn)
    }

    /// Returns the record of the run, if it has one.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.agent.as_ref()?.recorder.as_ref()
    }
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLog")
            .field("todo", &self.agent.as_ref().map(|agent| &agent.todo))
            .field("is_watched", &self.is_watched())
            .field("spend", &self.spend)
            .finish()
    }
}
