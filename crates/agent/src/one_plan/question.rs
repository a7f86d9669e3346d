//! An open question to the model while the executor continues.

use super::request::Reason;
use crate::agent::AgentError;
use crate::model_caller::{self, OnText, Reply, Written};
use crate::strategy::StrategyRun;
use crate::trajectory::Purpose;
use foldback_llm::ChatRequest;
use foldback_planner::{OnePlanEvent, OnePlanReader, Step};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// An open question to the model.
pub(super) struct Question<'a> {
    pub(super) purpose: Purpose,
    pub(super) reason: Reason,
    pub(super) request: ChatRequest,
    /// Whether an earlier run asked it.
    pub(super) was_noted: bool,
    answer: BoxFuture<'a, Result<Reply, AgentError>>,
    written: Option<BeingWritten>,
}

/// A plan that is being written.
struct BeingWritten {
    /// Its text; `None` when it broke off and begins again.
    pieces: UnboundedReceiver<Option<String>>,
    reader: OnePlanReader,
}

/// News of a question.
pub(super) enum Heard {
    /// These steps of the plan are written; more will follow.
    Steps(Vec<Step>),
    /// The plan broke off and is requested again: it may not have its steps so far.
    Again,
    /// The complete answer.
    Whole(Box<Result<Reply, AgentError>>),
}

impl<'a> Question<'a> {
    /// Asks the model. A plan that is `streamed` is read while it is being written.
    pub(super) fn ask(
        run: &'a StrategyRun<'a>,
        (purpose, key): (Purpose, String),
        reason: Reason,
        request: ChatRequest,
        streamed: bool,
    ) -> Self {
        let was_noted = run.model_caller.holds(&purpose, &key);
        let (sender, pieces) = unbounded_channel();
        let written = streamed.then(|| BeingWritten { pieces, reader: OnePlanReader::new() });
        let (own, noted, asked_for) = (request.clone(), reason.noted(), purpose.clone());
        let answer = async move {
            let question = model_caller::Question {
                purpose: asked_for,
                key: &key,
                reason: noted,
                request: own,
            };
            let on_text = move |written: Written<'_>| {
                let text = match written {
                    Written::Text(text) => Some(text.to_owned()),
                    Written::Again => None,
                };
                // Nobody listens any more when the run is over, and then the answer does not matter.
                drop(sender.send(text));
            };
            let on_text = streamed.then(|| Box::new(on_text) as OnText<'_>);
            run.model_caller.put(run.agent().model(), question, on_text).await
        };
        Self { purpose, reason, request, was_noted, answer: answer.boxed(), written }
    }

    /// Waits for the next news. Loses nothing when it is dropped; must not be called again after the
    /// complete answer.
    pub(super) async fn reply(&mut self) -> Heard {
        let Some(written) = &mut self.written else {
            return Heard::Whole(Box::new((&mut self.answer).await));
        };
        loop {
            tokio::select! {
                biased;
                // A plan that arrives at once is complete before any of its steps could start early.
                answer = &mut self.answer => return Heard::Whole(Box::new(answer)),
                Some(text) = written.pieces.recv() => {
                    let Some(text) = text else {
                        written.reader = OnePlanReader::new();
                        return Heard::Again;
                    };
                    let steps = written.steps(&text);
                    // Once the text is complete, the whole plan is used.
                    if !steps.is_empty() && !written.pieces.is_closed() {
                        return Heard::Steps(steps);
                    }
                }
            }
        }
    }
}

impl BeingWritten {
    /// Returns the steps in a further part of the text.
    fn steps(&mut self, text: &str) -> Vec<Step> {
        let events = self.reader.push(text).into_iter();
        let steps = events.filter_map(|event| match event {
            OnePlanEvent::Step(step) => Some(step),
            _ => None,
        });
        steps.collect()
    }
}
