//! Writes request bodies of the Anthropic Messages API, and reads their messages one by one.

mod block;

use super::chat::push_schema;
use crate::object::{Object, push_one_line, push_string};
use crate::{Error, Options};
use block::{Block, Kept, Kind, blocks_of, push_further, push_input, result_block, text_block};
use foldback_core::{Message, Role, ToolCallId, ToolDefinition};
use std::collections::HashSet;

/// Returns a request body, on one line: `system` first, tool calls and results as blocks, and every
/// rule of the API kept whatever the messages are.
///
/// - All instructions go into `system`, in order.
/// - Neighbours of one role are merged; results come first in a user message. The first message is
///   a user's: if it is not, one sentence is put there.
/// - Ids have 1 to 64 characters of `[a-zA-Z0-9_-]` and identify one call each. An id that does not
///   fit, or that identifies an earlier call, is mapped, always to the same one for the same
///   messages.
/// - Arguments are objects; a text that is not an object becomes `{"_raw": text}`, and a missing text becomes `{}`.
/// - Blank texts are left out, and messages in which nothing is left.
/// - `is_error` of a result is kept. A call without a result gets one that says so, and a result
///   without its call becomes user text.
/// - Images in data URLs become base64 sources, other image URLs become URL sources. The
///   `thinking_blocks` of a message are put back in front. Other parts pass through as they are.
///
/// Data that reading an Anthropic body keeps with a message is written again: the places of calls
/// that were not last, and further keys of calls, results and texts. So a body that was read is
/// written as it was, except for differences that the API ignores: a string in place of one text
/// block, neighbours of one role, blank texts.
///
/// The API has no place for a speaker's `name`; it is left out.
#[must_use]
pub fn body<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    tools: &[ToolDefinition],
    options: &Options,
) -> String {
    let mut writer = Writer::default();
    for message in messages {
        writer.push(message);
    }
    let (system, turns) = writer.finish();
    let mut out = String::from("{");
    if let Some(model) = &options.model {
        out.push_str("\"model\":");
        push_string(model, &mut out);
        out.push(',');
    }
    if let Some(max) = options.max_tokens {
        out.push_str(&format!("\"max_tokens\":{max},"));
    }
    if !system.is_empty() {
        out.push_str("\"system\":[");
        out.push_str(&system.join(","));
        out.push_str("],");
    }
    out.push_str("\"messages\":[");
    for (i, turn) in turns.iter().enumerate() {
        out.push_str(if i > 0 { ",{\"role\":\"" } else { "{\"role\":\"" });
        out.push_str(if turn.assistant { "assistant" } else { "user" });
        out.push_str("\",\"content\":[");
        let mut blocks = turn.first.iter().chain(&turn.blocks);
        if let Some(block) = blocks.next() {
            out.push_str(block);
        }
        for block in blocks {
            out.push(',');
            out.push_str(block);
        }
        out.push_str("]}");
    }
    out.push(']');
    if !tools.is_empty() {
        out.push_str(",\"tools\":[");
        for (i, tool) in tools.iter().enumerate() {
            out.push_str(if i > 0 { ",{\"name\":" } else { "{\"name\":" });
            push_string(&tool.name, &mut out);
            out.push_str(",\"description\":");
            push_string(&tool.description, &mut out);
            out.push_str(",\"input_schema\":");
            push_schema(&tool.parameters, &mut out);
            out.push('}');
        }
        out.push(']');
    }
    out.push('}');
    out
}

/// Reads one message of a body. A user message that holds tool results becomes several: one for each
/// result, in order.
///
/// # Errors
/// When it is not JSON, not a message of this API, or too large.
pub fn read_message(json: &str) -> Result<Vec<Message>, Error> {
    super::anthropic_body::read_message(json)
}

/// The first text when the conversation does not begin with a user.
const BEGINNING: &str = "(The conversation begins here.)";
/// The result for a call that has none.
const NO_RESULT: &str = "(No result was recorded for this call.)";
/// The text before a result whose call is missing.
const NO_CALL: &str = "(A tool's result, whose call is not part of this conversation:)";

/// The request as far as it was written.
#[derive(Default)]
struct Writer {
    system: Vec<String>,
    turns: Vec<Turn>,
    /// Calls that wait for their result: their own id and the one that was written.
    open: Vec<(ToolCallId, String)>,
    used: HashSet<String>,
}

/// One message of the request.
struct Turn {
    assistant: bool,
    /// Blocks that come first: thinking in an assistant's turn, results in a user's.
    first: Vec<String>,
    blocks: Vec<String>,
}

impl Writer {
    fn push(&mut self, message: &Message) {
        match message.role() {
            Role::System | Role::Developer => {
                let blocks = blocks_of(message).into_iter();
                self.system.extend(blocks.map(|block| match block.kind {
                    Kind::Text => block.json,
                    // Only texts are accepted there.
                    Kind::Other => text_block(&block.json),
                }));
            }
            Role::Tool => self.push_result(message),
            Role::Assistant => self.push_assistant(message),
            Role::User | Role::Other(_) => {
                let blocks = blocks_of(message);
                self.settle();
                if !blocks.is_empty() {
                    self.turn(false).blocks.extend(blocks.into_iter().map(|block| block.json));
                }
            }
        }
    }

    fn push_assistant(&mut self, message: &Message) {
        self.settle();
        let mut blocks: Vec<_> = Vec::new();
        let kept = Kept::of(message);
        for (key, value) in message.fields() {
            // Signed thinking must be sent back unchanged, or the API refuses the calls after it.
            if key == "thinking_blocks" {
                blocks.extend(Object::array_of(value).into_iter().flatten().map(|block| {
                    let mut json = String::new();
                    push_one_line(block.get(), &mut json);
                    json
                }));
            }
        }
        blocks.extend(blocks_of(message).into_iter().map(|block| block.json));
        for (n, call) in message.tool_calls().iter().enumerate() {
            let id = self.legal(call.id.as_str());
            let mut json = String::from("{\"type\":\"tool_use\",\"id\":");
            push_string(&id, &mut json);
            json.push_str(",\"name\":");
            push_string(&call.name, &mut json);
            json.push_str(",\"input\":");
            push_input(&call.arguments, &mut json);
            push_further(kept.calls.get(n), &mut json);
            json.push('}');
            let at = kept.calls_at.get(n).copied().unwrap_or(blocks.len());
            blocks.insert(at.min(blocks.len()), json);
            self.open.push((call.id.clone(), id));
        }
        if !blocks.is_empty() {
            self.turn(true).blocks.extend(blocks);
        }
    }

    fn push_result(&mut self, message: &Message) {
        let blocks = blocks_of(message);
        let at = message.tool_call_id().and_then(|id| self.open.iter().position(|o| o.0 == *id));
        let Some(at) = at else {
            // The results of the calls that are still open may follow, and then come first.
            let turn = self.turn(false);
            turn.blocks.push(text_block(NO_CALL));
            turn.blocks.extend(blocks.into_iter().map(|block| block.json));
            return;
        };
        let (_, id) = self.open.remove(at);
        let is_error = message
            .fields()
            .iter()
            .any(|(key, value)| key == "is_error" && value.get().trim() == "true");
        let kept = Kept::of(message);
        let mut json = result_block(&id, &blocks, is_error);
        push_further(kept.block.as_ref(), &mut json);
        json.push('}');
        self.turn(false).first.push(json);
    }

    /// Answers the calls that are still open, because the conversation continues without a result.
    fn settle(&mut self) {
        for (_, id) in std::mem::take(&mut self.open) {
            let note = [Block { kind: Kind::Text, json: text_block(NO_RESULT) }];
            self.turn(false).first.push(result_block(&id, &note, true) + "}");
        }
    }

    fn finish(mut self) -> (Vec<String>, Vec<Turn>) {
        self.settle();
        if self.turns.first().is_none_or(|turn| turn.assistant) {
            let blocks = vec![text_block(BEGINNING)];
            self.turns.insert(0, Turn { assistant: false, first: Vec::new(), blocks });
        }
        (self.system, self.turns)
    }

    /// Returns the turn to write to: the last one, if it has that role.
    fn turn(&mut self, assistant: bool) -> &mut Turn {
        let at = match self.turns.last() {
            Some(last) if last.assistant == assistant => self.turns.len() - 1,
            _ => {
                self.turns.push(Turn { assistant, first: Vec::new(), blocks: Vec::new() });
                self.turns.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the turn was found or pushed above")]
        &mut self.turns[at]
    }

    /// Returns an id that the API accepts and that no call has yet: `id` itself, if possible.
    fn legal(&mut self, id: &str) -> String {
        const LONGEST: usize = 64;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut legal: String =
            id.chars().take(LONGEST).map(|c| if allowed(c) { c } else { '_' }).collect();
        if legal.is_empty() {
            legal.push_str("call");
        }
        if !self.used.contains(&legal) {
            self.used.insert(legal.clone());
            return legal;
        }
        // One of the first `used + 1` numbers is free.
        for n in 2..=self.used.len() + 2 {
            let suffix = format!("_{n}");
            let stem = legal.get(..legal.len().min(LONGEST - suffix.len())).unwrap_or("call");
            let candidate = format!("{stem}{suffix}");
            if self.used.insert(candidate.clone()) {
                return candidate;
            }
        }
        legal
    }
}
