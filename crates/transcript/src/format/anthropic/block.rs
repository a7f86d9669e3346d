//! Writes content blocks of the Anthropic Messages API, each as JSON on one line.

use crate::draft::{line_of, push_member};
use crate::object::{Object, push_one_line, push_string};
use crate::record::object_of;
use foldback_core::{Content, Message, Part};
use serde_json::value::RawValue;

/// A content block, as JSON on one line.
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) json: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Other,
}

/// The data that reading an Anthropic body kept under `source` of a message.
#[derive(Default)]
pub(super) struct Kept {
    /// The places of the calls among all blocks.
    pub(super) calls_at: Vec<usize>,
    /// Further members of each call.
    pub(super) calls: Vec<String>,
    /// Further members of a result.
    pub(super) block: Option<String>,
}

impl Kept {
    pub(super) fn of(message: &Message) -> Self {
        let fields = message.fields();
        let source = fields.iter().find(|(key, _)| key == "source");
        let Some(source) = source.and_then(|(_, source)| Object::of(source)) else {
            return Self::default();
        };
        let values = |key| source.array(key).unwrap_or_default().into_iter().map(RawValue::get);
        Self {
            calls_at: values("calls_at").filter_map(|at| at.parse().ok()).collect(),
            calls: values("calls").map(str::to_owned).collect(),
            block: source.get("block").map(|block| block.get().to_owned()),
        }
    }
}

/// Members of calls and results that are written from the message itself. If the source had one of
/// them twice, the earlier one is among the further members.
const WRITTEN: [&str; 6] = ["type", "id", "name", "input", "tool_use_id", "content"];

/// Writes further members after those of a block.
pub(super) fn push_further(members: Option<&String>, out: &mut String) {
    for (key, value) in members.and_then(|json| object_of(json)).into_iter().flat_map(|o| o.0) {
        if !WRITTEN.contains(&key.as_ref()) {
            push_member(&key, value.get(), out);
        }
    }
}

/// Returns the blocks of a message's content; blank texts are left out.
pub(super) fn blocks_of(message: &Message) -> Vec<Block> {
    let text = |text: &str| {
        let json = text_block(text);
        (!text.trim().is_empty()).then_some(Block { kind: Kind::Text, json })
    };
    match message.content() {
        Content::Empty => Vec::new(),
        Content::Text(one) => text(one).into_iter().collect(),
        Content::Parts(parts) => {
            let fields = message.fields();
            // The parts as they are written, because a text may have further keys.
            let written = fields.iter().rev().find(|(key, _)| key == "content");
            let written =
                written.and_then(|(_, value)| Object::array_of(value)).unwrap_or_default();
            let mut written = written.into_iter();
            parts
                .iter()
                .filter_map(|part| {
                    let written = written.next();
                    match part {
                        Part::Text(one) => text(one).map(|block| with_marks(block, written)),
                        Part::Other(json) => other_block(json),
                    }
                })
                .collect()
        }
    }
}

/// Returns a text with those of its further keys that the API knows.
fn with_marks(mut block: Block, written: Option<&RawValue>) -> Block {
    let Some(written) = written.and_then(Object::of) else { return block };
    for key in ["cache_control", "citations"] {
        if let Some(value) = written.get(key) {
            block.json.truncate(block.json.len() - 1);
            push_member(key, &line_of(value.get()), &mut block.json);
            block.json.push('}');
        }
    }
    block
}

pub(super) fn text_block(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 24);
    json.push_str("{\"type\":\"text\",\"text\":");
    push_string(text, &mut json);
    json.push('}');
    json
}

/// Returns a part of another kind: translated if both APIs know it, otherwise as it is.
fn other_block(json: &str) -> Option<Block> {
    let passed = || {
        let mut line = String::with_capacity(json.len());
        push_one_line(json, &mut line);
        line
    };
    let Ok(part) = serde_json::from_str::<Object<'_>>(json) else {
        return Some(Block { kind: Kind::Other, json: passed() });
    };
    match part.text("type").as_deref() {
        // A text with further keys, such as a cache mark.
        Some("text") => {
            let blank = part.text("text").is_some_and(|text| text.trim().is_empty());
            (!blank).then(|| Block { kind: Kind::Text, json: passed() })
        }
        Some("refusal") => {
            let refusal = part.text("refusal").unwrap_or_default();
            (!refusal.trim().is_empty())
                .then(|| Block { kind: Kind::Text, json: text_block(&refusal) })
        }
        Some("image_url") => {
            let url = part
                .object("image_url")
                .and_then(|image| image.text("url"))
                .or_else(|| part.text("image_url"));
            let json = url.map_or_else(passed, |url| image_block(&url));
            Some(Block { kind: Kind::Other, json })
        }
        _ => Some(Block { kind: Kind::Other, json: passed() }),
    }
}

fn image_block(url: &str) -> String {
    let mut json = String::with_capacity(url.len() + 80);
    json.push_str("{\"type\":\"image\",\"source\":{\"type\":");
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    if let Some((media_type, data)) = data {
        json.push_str("\"base64\",\"media_type\":");
        // Parameters, as in `image/png;charset=x`, are not part of the type.
        push_string(media_type.split(';').next().unwrap_or(media_type), &mut json);
        json.push_str(",\"data\":");
        push_string(data, &mut json);
    } else {
        json.push_str("\"url\",\"url\":");
        push_string(url, &mut json);
    }
    json.push_str("}}");
    json
}

/// Returns a result, without its closing brace.
pub(super) fn result_block(id: &str, blocks: &[Block], is_error: bool) -> String {
    let mut json = String::from("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_string(id, &mut json);
    if !blocks.is_empty() {
        json.push_str(",\"content\":[");
        for (i, block) in blocks.iter().enumerate() {
            if i > 0 {
                json.push(',');
            }
            json.push_str(&block.json);
        }
        json.push(']');
    }
    if is_error {
        json.push_str(",\"is_error\":true");
    }
    json
}

/// Writes the arguments of a call as an object.
pub(super) fn push_input(arguments: &str, out: &mut String) {
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        out.push_str("{}");
    } else if serde_json::from_str::<Object<'_>>(trimmed).is_ok() {
        push_one_line(trimmed, out);
    } else {
        out.push_str("{\"_raw\":");
        push_string(arguments, out);
        out.push('}');
    }
}
