//! Asking a model on behalf of a run.

mod cache_marks;
mod recorded_answers;

use crate::agent::{Agent, AgentError, Task};
use crate::context_window::Estimated;
use crate::trajectory::{Purpose, Stop, hash_of};
use crate::{Journal, Resource, RunError, RunEvent, RunLog, spans};
use cache_marks::marked;
use foldback_core::{Estimate, TokenCounter, ToolDefinition, message_tokens};
use foldback_llm::{ChatChunk, ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind};
use foldback_tool::CancellationToken;
use futures::StreamExt;
use parking_lot::Mutex;
use recorded_answers::RecordedAnswers;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// Asks a model on behalf of a run. What the journal holds is not asked again; what is asked is emitted
/// to the run's log.
#[derive(Clone)]
pub(crate) struct ModelCaller {
    run: String,
    journal: Option<Arc<dyn Journal>>,
    answers: Arc<Mutex<RecordedAnswers>>,
    cancelled: CancellationToken,
    log: RunLog,
}

/// What comes of a question.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is an answer nearly always")]
pub enum Reply {
    /// The model's answer.
    Answer(ChatResponse),
    /// There is none, or one that cannot be read.
    Failed(ModelError),
    /// The run was cancelled meanwhile.
    Cancelled,
    /// Nobody was asked: this may not be spent any more.
    Exhausted(Resource),
}

/// Takes an answer's text as it is written; gone once the text is whole.
pub(crate) type OnText<'a> = Box<dyn FnMut(Written<'_>) + Send + 'a>;

/// What is written of an answer's text while the model writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// More of the text.
    Text(&'a str),
    /// The answer broke off, and is asked for again: what came of it so far is void.
    Again,
}

/// A piece of an answer, while the model writes it.
///
/// It is for observers alone: neither the journal nor the trajectory has it, and a run that goes on after it was
/// killed does not say it again. What holds is the whole answer, which follows as an event
/// ([`AgentEvent::Answered`](crate::AgentEvent::Answered)) where there is one; a second question of the same key
/// voids what came. An answer that comes whole is one piece.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// What the model was asked for.
    pub purpose: &'a Purpose,
    /// The name of the question among those of its purpose that are open.
    pub key: &'a str,
    /// What it writes.
    pub written: Written<'a>,
}

impl<'a> Piece<'a> {
    /// What is written for a question.
    #[must_use]
    pub fn new(purpose: &'a Purpose, key: &'a str, written: Written<'a>) -> Self {
        Self { purpose, key, written }
    }
}

/// What is asked.
pub(crate) struct Question<'a> {
    /// What for.
    pub(crate) purpose: Purpose,
    /// Unique among the questions of a purpose in the run, and the same when the run is resumed.
    pub(crate) key: &'a str,
    /// Why, for a resumed run to find: JSON.
    pub(crate) reason: Option<Box<RawValue>>,
    /// The request.
    pub(crate) request: ChatRequest,
}

impl ModelCaller {
    /// Takes what the journal holds of a task's run, whose name is held.
    pub(crate) fn open(agent: &Agent, task: &Task, log: &RunLog) -> Result<Self, AgentError> {
        let records = agent.executor.records(&task.run)?;
        let answers = RecordedAnswers::of(&task.run, &records).map_err(RunError::from)?;
        Ok(Self {
            run: task.run.clone(),
            journal: agent.executor.journal().cloned(),
            answers: Arc::new(Mutex::new(answers)),
            cancelled: task.cancelled.clone(),
            log: log.clone(),
        })
    }

    /// The same for a task within narrower limits: what it takes is charged to this log.
    pub(crate) fn within(&self, task: &Task, log: &RunLog) -> Self {
        Self { cancelled: task.cancelled.clone(), log: log.clone(), ..self.clone() }
    }

    /// Asks. `key` is unique among the asks of one purpose in the run, and the same when the run is
    /// resumed ("3", "query-2"); asks may run beside each other.
    pub(crate) async fn ask(
        &self,
        model: &dyn ChatModel,
        purpose: Purpose,
        key: &str,
        request: ChatRequest,
    ) -> Result<Reply, AgentError> {
        self.put(model, Question { purpose, key, reason: None, request }, None).await
    }

    /// Asks, with a reason that a resumed run finds again, and with the text as it is being written for
    /// `on_text`. The journal has the answer before this returns.
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
        // What takes the text is gone with the answer, also while that is still noted.
        let hear = move |written: Written<'_>| {
            self.log.emit(RunEvent::Wrote { piece: Piece::new(purpose, key, written) });
            if let Some(on_text) = &mut on_text {
                on_text(written);
            }
        };
        self.log.emit(RunEvent::Asked { purpose, key, request: &request, tokens });
        let span = spans::chat(model.name());
        let answer = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => return Ok(Reply::Cancelled),
            () = until(spend.deadline()) => return Ok(Reply::Exhausted(Resource::Time)),
            answer = answered(model, &request, hear).instrument(span.clone()) => answer,
        };
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
        // From here on its tokens count, and not the estimate of them.
        drop(begun);
        if let Some(journal) = noted? {
            // What the context is about to record has to be found again after a power cut, too.
            journal.sync().await.map_err(RunError::from)?;
        }
        Ok(Reply::of(answer))
    }

    /// Writes an answer down; gives the journal that has to be synced for it, if there is one.
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

    /// Whether the journal holds the answer.
    pub(crate) fn holds(&self, purpose: &Purpose, key: &str) -> bool {
        self.answers.lock().holds(purpose, key)
    }

    /// What the next answer that the journal holds was asked for, and why.
    pub(crate) fn next_noted(&self) -> Option<(Purpose, Option<Box<RawValue>>)> {
        let answers = self.answers.lock();
        answers.next().map(|(purpose, reason)| (purpose, reason.map(ToOwned::to_owned)))
    }
}

impl Reply {
    /// The answer; or why a run ends that cannot do without it.
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

/// Ends at a moment; never, where there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The model's answer, whose text is heard as it is written.
async fn answered(
    model: &dyn ChatModel,
    request: &ChatRequest,
    mut hear: impl FnMut(Written<'_>),
) -> Result<ChatResponse, ModelError> {
    let request = &marked(request, model.capabilities());
    let mut stream = model.stream(request).await?;
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ChatChunk::Text(text) => hear(Written::Text(&text)),
            ChatChunk::Again => hear(Written::Again),
            ChatChunk::ToolCall { .. } => {}
            ChatChunk::Done(response) => return Ok(*response),
        }
    }
    let message = "the answer broke off: its stream ended without an end";
    Err(ModelError::new(ModelErrorKind::Response, message))
}

/// The estimated tokens of a request.
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
