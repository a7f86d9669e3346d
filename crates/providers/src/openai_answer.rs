//! An answer in the chat-completions format.

use crate::draft::Draft;
use crate::failure::{of_body, unreadable};
use crate::json::{arguments, count, parse, text};
use foldback_llm::{ChatChunk, ChatResponse, ModelError, StopReason, Usage};
use serde_json::Value;
use std::collections::VecDeque;

/// Reads a whole answer.
pub(crate) fn read(answer: &Value, mut draft: Draft) -> Result<ChatResponse, ModelError> {
    if is_error(answer) {
        return Err(of_body(answer));
    }
    let message = answer.pointer("/choices/0/message").filter(|message| message.is_object());
    let Some(message) = message else {
        return Err(unreadable("the answer has no choices[0].message", &answer.to_string()));
    };
    let mut told = VecDeque::new();
    note(answer, &mut draft);
    said(message, &mut draft, &mut told);
    for call in calls(message) {
        let index = draft.begin_call(text(call, "/id"), text(call, "/function/name"), &mut told);
        draft.push_arguments(index, &arguments(call.pointer("/function/arguments")), &mut told);
    }
    draft.into_response(&mut told)
}

/// Reads an answer frame by frame.
pub(crate) struct OpenAiFrames {
    draft: Draft,
    /// The calls, in the order in which they began.
    calls: Vec<Begun>,
    /// Whether a piece of an answer came, and not only an end.
    answered: bool,
    pub(crate) ended: bool,
}

/// What distinguishes a call that has begun from others.
struct Begun {
    /// The index that the provider gave it, if any.
    at: Option<u64>,
    /// The id that the provider gave it; empty if none.
    id: String,
    /// The name; empty until it is known.
    name: String,
}

impl OpenAiFrames {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, calls: Vec::new(), answered: false, ended: false }
    }

    /// Whether the provider has said why the answer ends.
    pub(crate) fn has_stopped(&self) -> bool {
        self.draft.stop.is_some()
    }

    pub(crate) fn read(
        &mut self,
        frame: &str,
        ready: &mut VecDeque<ChatChunk>,
    ) -> Result<(), ModelError> {
        if frame == "[DONE]" {
            self.ended = true;
            return Ok(());
        }
        let Some(frame) = parse(frame) else {
            return Err(unreadable("a piece of the answer is not JSON", frame));
        };
        if is_error(&frame) {
            return Err(of_body(&frame));
        }
        note(&frame, &mut self.draft);
        self.answered |= frame.pointer("/choices/0").is_some_and(Value::is_object);
        let Some(delta) = frame.pointer("/choices/0/delta") else { return Ok(()) };
        said(delta, &mut self.draft, ready);
        for call in calls(delta) {
            let index = self.index(call, ready);
            let more = arguments(call.pointer("/function/arguments"));
            self.draft.push_arguments(index, &more, ready);
        }
        Ok(())
    }

    /// Returns the call that a piece belongs to: that of its index; without an index, the one of its id, or the last.
    ///
    /// Some servers give all calls one index, others a new id with every piece. So at a known index a name begins
    /// another call, unless the call has none yet or the id shows that it is the same; an id alone begins none.
    fn index(&mut self, piece: &Value, ready: &mut VecDeque<ChatChunk>) -> usize {
        let at = piece.get("index").and_then(Value::as_u64);
        let (id, name) = (text(piece, "/id"), text(piece, "/function/name"));
        let is_of_id = |call: &Begun| !id.is_empty() && call.id == id;
        let known = match at {
            Some(_) => self
                .calls
                .iter()
                .rposition(|call| call.at == at && is_of_id(call))
                .or_else(|| self.calls.iter().rposition(|call| call.at == at)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(is_of_id),
        };
        if let Some(index) = known {
            let call = &mut self.calls[index];
            if name.is_empty() || name == call.name && is_of_id(call) {
                return index;
            }
            if call.name.is_empty() {
                name.clone_into(&mut call.name);
                self.draft.name_call(index, name, ready);
                return index;
            }
        }
        self.calls.push(Begun { at, id: id.to_owned(), name: name.to_owned() });
        self.draft.begin_call(id, name, ready)
    }

    pub(crate) fn finish(
        self,
        ready: &mut VecDeque<ChatChunk>,
    ) -> Result<ChatResponse, ModelError> {
        if !self.ended && self.draft.stop.is_none() {
            return Err(unreadable("the answer broke off before its end", ""));
        }
        if !self.answered {
            return Err(unreadable("the answer ended without any choices", ""));
        }
        self.draft.into_response(ready)
    }
}

/// Returns whether an answer, or a frame of one, reports an error: beside the choices, or instead
/// of all else as vLLM does.
pub(crate) fn is_error(answer: &Value) -> bool {
    answer.get("error").is_some_and(|error| !error.is_null()) || text(answer, "/object") == "error"
}

/// Reads the members of an answer or a frame other than the message.
fn note(answer: &Value, draft: &mut Draft) {
    if let Some(model) = answer.get("model").and_then(Value::as_str).filter(|name| !name.is_empty())
    {
        model.clone_into(&mut draft.model);
    }
    if let Some(usage) = answer.get("usage").filter(|usage| usage.is_object()) {
        draft.usage = read_usage(usage);
    }
    let reason = answer.pointer("/choices/0/finish_reason").and_then(Value::as_str);
    let reason = reason.filter(|reason| !reason.is_empty());
    if let Some(reason) = reason.filter(|reason| INTERRUPTED.contains(reason)) {
        draft.interrupted = Some(reason.to_owned());
    }
    // A refusal ends like any answer.
    if let (Some(reason), true) = (reason, draft.stop != Some(StopReason::Filtered)) {
        draft.stop = Some(stop_reason(reason));
    }
}

fn read_usage(usage: &Value) -> Usage {
    let read = usage
        .pointer("/prompt_tokens_details/cached_tokens")
        // As DeepSeek reports it.
        .or_else(|| usage.get("prompt_cache_hit_tokens"));
    Usage {
        input: count(usage.get("prompt_tokens")),
        output: count(usage.get("completion_tokens")),
        cached_read: count(read),
        cached_write: count(usage.pointer("/prompt_tokens_details/cache_write_tokens")),
    }
}

/// The reasons of answers that an outage has ended, as DeepSeek, vLLM and OpenRouter name them: such an answer is asked
/// for again.
const INTERRUPTED: [&str; 3] = ["insufficient_system_resource", "abort", "error"];

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::End,
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" => StopReason::Length,
        "content_filter" => StopReason::Filtered,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Reads the text, the refusal and the reasoning of a message or of a piece of one.
fn said(message: &Value, draft: &mut Draft, ready: &mut VecDeque<ChatChunk>) {
    match message.get("content") {
        Some(Value::String(text)) => draft.push_text(text, ready),
        Some(Value::Array(parts)) => {
            for part in parts {
                draft.push_text(text(part, "/text"), ready);
            }
        }
        _ => {}
    }
    let refusal = message.get("refusal").and_then(Value::as_str);
    if let Some(refusal) = refusal.filter(|refusal| !refusal.is_empty()) {
        draft.push_text(refusal, ready);
        draft.stop = Some(StopReason::Filtered);
    }
    let thoughts = ["reasoning_content", "reasoning"];
    if let Some(thoughts) =
        thoughts.iter().find_map(|key| message.get(*key).and_then(Value::as_str))
    {
        draft.push_reasoning(thoughts);
    }
}

fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten().filter(|call| call.is_object())
}
