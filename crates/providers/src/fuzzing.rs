//! For fuzzing: the readers of what models answer, without a server.

use crate::anthropic_answer::{self, AnthropicFrames};
use crate::draft::Draft;
use crate::hermes::{HermesParser, HermesPart};
use crate::openai_answer::{self, OpenAiFrames};
use crate::sse::Events;
use crate::{Provider, json};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, ToolNames};
use std::collections::VecDeque;

/// The longest event of a stream.
const LONGEST: usize = 1 << 20;

fn draft() -> Draft {
    Draft::new(&ChatRequest::default(), ToolNames::default(), "m")
}

/// Reads a streamed answer in pieces of this many bytes.
///
/// # Errors
/// The error that a model gives for such an answer.
pub fn stream(provider: Provider, bytes: &[u8], piece: usize) -> Result<ChatResponse, ModelError> {
    let mut events = Events::new(LONGEST);
    let mut frames = Vec::new();
    bytes.chunks(piece.max(1)).try_for_each(|piece| events.read(piece, &mut frames))?;
    events.finish(&mut frames)?;
    let frames = frames.iter().filter(|frame| !frame.is_empty());
    let mut ready = VecDeque::new();
    if provider == Provider::Anthropic {
        let mut reader = AnthropicFrames::new(draft().with_calls_in_text(""));
        for frame in frames {
            reader.read(frame, &mut ready)?;
        }
        return reader.finish(&mut ready);
    }
    let mut reader = OpenAiFrames::new(draft().with_calls_in_text(""));
    for frame in frames {
        reader.read(frame, &mut ready)?;
    }
    reader.finish(&mut ready)
}

/// Reads a whole answer; `None` if the text is not JSON.
///
/// # Errors
/// The error that a model gives for such an answer.
pub fn whole(provider: Provider, text: &str) -> Option<Result<ChatResponse, ModelError>> {
    let answer = json::parse(text)?;
    Some(match provider {
        Provider::Anthropic => anthropic_answer::read(&answer, draft()),
        _ => openai_answer::read(&answer, draft()),
    })
}

/// Reads calls in a text that comes in pieces of this many characters: each part as text, adjacent texts joined.
#[must_use]
pub fn hermes(text: &str, piece: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut parser = HermesParser::default();
    let mut parts = Vec::new();
    for piece in characters.chunks(piece.max(1)) {
        parts.extend(parser.push(&piece.iter().collect::<String>()));
    }
    parts.extend(parser.finish());
    let mut told: Vec<(bool, String)> = Vec::new();
    for part in parts {
        match (part, told.last_mut()) {
            (HermesPart::Text(text), Some((true, words))) => words.push_str(&text),
            (HermesPart::Text(text), _) => told.push((true, text)),
            (HermesPart::Call(call), _) => told.push((false, format!("{call:?}"))),
            (HermesPart::Problem(problem), _) => {
                told.push((false, format!("{problem}: {problem:?}")));
            }
        }
    }
    told.into_iter().map(|(_, text)| text).collect()
}
