//! One call of a tool: its attempts, its time, its records.

use super::executor::Shared;
use super::lanes::{Again, Rest};
use super::status::says_fail;
use crate::spans;
use crate::{JournalError, Record, RunEvent, RunLog, Spending};
use foldback_core::panic_text;
use foldback_planner::{Failure, StepId, StepResult};
use foldback_tool::{
    CallContext, CancellationToken, ContextHandle, Data, Effect, Extensions, FailureKind, Tool,
    ToolError, ToolErrorKind, ToolOutput,
};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument, Span};

/// A call that may be made.
pub(super) struct Call {
    pub(super) step: StepId,
    pub(super) function: String,
    /// A JSON object as text, with references filled in.
    pub(super) arguments: String,
    pub(super) key: String,
    pub(super) tool: Arc<dyn Tool>,
    /// The whole context, if the tool sees it.
    pub(super) global_context: Option<Arc<str>>,
}

/// A call that has ended.
pub(super) struct Finished {
    pub(super) step: StepId,
    pub(super) attempts: u32,
    pub(super) result: StepResult,
    /// The failure of the journal, if it failed: the run must not continue.
    pub(super) error: Option<JournalError>,
}

/// The surroundings that all calls of a run share.
pub(super) struct Surroundings {
    pub(super) shared: Arc<Shared>,
    pub(super) run: String,
    pub(super) depth: u32,
    pub(super) cancelled: CancellationToken,
    pub(super) global_context: Option<Arc<str>>,
    pub(super) context: Option<ContextHandle>,
    pub(super) log: RunLog,
    /// The turn that the steps belong to, if they are emitted.
    pub(super) turn: Option<u32>,
    /// Reports calls that wait for their next attempt to the run.
    pub(super) rests: mpsc::UnboundedSender<Rest>,
}

impl Call {
    /// Returns the span of the call. It must be created where the run is driven, so that its parent is the
    /// span of the driver.
    pub(super) fn span(&self) -> Span {
        spans::execute_tool(self.tool.spec(), &self.key)
    }

    /// Makes the call, with a record before and after it. Never panics.
    pub(super) async fn make(self, around: Arc<Surroundings>, span: Span) -> Finished {
        let (log, span, shows_content) = (&around.log, &span, around.shared.settings.trace_content);
        let arguments = shows_content.then_some(&*self.arguments);
        log.emit(RunEvent::ToolCalled { span, arguments });
        let (attempts, result, error) = self.recorded(&around).instrument(span.clone()).await;
        log.emit(RunEvent::ToolAnswered { span, result: &result, shows_content });
        Finished { step: self.step, attempts, result, error }
    }

    async fn recorded(&self, around: &Surroundings) -> (u32, StepResult, Option<JournalError>) {
        if let Err(error) = self.begin(around).await {
            let message = format!("the call was not made: {error}");
            return (0, failure(FailureKind::Tool, message), Some(error));
        }
        if around.cancelled.is_cancelled() {
            // The record says that it began, so another one has to say that it was not made.
            let message = "the run was cancelled before the call was made";
            let result = failure(FailureKind::Cancelled, message);
            let (result, error) = self.end(around, 0, result, Spending::default());
            return (0, result, error);
        }
        // What is spent through the log that the call is lent counts as spent in a resumed run, too.
        let spend = around.log.spend().counting();
        let log = around.log.with_spend(spend.clone());
        let (attempts, result) = self.attempts(around, &log).await;
        if has_kind(&result, FailureKind::Cancelled) {
            // Without an end in the journal, a resumed run repeats the call if that does no harm.
            return (attempts, result, None);
        }
        let (result, error) = self.end(around, attempts, result, spend.spent());
        (attempts, result, error)
    }

    /// Records the outcome of the call.
    fn end(
        &self,
        around: &Surroundings,
        attempts: u32,
        result: StepResult,
        spent: Spending,
    ) -> (StepResult, Option<JournalError>) {
        let (step, key) = (self.step, self.key.clone());
        let spent = Some(spent).filter(|spent| *spent != Spending::default());
        let ended = Record::Ended { step, key, attempts, result: result.clone(), spent };
        let error = around.append(&ended).err();
        (result, error)
    }

    /// Records that the call begins; durably if it is effectful.
    async fn begin(&self, around: &Surroundings) -> Result<(), JournalError> {
        let Some(journal) = &around.shared.journal else { return Ok(()) };
        let (step, key) = (self.step, self.key.clone());
        let (function, arguments) = (self.function.clone(), self.arguments.clone());
        journal.append(&around.run, &Record::Began { step, key, function, arguments })?;
        if self.tool.spec().effect == Effect::Effectful {
            journal.sync().await?;
        }
        Ok(())
    }

    /// Tries until it works or another attempt does not help. Returns the number of attempts, too.
    async fn attempts(&self, around: &Surroundings, log: &RunLog) -> (u32, StepResult) {
        let retry = around.shared.settings.retry;
        let may_repeat = self.tool.spec().effect != Effect::Effectful;
        let mut attempt = 1;
        loop {
            let error = match self.attempt(around, log, attempt).await {
                Ok(output) => return (attempt, self.answer(output, around)),
                Err(error) => error,
            };
            let again = error.is_transient && may_repeat && attempt < retry.attempts;
            if again {
                let rest = self.rest(around, retry.wait(&self.key, attempt));
                around.cancelled.run_until_cancelled(rest).await;
            }
            if may_repeat && around.cancelled.is_cancelled() {
                // It stopped because it was asked to: that says nothing about the next run's attempt.
                let message = format!("the run was cancelled: {}", error.failure.message);
                return (attempt, failure(FailureKind::Cancelled, message));
            }
            if !again {
                let mut message = bounded(error.failure.message, around);
                if attempt > 1 {
                    message = format!("{message} (after {attempt} attempts)");
                }
                return (attempt, failure(error.failure.kind, message));
            }
            attempt += 1;
        }
    }

    /// Gives up its place for a while, and waits until it has one again. A run that is gone does not
    /// answer, and has dropped the call.
    async fn rest(&self, around: &Surroundings, time: Duration) {
        let _ = around.rests.send(Rest::Began(self.step));
        tokio::time::sleep(time).await;
        let (go, may_go) = oneshot::channel();
        let concurrency = self.tool.spec().concurrency;
        let _ = around.rests.send(Rest::Over(Again { step: self.step, concurrency, go }));
        let _ = may_go.await;
    }

    async fn attempt(
        &self,
        around: &Surroundings,
        log: &RunLog,
        attempt: u32,
    ) -> Result<ToolOutput, Failed> {
        let spec = self.tool.spec();
        let cancelled = around.cancelled.child_token();
        let mut extensions = Extensions::default();
        extensions.insert(log.clone());
        let context = CallContext {
            idempotency_key: self.key.clone(),
            attempt,
            cancelled: cancelled.clone(),
            global_context: self.global_context.clone(),
            depth: around.depth,
            context: around.context.clone(),
            extensions,
        };
        // The call itself is inside as well: a tool may panic before it returns a future.
        let call = AssertUnwindSafe(async { self.tool.call(&self.arguments, &context).await });
        let limit = self.tool.timeout(&self.arguments).or(around.shared.settings.timeout);
        let outcome = match limit {
            Some(limit) => {
                tokio::time::timeout(limit, call.catch_unwind()).await.map_err(|_| limit)
            }
            None => Ok(call.catch_unwind().await),
        };
        match outcome {
            Ok(Ok(answer)) => answer.map_err(Failed::from),
            Ok(Err(panic)) => {
                let words = panic_text(&*panic).unwrap_or("without a message");
                let message = format!("the tool {} panicked: {words}", spec.name());
                Err(Failed::finally(FailureKind::Tool, message))
            }
            Err(limit) => {
                cancelled.cancel();
                let doubt = doubt(spec.effect);
                let message = format!(
                    "{} did not answer within {limit:?} and was stopped{doubt}",
                    self.function
                );
                Err(Failed::finally(FailureKind::Timeout, message))
            }
        }
    }

    fn answer(&self, output: ToolOutput, around: &Surroundings) -> StepResult {
        let mut data = output.data;
        if data.structured.is_none() {
            data = Data::of_text(data.text, self.tool.spec().output.as_deref());
        }
        let (bytes, limit) = (size(&data), around.shared.settings.quota.output_bytes);
        if bytes > limit {
            return failure(
                FailureKind::Quota,
                format!(
                    "{} was called and returned {bytes} bytes; at most {limit} are passed on, and a cut \
                 result would mislead: ask for less, or for a part",
                    self.function
                ),
            );
        }
        if !self.tool.spec().answers_data && says_fail(&data) {
            return failure(FailureKind::Status, data.text);
        }
        StepResult::Success { data }
    }
}

impl Surroundings {
    pub(super) fn append(&self, record: &Record) -> Result<(), JournalError> {
        self.shared.journal.as_ref().map_or(Ok(()), |journal| journal.append(&self.run, record))
    }
}

/// The failure of an attempt.
struct Failed {
    failure: Failure,
    is_transient: bool,
}

impl Failed {
    fn finally(kind: FailureKind, message: String) -> Self {
        Self { failure: Failure { kind, message }, is_transient: false }
    }
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        let kind = error.kind.failure();
        let is_transient = error.kind == ToolErrorKind::Transient;
        Self { failure: Failure { kind, message: error.message }, is_transient }
    }
}

/// Returns the bytes of an answer. One that is given as text and as the same JSON counts once.
fn size(data: &Data) -> usize {
    let structured = data.structured.as_ref().filter(|structured| **structured != data.text);
    data.text.len() + structured.map_or(0, String::len)
}

/// Returns the bytes of a call's result.
pub(super) fn bytes_of(result: &StepResult) -> usize {
    match result {
        StepResult::Success { data } => size(data),
        StepResult::Error { failure } => failure.message.len(),
        StepResult::Skipped { .. } => 0,
    }
}

/// Cuts a tool's error message to its greatest length; a cut message says so.
fn bounded(message: String, around: &Surroundings) -> String {
    let limit = around.shared.settings.quota.output_bytes;
    if message.len() <= limit {
        return message;
    }
    let (bytes, end) = (message.len(), message.floor_char_boundary(limit));
    format!("{}... (the first {end} of {bytes} bytes; the rest is not passed on)", &message[..end])
}

pub(super) fn failure(kind: FailureKind, message: impl Into<String>) -> StepResult {
    StepResult::Error { failure: Failure { kind, message: message.into() } }
}

pub(crate) fn has_kind(result: &StepResult, kind: FailureKind) -> bool {
    matches!(result, StepResult::Error { failure } if failure.kind == kind)
}

/// Returns the addition to the message of a call that was stopped.
pub(super) fn doubt(effect: Effect) -> &'static str {
    match effect {
        Effect::Effectful => "; it may have taken effect",
        Effect::ReadOnly | Effect::Idempotent => "",
    }
}
