//! Asking the model.

use crate::spans;
use foldback_llm::{
    CACHE_BREAKPOINT, Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, MarkLimits,
    ModelError, ModelErrorKind, place_cache_marks,
};
use futures::StreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::{Instrument, Span};

/// Marks that serve every provider: as many as the strictest takes, and each end of a prefix marked,
/// whether or not the provider looks for it by itself.
const MARKS: MarkLimits = MarkLimits::OPENAI;

/// Asks the model, inside a span of its own.
pub(crate) async fn ask(
    model: &dyn ChatModel,
    request: &ChatRequest,
) -> Result<ChatResponse, ModelError> {
    let span = spans::chat(model.name());
    let request = &marked(request, model.capabilities());
    let answer = model.complete(request).instrument(span.clone()).await;
    note(&span, answer)
}

/// The same, with the text as it is being written.
pub(crate) async fn streamed(
    model: &dyn ChatModel,
    request: &ChatRequest,
    mut told: impl FnMut(String) + Send,
) -> Result<ChatResponse, ModelError> {
    let span = spans::chat(model.name());
    let request = &marked(request, model.capabilities());
    let answer = async {
        let mut stream = model.stream(request).await?;
        while let Some(chunk) = stream.next().await {
            match chunk? {
                ChatChunk::Text(text) => told(text),
                ChatChunk::ToolCall { .. } => {}
                ChatChunk::Done(response) => return Ok(*response),
            }
        }
        let message = "the answer broke off: its stream ended without an end";
        Err(ModelError::new(ModelErrorKind::Response, message))
    };
    note(&span, answer.instrument(span.clone()).await)
}

/// The request with its cache marks: those of whoever wrote it first, and of the others as many as the
/// provider takes. Where it takes none, the marks stay as they are.
fn marked(request: &ChatRequest, offered: Capabilities) -> ChatRequest {
    let unmarked = ChatRequest { cache_marks: Vec::new(), ..request.clone() };
    let mut placed = place_cache_marks(unmarked, MARKS);
    let given = moved(request);
    if !offered.cache_marks {
        placed.cache_marks = given;
        return placed;
    }
    let standing = placed.messages.iter().take_while(|m| m.role().is_instruction()).count();
    let at_head = |mark: &&usize| **mark + 1 == standing;
    let own = &placed.cache_marks;
    let wished = given.iter().rev().chain(own.iter().filter(at_head)).chain(own.iter().rev());
    let mut marks = BTreeSet::new();
    for mark in wished {
        if marks.len() < MARKS.most {
            marks.insert(*mark);
        }
    }
    placed.cache_marks = marks.into_iter().collect();
    placed
}

/// The marks that a request has, where its messages stand once the instructions are cut at the marks in
/// their text.
fn moved(request: &ChatRequest) -> Vec<usize> {
    let mut ends = Vec::with_capacity(request.messages.len());
    let mut end: usize = 0;
    for message in &request.messages {
        end += if message.role().is_instruction() && message.text().contains(CACHE_BREAKPOINT) {
            let messages = vec![Arc::clone(message)];
            place_cache_marks(ChatRequest { messages, ..ChatRequest::default() }, MARKS)
                .messages
                .len()
        } else {
            1
        };
        ends.push(end);
    }
    let mark = |at: &usize| ends.get(*at).and_then(|end| end.checked_sub(1));
    request.cache_marks.iter().filter_map(mark).collect()
}

fn note(span: &Span, answer: Result<ChatResponse, ModelError>) -> Result<ChatResponse, ModelError> {
    match &answer {
        Ok(response) => spans::record_usage(span, &response.usage),
        Err(error) => spans::record_error(span, error.kind.as_str()),
    }
    answer
}
