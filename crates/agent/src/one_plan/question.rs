//! A question that is with the model while the executor goes on.

use super::request::Reason;
use crate::agent::Agent;
use crate::ask::{ask, streamed};
use crate::trajectory::{Asked, Purpose};
use foldback_llm::{ChatRequest, ChatResponse, ModelError};
use foldback_planner::{OnePlanEvent, OnePlanReader, Step};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A question that is with the model.
pub(super) struct Question<'a> {
    pub(super) purpose: Purpose,
    pub(super) reason: Reason,
    pub(super) request: ChatRequest,
    /// Its place in the record; `None` of one that an earlier run has asked.
    pub(super) asked: Option<Asked>,
    answer: BoxFuture<'a, Result<ChatResponse, ModelError>>,
    written: Option<Written>,
}

/// A plan that is being written.
struct Written {
    pieces: UnboundedReceiver<String>,
    reader: OnePlanReader,
}

/// What comes of a question.
pub(super) enum Reply {
    /// These steps of the plan are written; there will be more.
    Steps(Vec<Step>),
    /// All of the answer.
    Whole(Box<Result<ChatResponse, ModelError>>),
}

impl<'a> Question<'a> {
    /// Asks the model.
    pub(super) fn ask(
        agent: &'a Agent,
        purpose: Purpose,
        reason: Reason,
        request: ChatRequest,
        asked: Asked,
    ) -> Self {
        let model = &*agent.model;
        let own = request.clone();
        let answer = async move { ask(model, &own).await }.boxed();
        Self { purpose, reason, request, asked: Some(asked), answer, written: None }
    }

    /// Asks the model for a plan that is read while it is being written.
    pub(super) fn ask_for_steps(agent: &'a Agent, request: ChatRequest, asked: Asked) -> Self {
        let (sender, pieces) = unbounded_channel();
        let model = &*agent.model;
        let own = request.clone();
        let answer = async move {
            // Nobody listens any more when the run is over; the answer does not matter then.
            streamed(model, &own, |text| drop(sender.send(text))).await
        };
        let written = Some(Written { pieces, reader: OnePlanReader::new() });
        let (purpose, reason) = (Purpose::Planner, Reason::default());
        Self { purpose, reason, request, asked: Some(asked), answer: answer.boxed(), written }
    }

    /// A question that an earlier run was answered.
    pub(super) fn answered(
        purpose: Purpose,
        reason: Reason,
        request: ChatRequest,
        answer: Result<ChatResponse, ModelError>,
    ) -> Self {
        let answer = async move { answer }.boxed();
        Self { purpose, reason, request, asked: None, answer, written: None }
    }

    /// What comes next. Loses nothing when it is dropped; must not be asked again behind the whole
    /// answer.
    pub(super) async fn reply(&mut self) -> Reply {
        let Some(written) = &mut self.written else {
            return Reply::Whole(Box::new((&mut self.answer).await));
        };
        loop {
            tokio::select! {
                biased;
                Some(text) = written.pieces.recv() => {
                    let steps = written.reader.push(&text).into_iter().filter_map(|event| {
                        match event {
                            OnePlanEvent::Step(step) => Some(step),
                            _ => None,
                        }
                    });
                    let steps: Vec<Step> = steps.collect();
                    if !steps.is_empty() {
                        return Reply::Steps(steps);
                    }
                }
                answer = &mut self.answer => return Reply::Whole(Box::new(answer)),
            }
        }
    }
}
