//! What happens in a run, said once.

mod event;

pub use event::{RunEvent, ToolOwner};

use crate::trajectory::Recorder;
use crate::{Observer, SpendTracker, observer, spans};
use foldback_core::{ContextManager, TodoId};
use foldback_llm::Usage;
use foldback_tool::CallContext;
use std::fmt;
use std::sync::Arc;

/// The one place where a run says what happens in it.
///
/// Each [`RunEvent`] is emitted once. What follows the run hears of it in a fixed order: the spending,
/// the record (the trajectory), the spans, the observer. All of these are derived: what has to be
/// durable before it has an effect is in the journal before it is emitted.
///
/// Clones are the same log. The default is that of a run without an agent: it has no record, and nobody
/// observes it.
#[derive(Clone, Default)]
pub struct RunLog {
    spend: SpendTracker,
    agent: Option<AgentRun>,
}

/// What follows the run of an agent.
#[derive(Clone)]
struct AgentRun {
    todo: Arc<TodoId>,
    /// Where a strategy works, its record.
    recorder: Option<Recorder>,
    observer: Option<Arc<dyn Observer>>,
}

impl RunLog {
    /// The log of the run that makes a call.
    #[must_use]
    pub fn of(call: &CallContext) -> Self {
        call.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The log of an agent's run that belongs to this todo.
    pub(crate) fn new(
        todo: &TodoId,
        spend: SpendTracker,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let todo = Arc::new(todo.clone());
        Self { spend, agent: Some(AgentRun { todo, recorder: None, observer }) }
    }

    /// The same with this record.
    pub(crate) fn with_recorder(&self, recorder: &Recorder) -> Self {
        let recorder = Some(recorder.clone());
        let agent = self.agent.clone().map(|agent| AgentRun { recorder, ..agent });
        Self { agent, ..self.clone() }
    }

    /// The same, counting what is spent with another tracker.
    pub(crate) fn with_spend(&self, spend: SpendTracker) -> Self {
        Self { spend, ..self.clone() }
    }

    /// Says that something happened.
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

    /// Says something that is worth a line and has no event of its own.
    pub fn note(&self, text: fmt::Arguments<'_>) {
        self.emit(RunEvent::Noted { text });
    }

    /// Takes the calls of a model that a context's policy has made for its own ends.
    pub(crate) fn side_calls(&self, context: &mut dyn ContextManager) {
        for call in context.take_side_calls() {
            let (input, output) = (call.input_tokens as u64, call.output_tokens as u64);
            let usage = Usage { input, output, ..Usage::default() };
            self.emit(RunEvent::PolicyAsked { usage, cost: call.cost });
        }
    }

    /// Whether somebody watches the run. What is costly to put together need not be where nobody does.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.observer().is_some()
    }

    /// The observer, where there is one.
    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.agent.as_ref()?.observer.as_ref()
    }

    /// What the run has spent, and may spend.
    #[must_use]
    pub fn spend(&self) -> &SpendTracker {
        &self.spend
    }

    /// The number of the next turn with tool calls.
    #[must_use]
    pub fn next_turn(&self) -> u32 {
        self.recorder().map_or(0, Recorder::next_turn)
    }

    /// The record of the run, where it has one.
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
