//! A question that is with the model while the executor goes on.

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

/// A question that is with the model.
pub(super) struct Question<'a> {
    pub(super) purpose: Purpose,
    pub(super) reason: Reason,
    pub(super) request: ChatRequest,
    /// Whether an earlier run has asked it.
    pub(super) was_noted: bool,
    answer: BoxFuture<'a, Result<Reply, AgentError>>,
    written: Option<BeingWritten>,
}

/// A plan that is being written.
struct BeingWritten {
    /// Its text; `None` where it broke off, and begins anew.
    pieces: UnboundedReceiver<Option<String>>,
    reader: OnePlanReader,
}

/// What is heard of a question.
pub(super) enum Heard {
    /// These steps of the plan are written; there will be more.
    Steps(Vec<Step>),
    /// The plan broke off, and is asked for again: its steps so far may not be in it.
    Again,
    /// All of the answer.
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
                // Nobody listens any more when the run is over; the answer does not matter then.
                drop(sender.send(text));
            };
            let on_text = streamed.then(|| Box::new(on_text) as OnText<'_>);
            run.model_caller.put(run.agent().model(), question, on_text).await
        };
        Self { purpose, reason, request, was_noted, answer: answer.boxed(), written }
    }

    /// What comes next. Loses nothing when it is dropped; must not be asked again behind the whole
    /// answer.
    pub(super) async fn reply(&mut self) -> Heard {
        let Some(written) = &mut self.written else {
            return Heard::Whole(Box::new((&mut self.answer).await));
        };
        loop {
            tokio::select! {
                biased;
                // A plan that came at once is whole before any of its steps could start early.
                answer = &mut self.answer => return Heard::Whole(Box::new(answer)),
                Some(text) = written.pieces.recv() => {
                    let Some(text) = text else {
                        written.reader = OnePlanReader::new();
                        return Heard::Again;
                    };
                    let steps = written.steps(&text);
                    // Of a text that is whole the plan is taken.
                    if !steps.is_empty() && !written.pieces.is_closed() {
                        return Heard::Steps(steps);
                    }
                }
            }
        }
    }
}

impl BeingWritten {
    /// The steps that more of the text brings.
    fn steps(&mut self, text: &str) -> Vec<Step> {
        let events = self.reader.push(text).into_iter();
        let steps = events.filter_map(|event| match event {
            OnePlanEvent::Step(step) => Some(step),
            _ => None,
        });
        steps.collect()
    }
}
