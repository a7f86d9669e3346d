//! An answer in the format of Anthropic's Messages API.

use crate::draft::Draft;
use crate::failure::{of_body, unreadable};
use crate::json::{arguments, count, parse, text};
use foldback_llm::{ChatChunk, ChatResponse, ModelError, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Reads a whole answer.
pub(crate) fn read(answer: &Value, mut draft: Draft) -> Result<ChatResponse, ModelError> {
    if answer["type"] == "error" || answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(of_body(answer));
    }
    let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
        return Err(unreadable("the answer has no content", &answer.to_string()));
    };
    let mut told = VecDeque::new();
    note(answer, &mut draft);
    for block in blocks {
        match text(block, "/type") {
            "text" => draft.push_text(text(block, "/text"), &mut told),
            "thinking" => {
                draft.push_reasoning(text(block, "/thinking"));
                draft.push_thinking(block.clone());
            }
            "redacted_thinking" => draft.push_thinking(block.clone()),
            "tool_use" => {
                let index = draft.begin_call(text(block, "/id"), text(block, "/name"), &mut told);
                draft.push_arguments(index, &arguments(block.get("input")), &mut told);
            }
            _ => {}
        }
    }
    draft.into_response(&mut told)
}

/// Reads an answer frame by frame.
pub(crate) struct AnthropicFrames {
    draft: Draft,
    /// The blocks that have begun, with the provider's index.
    blocks: Vec<(u64, Block)>,
    pub(crate) ended: bool,
}

enum Block {
    /// A call, by its index in the answer; and whether its arguments came whole at its start.
    Call { index: usize, is_whole: bool },
    /// Thoughts and their signature.
    Thinking { thinking: String, signature: String },
}

impl AnthropicFrames {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, blocks: Vec::new(), ended: false }
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
        let Some(frame) = parse(frame) else {
            return Err(unreadable("a piece of the answer is not JSON", frame));
        };
        let at = count(frame.get("index"));
        match text(&frame, "/type") {
            "message_start" => note(&frame["message"], &mut self.draft),
            "content_block_start" => self.begin(at, &frame["content_block"], ready),
            "content_block_delta" => self.more(at, &frame["delta"], ready),
            "content_block_stop" => self.close(at),
            "message_delta" => {
                note(&frame["delta"], &mut self.draft);
                note_usage(&frame["usage"], &mut self.draft.usage);
            }
            "message_stop" => self.ended = true,
            "error" => return Err(of_body(&frame)),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, at: u64, block: &Value, ready: &mut VecDeque<ChatChunk>) {
        match text(block, "/type") {
            "text" => self.draft.push_text(text(block, "/text"), ready),
            "tool_use" => {
                let index = self.draft.begin_call(text(block, "/id"), text(block, "/name"), ready);
                // The input usually comes in pieces, and is an empty object here.
                let input = block.get("input").filter(|input| **input != json!({}));
                let input = arguments(input);
                self.draft.push_arguments(index, &input, ready);
                self.blocks.push((at, Block::Call { index, is_whole: !input.is_empty() }));
            }
            "thinking" => {
                let thinking = text(block, "/thinking").to_owned();
                let signature = text(block, "/signature").to_owned();
                self.draft.push_reasoning(&thinking);
                self.blocks.push((at, Block::Thinking { thinking, signature }));
            }
            "redacted_thinking" => self.draft.push_thinking(block.clone()),
            _ => {}
        }
    }

    fn more(&mut self, at: u64, delta: &Value, ready: &mut VecDeque<ChatChunk>) {
        let block = self.blocks.iter_mut().rev().find(|(index, _)| *index == at);
        match (text(delta, "/type"), block) {
            ("text_delta", _) => self.draft.push_text(text(delta, "/text"), ready),
            ("input_json_delta", Some((_, Block::Call { index, is_whole: false }))) => {
                self.draft.push_arguments(*index, text(delta, "/partial_json"), ready);
            }
            ("thinking_delta", Some((_, Block::Thinking { thinking, .. }))) => {
                let more = text(delta, "/thinking");
                thinking.push_str(more);
                self.draft.push_reasoning(more);
            }
            ("signature_delta", Some((_, Block::Thinking { signature, .. }))) => {
                signature.push_str(text(delta, "/signature"));
            }
            _ => {}
        }
    }

    fn close(&mut self, at: u64) {
        let Some(place) = self.blocks.iter().rposition(|(index, _)| *index == at) else { return };
        if let (_, Block::Thinking { thinking, signature }) = self.blocks.remove(place) {
            self.draft.push_thinking(
                json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            );
        }
    }

    pub(crate) fn finish(
        self,
        ready: &mut VecDeque<ChatChunk>,
    ) -> Result<ChatResponse, ModelError> {
        if !self.ended && self.draft.stop.is_none() {
            return Err(unreadable("the answer broke off before its end", ""));
        }
        self.draft.into_response(ready)
    }
}

/// Reads the members of an answer other than its blocks.
fn note(answer: &Value, draft: &mut Draft) {
    if let Some(model) = answer.get("model").and_then(Value::as_str).filter(|name| !name.is_empty())
    {
        model.clone_into(&mut draft.model);
    }
    note_usage(&answer["usage"], &mut draft.usage);
    let reason = answer.get("stop_reason").and_then(Value::as_str);
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        draft.stop = Some(match reason {
            "end_turn" | "stop_sequence" => StopReason::End,
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Filtered,
            other => StopReason::Other(other.to_owned()),
        });
    }
}

/// Reads token counts; later ones replace earlier ones. The provider's `input_tokens` exclude those of the cache.
fn note_usage(told: &Value, usage: &mut Usage) {
    let known = |key: &str| told.get(key).and_then(Value::as_u64);
    let before = usage.input.saturating_sub(usage.cached_read.saturating_add(usage.cached_write));
    let beside = known("input_tokens").unwrap_or(before);
    usage.cached_read = known("cache_read_input_tokens").unwrap_or(usage.cached_read);
    usage.cached_write = known("cache_creation_input_tokens").unwrap_or(usage.cached_write);
    usage.input = beside.saturating_add(usage.cached_read).saturating_add(usage.cached_write);
    usage.output = known("output_tokens").unwrap_or(usage.output);
}
