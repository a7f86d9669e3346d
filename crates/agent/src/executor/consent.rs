//! The calls that wait for approval.

use super::call::Call;
use crate::{ApprovalRequest, Approver, Decision};
use foldback_core::TodoId;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// A call, and whether it needs approval.
pub(super) struct Candidate {
    pub(super) call: Call,
    pub(super) ask: bool,
}

/// A call and the decision on it, if approval was asked for.
pub(super) type Decided = (Call, Option<Decision>);

/// The batches that wait for approval. One question is asked at a time; batches that arrive meanwhile are
/// combined in the next one.
#[derive(Default)]
pub(super) struct Consent {
    waiting: Vec<Candidate>,
    asking: Option<BoxFuture<'static, Vec<Decided>>>,
}

impl Consent {
    pub(super) fn push(&mut self, batch: Vec<Candidate>) {
        self.waiting.extend(batch);
    }

    /// Asks on behalf of a todo about the waiting calls, unless a question is open; returns the calls that are
    /// asked about.
    pub(super) fn ask(
        &mut self,
        approver: &Arc<dyn Approver>,
        timeout: Option<Duration>,
        todo: Option<&TodoId>,
    ) -> Vec<ApprovalRequest> {
        if self.asking.is_some() || self.waiting.is_empty() {
            return Vec::new();
        }
        let batch = std::mem::take(&mut self.waiting);
        let asked = batch.iter().filter(|candidate| candidate.ask);
        let requests: Vec<_> = asked.map(|candidate| candidate.call.request(todo)).collect();
        self.asking = Some(ask(Arc::clone(approver), batch, requests.clone(), timeout).boxed());
        requests
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Waits for the answer to the open question, for ever if none is open. Loses nothing when dropped.
    pub(super) async fn answer(&mut self) -> Vec<Decided> {
        let Some(asking) = &mut self.asking else { return std::future::pending().await };
        let decided = asking.await;
        self.asking = None;
        decided
    }

    /// Forgets the waiting calls and the open question.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.asking = None;
    }
}

async fn ask(
    approver: Arc<dyn Approver>,
    batch: Vec<Candidate>,
    requests: Vec<ApprovalRequest>,
    timeout: Option<Duration>,
) -> Vec<Decided> {
    let answer = AssertUnwindSafe(async { approver.decide(&requests).await }).catch_unwind();
    let answer = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, answer).await.map_err(|_| timeout),
        None => Ok(answer.await),
    };
    let refused = |reason: String| vec![Decision::Denied { reason }; requests.len()];
    let decisions = match answer {
        Ok(Ok(decisions)) if decisions.len() == requests.len() => decisions,
        Ok(Ok(decisions)) => refused(format!(
            "{} decisions were given for {} calls",
            decisions.len(),
            requests.len()
        )),
        Ok(Err(_)) => refused("the approver panicked".to_owned()),
        Err(timeout) => refused(format!("nobody approved it within {timeout:?}")),
    };
    let mut decisions = decisions.into_iter();
    let decide = |Candidate { call, ask }| (call, if ask { decisions.next() } else { None });
    batch.into_iter().map(decide).collect()
}

impl Call {
    fn request(&self, todo: Option<&TodoId>) -> ApprovalRequest {
        ApprovalRequest {
            todo: todo.cloned(),
            step: self.step,
            function: self.function.clone(),
            arguments: self.arguments.clone(),
            effect: self.tool.spec().effect,
        }
    }
}
