//! A request in the format of Anthropic's Messages API.

use crate::check::{refused, unknown_role};
use crate::draft::wire_id;
use crate::json::{parse, parse_object};
use crate::late_instruction::{begins_with_tag, tagged};
use crate::longest_answer::longest_answer;
use crate::openai_request::{RAW_ARGUMENTS, description, ends_with_beginning, parameters};
use crate::{ModelConfig, tool_choice};
use foldback_core::{CallOutcome, Content, Message, Part, Role};
use foldback_llm::{ChatRequest, ModelError, Sampling, ToolNames};
use foldback_tool::canonical_tools;
use serde_json::{Map, Value, json};

/// The greatest number of marks in a request.
const MARKS: usize = 4;

/// What the user says if a conversation would otherwise begin with the model.
pub(crate) const OPENING: &str = "(What was said before is not shown.)";

/// Builds the whole body: model, messages, sampling, system prompt, tools and the choice among them.
///
/// Leading instructions are the system prompt; each later one stays at its place, in the user's turn,
/// so that the prefix before it does not change. Turns of one role are merged, with the results of
/// calls first, because the provider expects them there.
pub(crate) fn body(
    request: &ChatRequest,
    config: &ModelConfig,
    names: &ToolNames,
    streamed: bool,
) -> Result<Map<String, Value>, ModelError> {
    if ends_with_beginning(request) && !config.prefill {
        return Err(refused(
            "the last message is the model's own, and the model does not continue the beginning \
             of an answer (prefill is off): the last message must be the user's or a tool's",
        ));
    }
    let mut said = Said::by(request, names)?;
    if config.prefill && ends_with_beginning(request) {
        trim_end(&mut said.turns);
    }
    let mut tools = canonical_tools(&request.tools)
        .iter()
        .map(|tool| {
            Ok(json!({
                "name": names.wire(&tool.name),
                "description": description(tool, names),
                "input_schema": parameters(tool)?,
            }))
        })
        .collect::<Result<Vec<Value>, ModelError>>()?;
    if config.cache_marks {
        said.mark(request, &mut tools, config.long_cache);
    }
    let Said { system, turns, .. } = said;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.name));
    body.insert("stream".to_owned(), json!(streamed));
    let turns = turns.into_iter().map(Turn::into_value).collect();
    body.insert("messages".to_owned(), Value::Array(turns));
    draw(request, config, &mut body);
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(choice) = tool_choice::anthropic(request, names)? {
        body.insert("tool_choice".to_owned(), choice);
    }
    Ok(body)
}

/// Writes the sampling settings and the length limit, which the provider requires.
fn draw(request: &ChatRequest, config: &ModelConfig, body: &mut Map<String, Value>) {
    let Sampling { temperature, max_tokens, stop, .. } = &request.sampling;
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if !stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(stop));
    }
    let max_tokens = max_tokens.or(config.max_tokens);
    let max_tokens = max_tokens.unwrap_or_else(|| longest_answer(&config.name));
    body.insert("max_tokens".to_owned(), json!(max_tokens));
}

/// The messages in the provider's order: instructions, then turns.
struct Said {
    system: Vec<Value>,
    turns: Vec<Turn>,
    /// For each message, the place of its last block.
    ends: Vec<Option<Place>>,
}

impl Said {
    fn by(request: &ChatRequest, names: &ToolNames) -> Result<Self, ModelError> {
        let instructions =
            request.messages.iter().take_while(|message| message.role().is_instruction()).count();
        let mut system = Vec::new();
        let mut turns: Vec<Turn> = Vec::new();
        let mut ends = Vec::with_capacity(request.messages.len());
        for (at, message) in request.messages.iter().enumerate() {
            if at < instructions {
                system.extend(texts(message).map(|text| json!({"type": "text", "text": text})));
                ends.push(system.len().checked_sub(1).map(Place::System));
                continue;
            }
            let role = if *message.role() == Role::Assistant { "assistant" } else { "user" };
            let blocks = blocks(message, names)?;
            if turns.is_empty() && role == "assistant" {
                turns.push(Turn {
                    role: "user",
                    blocks: vec![json!({"type": "text", "text": OPENING})],
                });
            }
            if !blocks.is_empty() {
                match turns.last_mut() {
                    Some(turn) if turn.role == role => turn.blocks.extend(blocks),
                    _ => turns.push(Turn { role, blocks }),
                }
            }
            ends.push(last_place(&turns));
        }
        if turns.is_empty() {
            return Err(refused("there is no message to answer: all are empty or instructions"));
        }
        Ok(Self { system, turns, ends })
    }

    /// Marks where cached prefixes end.
    fn mark(&mut self, request: &ChatRequest, tools: &mut [Value], long_cache: bool) {
        let mark = if long_cache {
            json!({"type": "ephemeral", "ttl": "1h"})
        } else {
            json!({"type": "ephemeral"})
        };
        for place in marks(request, &self.ends, self.system.len(), tools.len()) {
            let block = match place {
                Place::Tools(at) => tools.get_mut(at),
                Place::System(at) => self.system.get_mut(at),
                Place::Turn(turn, at) => {
                    self.turns.get_mut(turn).and_then(|turn| turn.blocks.get_mut(at))
                }
            };
            if let Some(block) = block {
                block["cache_control"] = mark.clone();
            }
        }
    }
}

/// Everything that one side says before the other does.
struct Turn {
    role: &'static str,
    blocks: Vec<Value>,
}

impl Turn {
    fn into_value(self) -> Value {
        let is_result = |block: &Value| block["type"] == "tool_result";
        let (mut blocks, others): (Vec<Value>, Vec<Value>) =
            self.blocks.into_iter().partition(is_result);
        blocks.extend(others);
        json!({"role": self.role, "content": blocks})
    }
}

/// A place for a mark, in the order in which the provider reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tools(usize),
    System(usize),
    Turn(usize, usize),
}

/// Returns the places of the marks: the end of what precedes the messages, and the latest of those
/// that the request asks for.
fn marks(request: &ChatRequest, ends: &[Option<Place>], system: usize, tools: usize) -> Vec<Place> {
    if request.cache_marks.is_empty() {
        return Vec::new();
    }
    let head = match (system, tools) {
        (0, 0) => None,
        (0, tools) => Some(Place::Tools(tools - 1)),
        (system, _) => Some(Place::System(system - 1)),
    };
    let asked = request.cache_marks.iter().filter_map(|at| ends.get(*at).copied().flatten());
    let mut places: Vec<Place> = asked.filter(|place| Some(*place) != head).collect();
    places.sort_unstable();
    places.dedup();
    let room = MARKS - usize::from(head.is_some());
    places.drain(..places.len().saturating_sub(room));
    places.extend(head);
    places
}

/// Returns the last block that can carry a mark: thinking blocks cannot.
fn last_place(turns: &[Turn]) -> Option<Place> {
    let is_thought =
        |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
    turns.iter().enumerate().rev().find_map(|(turn, said)| {
        Some(Place::Turn(turn, said.blocks.iter().rposition(|block| !is_thought(block))?))
    })
}

/// Returns the blocks of a message.
fn blocks(message: &Message, names: &ToolNames) -> Result<Vec<Value>, ModelError> {
    match message.role() {
        Role::User => content(message.content(), escape_system),
        // In the middle of a conversation, an instruction has no place of its own here. It comes
        // from the caller, and may well be less than an instruction.
        Role::System | Role::Developer => Ok(texts(message)
            .map(|text| json!({"type": "text", "text": tagged(&escape_system(text))}))
            .collect()),
        Role::Assistant => Ok(assistant(message, names)),
        Role::Tool => {
            let id = message.tool_call_id().ok_or_else(|| {
                refused("a tool's result must name the call that it answers (tool_call_id)")
            })?;
            let mut result = json!({"type": "tool_result", "tool_use_id": wire_id(id.as_str())});
            let content = content(message.content(), str::to_owned)?;
            if !content.is_empty() {
                result["content"] = Value::Array(content);
            }
            if matches!(message.outcome(), Some(CallOutcome::Failed | CallOutcome::NotMade)) {
                result["is_error"] = Value::Bool(true);
            }
            Ok(vec![result])
        }
        // Unreachable: the request was checked.
        Role::Other(role) => Err(unknown_role(role)),
    }
}

fn assistant(message: &Message, names: &ToolNames) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some((_, thinking)) =
        message.fields().into_iter().find(|(key, _)| key == "thinking_blocks")
        && let Some(Value::Array(thinking)) = parse(thinking.get())
    {
        blocks.extend(thinking);
    }
    blocks.extend(texts(message).map(|text| json!({"type": "text", "text": text})));
    for call in message.tool_calls() {
        let input = parse_object(&call.arguments)
            .unwrap_or_else(|| Map::from_iter([(RAW_ARGUMENTS.to_owned(), json!(call.arguments))]));
        blocks.push(json!({
            "type": "tool_use",
            "id": wire_id(call.id.as_str()),
            "name": names.wire(&call.name),
            "input": input,
        }));
    }
    blocks
}

/// Returns the texts that are not blank: the provider refuses blank ones.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content().texts().filter(|text| !text.trim().is_empty())
}

/// Returns the blocks of a content, its texts written by `write`.
fn content(content: &Content, write: fn(&str) -> String) -> Result<Vec<Value>, ModelError> {
    let text = |text: &str| {
        (!text.trim().is_empty()).then(|| Ok(json!({"type": "text", "text": write(text)})))
    };
    match content {
        Content::Empty => Ok(Vec::new()),
        Content::Text(words) => text(words).into_iter().collect(),
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(words) => text(words),
                Part::Other(raw) => Some(other_part(raw)),
            })
            .collect(),
    }
}

/// Escapes the tags `<system>` and `</system>` in a text, so that a user's text never looks like a
/// late instruction, and an instruction does not end early.
fn escape_system(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices('<').filter(|(at, _)| begins_with_tag(&text[*at..])) {
        out.push_str(&text[from..at]);
        out.push_str("&lt;");
        from = at + 1;
    }
    out + &text[from..]
}

/// Converts a part that is not text; an image or a file in chat-completions form is rewritten.
fn other_part(raw: &str) -> Result<Value, ModelError> {
    let unknown = |kind: &str| {
        refused(format!(
            "the provider accepts text, images and documents, but a message has a part of the type \
             {kind:?}"
        ))
    };
    let Some(mut part) = parse_object(raw) else { return Err(unknown(raw)) };
    part.shift_remove("cache_control");
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let part = Value::Object(part);
    let (kind, url) = match kind.as_str() {
        "image" | "document" | "search_result" => return Ok(part),
        "image_url" => {
            let url = part.pointer("/image_url/url").or_else(|| part.get("image_url"));
            ("image", url)
        }
        "file" => ("document", part.pointer("/file/file_data")),
        other => return Err(unknown(other)),
    };
    let Some(url) = url.and_then(Value::as_str) else { return Err(unknown(kind)) };
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source = match data {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None => json!({"type": "url", "url": url}),
    };
    Ok(json!({"type": kind, "source": source}))
}

/// Removes white space from the end of the last text: the provider refuses it in a prefilled answer.
fn trim_end(turns: &mut [Turn]) {
    let answer = turns.last_mut().filter(|turn| turn.role == "assistant");
    let last = answer.and_then(|turn| turn.blocks.last_mut());
    if let Some(Value::String(text)) = last.and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}
