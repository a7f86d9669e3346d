//! Requests to a model on behalf of a run.

mod cache_marks;
mod open_question;
mod recorded_answers;

use crate::agent::{Agent, AgentError, Task};
use crate::context_window::Estimated;
use crate::trajectory::{Purpose, Stop, hash_of};
use crate::{Journal, Resource, RunError, RunEvent, RunLog, spans};
use cache_marks::marked;
use foldback_core::{Estimate, TokenCounter, ToolDefinition, message_tokens};
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, Usage,
};
use foldback_tool::CancellationToken;
use futures::StreamExt;
use open_question::OpenQuestion;
use parking_lot::Mutex;
use recorded_answers::RecordedAnswers;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// Asks a model on behalf of a run. A question whose answer the journal holds is not asked again; every
/// question is emitted to the run's log.
#[derive(Clone)]
pub(crate) struct ModelCaller {
    run: String,
    journal: Option<Arc<dyn Journal>>,
    answers: Arc<Mutex<RecordedAnswers>>,
    cancelled: CancellationToken,
    log: RunLog,
}

/// The outcome of a question.
#[derive(Debug)]
pub enum Reply {
    /// The model's answer.
    Answer(ChatResponse),
    /// There is no answer, or one that cannot be read.
    Failed(ModelError),
    /// The run was cancelled meanwhile.
    Cancelled,
    /// No request was made: this resource may not be spent any more.
    Exhausted(Resource),
}

/// A receiver of an answer's text as it is written; it is dropped once the text is complete.
pub(crate) type OnText<'a> = Box<dyn FnMut(Written<'_>) + Send + 'a>;

/// A part of an answer's text while the model writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// More of the text.
    Text(&'a str),
    /// The answer broke off and is requested again: its text so far is void.
    Again,
}

/// A piece of an answer, while the model writes it.
///
/// It is for observers alone: neither the journal nor the trajectory holds it, and a run that resumes after a
/// kill does not repeat it. The complete answer counts, which follows as an event
/// ([`AgentEvent::Answered`](crate::AgentEvent::Answered)) if there is one; a second question with the same key
/// voids earlier pieces. An answer that arrives whole is one piece.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// The purpose of the request.
    pub purpose: &'a Purpose,
    /// The name of the question among those of its purpose that are open.
    pub key: &'a str,
    /// The part of the answer.
    pub written: Written<'a>,
}

impl<'a> Piece<'a> {
    /// Creates a piece of the answer to a question.
    #[must_use]
    pub fn new(purpose: &'a Purpose, key: &'a str, written: Written<'a>) -> Self {
        Self { purpose, key, written }
    }
}

/// A question to a model.
pub(crate) struct Question<'a> {
    /// The purpose.
    pub(crate) purpose: Purpose,
    /// A key that is unique among the questions of a purpose in the run, and the same when the run is resumed.
    pub(crate) key: &'a str,
    /// The reason, as JSON, for a resumed run to find.
    pub(crate) reason: Option<Box<RawValue>>,
    /// The request.
    pub(crate) request: ChatRequest,
}

impl ModelCaller {
    /// Creates a caller for a task's run, whose name is held, with the answers in its journal.
    pub(crate) fn open(agent: &Agent, task: &Task, log: &RunLog) -> Result<Self, AgentError> {
        let records = agent.executor.records(&task.run)?;
        let answers = RecordedAnswers::of(&task.run, &records).map_err(RunError::from)?;
        log.spend().charge(recorded_answers::all_lost(&records));
        Ok(Self {
            run: task.run.clone(),
            journal: agent.executor.journal().cloned(),
            answers: Arc::new(Mutex::new(answers)),
            cancelled: task.cancelled.clone(),
            log: log.clone(),
        })
    }

    /// Returns the same caller for a task within narrower limits, which is charged to this log.
    pub(crate) fn within(&self, task: &Task, log: &RunLog) -> Self {
        Self { cancelled: task.cancelled.clone(), log: log.clone(), ..self.clone() }
    }

    /// Asks the model. `key` is unique among the questions of one purpose in the run, and the same when the
    /// run is resumed ("3", "query-2"); questions may be asked in parallel.
    pub(crate) async fn ask(
        &self,
        model: &dyn ChatModel,
        purpose: Purpose,
        key: &str,
        request: ChatRequest,
    ) -> Result<Reply, AgentError> {
        self.put(model, Question { purpose, key, reason: None, request }, None).await
    }

    /// Asks the model, with a reason that a resumed run finds again, and passes the text to `on_text` as it is
    /// written. The journal has the answer before this returns.
    pub(crate) async fn put(
        &self,
        model: &dyn ChatModel,
        question: Question<'_>,
        on_text: Option<OnText<'_>>,
    ) -> Result<Reply, AgentError> {
        let Question { purpose, key, reason, mut request } = question;
        let purpose = &purpose;
        let noted = self.answers.lock().take(purpose, key);
        if let Some((answer, request_hash)) = noted {
            let answer = answer.map(|response| self.counted(response, &request));
            self.log.emit(RunEvent::Answered {
                purpose,
                key,
                answer: &answer,
                from_journal: true,
                request_hash: request_hash.as_deref(),
                span: &Span::none(),
            });
            return Ok(Reply::of(answer));
        }
        if self.cancelled.is_cancelled() {
            return Ok(Reply::Cancelled);
        }
        let (spend, tokens) = (self.log.spend(), estimated(&request).all as u64);
        let begun = match spend.begin_model_call(tokens) {
            Ok(begun) => begun,
            Err(resource) => return Ok(Reply::Exhausted(resource)),
        };
        request.id = Some(format!("{}/{}/{key}", self.run, purpose.name()));
        let mut on_text = on_text;
        // The receiver of the text is dropped with the answer, before that is noted.
        let hear = move |written: Written<'_>| {
            self.log.emit(RunEvent::Wrote { piece: Piece::new(purpose, key, written) });
            if let Some(on_text) = &mut on_text {
                on_text(written);
            }
        };
        self.log.emit(RunEvent::Asked { purpose, key, request: &request, tokens });
        let span = spans::chat(model.name());
        let open = OpenQuestion::new(self, begun, tokens);
        let answer = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => return Ok(Reply::Cancelled),
            () = until(spend.deadline()) => return Ok(Reply::Exhausted(Resource::Time)),
            answer = answered(model, &request, &open, hear).instrument(span.clone()) => answer,
        };
        let mut answer = answer.map(|response| self.counted(response, &request));
        let begun = open.end(&mut answer);
        let request_hash = hash_of(&request);
        let noted = self.note(purpose, key, (reason, &request_hash), &answer);
        self.log.emit(RunEvent::Answered {
            purpose,
            key,
            answer: &answer,
            from_journal: false,
            request_hash: Some(&request_hash),
            span: &span,
        });
        // From here on its actual tokens count instead of the estimate.
        drop(begun);
        if let Some(journal) = noted? {
            // The answer that the context is about to record has to be found after a power cut, too.
            journal.sync().await.map_err(RunError::from)?;
        }
        Ok(Reply::of(answer))
    }

    /// Estimates what a server does not report of its usage, if a limit depends on it.
    fn counted(&self, mut response: ChatResponse, request: &ChatRequest) -> ChatResponse {
        let (spend, is_unknown) = (self.log.spend(), response.usage == Usage::default());
        if is_unknown && spend.bounds_usage() {
            response.usage.input = estimated(request).all as u64;
            response.usage.output = message_tokens(&Estimate, &response.message) as u64;
            if spend.begins_estimating() {
                self.log.note(format_args!(
                    "the server does not report how many tokens it took; estimates count towards the limits"
                ));
            }
        }
        response
    }

    /// Records an answer; returns the journal that has to be synced for it, if there is one.
    fn note(
        &self,
        purpose: &Purpose,
        key: &str,
        asked: (Option<Box<RawValue>>, &str),
        answer: &Result<ChatResponse, ModelError>,
    ) -> Result<Option<&Arc<dyn Journal>>, RunError> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let Some(note) = recorded_answers::record(purpose.clone(), key, asked, answer)? else {
            return Ok(None);
        };
        journal.append(&self.run, &note)?;
        Ok(Some(journal))
    }

    /// Returns whether the journal holds the answer.
    pub(crate) fn holds(&self, purpose: &Purpose, key: &str) -> bool {
        self.answers.lock().holds(purpose, key)
    }

    /// Returns the purpose of the next answer that the journal holds, and why it was asked for.
    pub(crate) fn next_noted(&self) -> Option<(Purpose, Option<Box<RawValue>>)> {
        let answers = self.answers.lock();
        answers.next().map(|(purpose, reason)| (purpose, reason.map(ToOwned::to_owned)))
    }
}

impl Reply {
    /// Returns the answer, or the reason why a run that needs it ends.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn answer(self) -> Result<ChatResponse, Stop> {
        match self {
            Self::Answer(response) => Ok(response),
            Self::Failed(error) => Err(Stop::ModelFailed { message: error.message }),
            Self::Cancelled => Err(Stop::Cancelled),
            Self::Exhausted(resource) => Err(Stop::Exhausted { resource }),
        }
    }

    fn of(answer: Result<ChatResponse, ModelError>) -> Self {
        match answer {
            Ok(response) => Self::Answer(response),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Waits until a moment, for ever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Returns the model's answer, and passes on its text as it is written.
async fn answered(
    model: &dyn ChatModel,
    request: &ChatRequest,
    open: &OpenQuestion<'_>,
    mut hear: impl FnMut(Written<'_>),
) -> Result<ChatResponse, ModelError> {
    let request = &marked(request, model.capabilities());
    let mut stream = model.stream(request).await?;
    open.hear("");
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ChatChunk::Text(text) => {
                open.hear(&text);
                hear(Written::Text(&text));
            }
            ChatChunk::Again => {
                open.again();
                hear(Written::Again);
            }
            ChatChunk::ToolCall { arguments, .. } => open.hear(&arguments),
            ChatChunk::Done(response) => return Ok(*response),
        }
    }
    let message = "the answer broke off: its stream ended without an end";
    Err(ModelError::new(ModelErrorKind::Response, message))
}

/// Returns the estimated tokens of a request.
pub(crate) fn estimated(request: &ChatRequest) -> Estimated {
    let messages = request.messages.iter().map(|message| message_tokens(&Estimate, message));
    let tool = |tool: &ToolDefinition| -> usize {
        [&tool.name, &tool.description, &tool.parameters]
            .map(|text| Estimate.count(text))
            .iter()
            .sum()
    };
    let tools: usize = request.tools.iter().map(tool).sum();
    Estimated { all: messages.sum::<usize>() + tools, tools }
}
