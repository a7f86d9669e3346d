//! Reads one LangChain message.

use super::chunk::merge;
use crate::draft::{Draft, list_of, quoted};
use crate::format::anthropic_blocks::{begin, members_but};
use crate::object::Object;
use crate::record::object_of;
use serde_json::value::RawValue;

/// The id by which a `remove` removes all messages before it.
pub(super) const ALL: &str = "__remove_all__";

/// A message, or a part of one.
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) id: Option<String>,
    pub(super) line: u64,
    /// Its exact text.
    pub(super) json: String,
    /// The fields that say what it is, as JSON.
    pub(super) data: String,
    /// What is around those, as JSON.
    around: String,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Human,
    Ai,
    /// A part of a model's message.
    Chunk,
    System,
    Tool,
    Function,
    /// A message that names its role itself.
    Chat,
    /// A statement that another message is removed.
    Remove,
}

impl Kind {
    /// Returns the kind of a `type`, or of a class.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "human" | "HumanMessage" | "HumanMessageChunk" => Self::Human,
            "ai" | "AIMessage" => Self::Ai,
            "AIMessageChunk" => Self::Chunk,
            "system" | "SystemMessage" | "SystemMessageChunk" => Self::System,
            "tool" | "ToolMessage" | "ToolMessageChunk" => Self::Tool,
            "function" | "FunctionMessage" | "FunctionMessageChunk" => Self::Function,
            "chat" | "ChatMessage" | "ChatMessageChunk" => Self::Chat,
            "remove" | "RemoveMessage" => Self::Remove,
            _ => return None,
        })
    }
}

impl Entry {
    /// Reads a message in any of its three shapes.
    pub(super) fn of(json: &str, line: u64) -> Option<Self> {
        let object = object_of(json)?;
        let (name, data) = unpacked(&object)?;
        let (kind, data) = (Kind::of(&name)?, data.map_or(json, RawValue::get));
        let id = object_of(data)?.text("id").map(|id| id.into_owned());
        let around = match name.as_ref() {
            _ if data.len() == json.len() => "{}".to_owned(),
            "human" | "ai" | "system" | "tool" | "function" | "chat" => {
                members_but(&object, &["type", "data"])
            }
            _ => members_but(&object, &["data", "kwargs"]),
        };
        Some(Self { kind, id, line, json: json.to_owned(), data: data.to_owned(), around })
    }
}

/// Returns whether an object is certainly a LangChain message.
pub(super) fn fits(object: &Object<'_>) -> bool {
    let known = unpacked(object).and_then(|(name, _)| Kind::of(&name));
    let is_flat = !object.has("lc") && !object.has("data");
    let flat_fits = || object.has("additional_kwargs") || object.has("response_metadata");
    known.is_some_and(|kind| kind == Kind::Remove || !is_flat || flat_fits()) && !object.has("role")
}

/// Returns the name of the type or class, and the fields; `None` if they are the object's own.
fn unpacked<'a>(object: &Object<'a>) -> Option<(String, Option<&'a RawValue>)> {
    let kind = object.text("type")?;
    if object.has("lc") && kind == "constructor" {
        let class = object.array("id")?.pop().and_then(Object::text_of)?.into_owned();
        return Some((class, Some(object.get("kwargs")?)));
    }
    if let Some(data) = object.get("data").filter(|data| data.get().starts_with('{')) {
        let has_content = Object::of(data)?.has("content");
        return has_content.then(|| (kind.into_owned(), Some(data)));
    }
    (object.has("content") && !object.has("data")).then(|| (kind.into_owned(), None))
}

/// Returns the message that an entry, or the chunks of one message, make.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub(super) fn draft_of(group: &[Entry]) -> Result<Draft, String> {
    let merged;
    let first = group.first().ok_or("there is none")?;
    let data = match group {
        [only] if only.kind != Kind::Chunk => only.data.as_str(),
        chunks => {
            merged = merge(chunks.iter().map(|chunk| chunk.data.as_str()));
            merged.as_str()
        }
    };
    let data = object_of(data).ok_or("its fields are not an object")?;
    let role = role_of(first.kind, &data)?;
    let mut draft = Draft::new(&role, first.line);
    let mut mapped = vec!["type", "content", "id"];
    for key in ["id", "name"] {
        if let Some(value) = data.get(key).filter(|value| value.get().starts_with('"')) {
            draft.field(key, value.get());
            mapped.push(key);
        }
    }
    let calls = if role == "assistant" { calls_of(&data)? } else { Vec::new() };
    push_content(&mut draft, &data, &calls)?;
    for call in &calls {
        draft.call(&call.id, &call.name, &call.arguments);
    }
    if role == "assistant" {
        mapped.push("tool_call_chunks");
        mapped.extend(has_usual_calls(&data).then_some("tool_calls"));
        let reasoning = data.object("additional_kwargs");
        let reasoning = reasoning.and_then(|further| further.get("reasoning_content"));
        if let Some(text) = reasoning.filter(|text| text.get().starts_with('"')) {
            draft.field("reasoning_content", text.get());
        }
    }
    if role == "tool" {
        let id = data.text("tool_call_id").ok_or_else(|| {
            let found = data.get("tool_call_id").map_or_else(|| "nothing".to_owned(), begin);
            format!("\"tool_call_id\" holds {found}; expected a string")
        })?;
        draft.answers(&id);
        mapped.push("tool_call_id");
        if data.text("status").as_deref() == Some("error") {
            draft.field("is_error", "true");
        }
    }
    draft.keep("keys", &members_but(&data, &mapped));
    if first.around != "{}" {
        draft.keep("around", &first.around);
    }
    if group.len() > 1 || data.has("tool_call_chunks") {
        let chunks: Vec<_> = group.iter().map(|chunk| chunk.json.clone()).collect();
        draft.keep("chunks", &list_of(&chunks));
    }
    Ok(draft)
}

fn role_of(kind: Kind, data: &Object<'_>) -> Result<String, String> {
    Ok(match kind {
        Kind::Human => "user".to_owned(),
        Kind::Ai | Kind::Chunk => "assistant".to_owned(),
        Kind::System => {
            let further = data.object("additional_kwargs");
            let role = further.and_then(|further| further.text("__openai_role__"));
            role.map_or_else(|| "system".to_owned(), |role| role.into_owned())
        }
        Kind::Tool => "tool".to_owned(),
        Kind::Function => "function".to_owned(),
        Kind::Chat => {
            let role = data.text("role").map(|role| role.into_owned());
            role.ok_or("it is of type \"chat\" and names no \"role\"; expected a string")?
        }
        Kind::Remove => return Err("it removes another message and has no content".to_owned()),
    })
}

/// A call, with its arguments as JSON: an object, or a string.
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// Returns the calls of a model's message. They may be written up to three times; one of these counts.
fn calls_of(data: &Object<'_>) -> Result<Vec<Call>, String> {
    let list = |object: Option<&Object<'_>>, key: &str| -> Result<Vec<String>, String> {
        let Some(value) = object.and_then(|object| object.get(key)) else { return Ok(Vec::new()) };
        if value.get() == "null" {
            return Ok(Vec::new());
        }
        let items = Object::array_of(value)
            .ok_or_else(|| format!("{key:?} holds {}; expected a list", begin(value)))?;
        Ok(items.into_iter().map(|item| item.get().to_owned()).collect())
    };
    let mut found = list(Some(data), "tool_calls")?;
    found.extend(list(Some(data), "invalid_tool_calls")?);
    if found.is_empty() {
        found = list(data.object("additional_kwargs").as_ref(), "tool_calls")?;
    }
    if found.is_empty() {
        let blocks = data.array("content").unwrap_or_default();
        let calls =
            blocks.into_iter().filter(|block| Object::of(block).is_some_and(|b| is_call(&b)));
        found = calls.map(|block| block.get().to_owned()).collect();
    }
    let calls = found.iter().enumerate().map(|(n, json)| {
        let wrong = || {
            let begin: String = json.chars().take(60).collect();
            format!("a call is {begin}; expected an object with a \"name\" and \"args\"")
        };
        let call = object_of(json).ok_or_else(wrong)?;
        let body = call.object("function");
        let body = body.as_ref().unwrap_or(&call);
        let name = body.text("name").or_else(|| {
            // A call that the model wrote badly may have no name at all.
            body.has("error").then_some(std::borrow::Cow::Borrowed(""))
        });
        let arguments = ["args", "arguments", "input"].into_iter().find_map(|key| body.get(key));
        let arguments = match arguments.map(RawValue::get) {
            None => "{}",
            Some("null") => "\"\"",
            Some(json) => json,
        };
        Ok(Call {
            // A call may have no id, and then nothing answers it.
            id: call.text("id").map_or_else(|| format!("call_{n}"), |id| id.into_owned()),
            name: name.ok_or_else(wrong)?.into_owned(),
            arguments: arguments.to_owned(),
        })
    });
    calls.collect()
}

/// Returns whether a message's calls say nothing in addition to what is taken from them.
fn has_usual_calls(data: &Object<'_>) -> bool {
    data.array("tool_calls").unwrap_or_default().into_iter().filter_map(Object::of).all(|call| {
        call.0.iter().all(|(key, value)| match key.as_ref() {
            "name" | "type" => value.get().starts_with('"'),
            "id" => value.get().starts_with(['"', 'n']),
            key => key == "args",
        })
    })
}

/// Returns whether a block of a content is a call.
fn is_call(block: &Object<'_>) -> bool {
    matches!(block.text("type").as_deref(), Some("tool_use" | "tool_call"))
}

fn push_content(draft: &mut Draft, data: &Object<'_>, calls: &[Call]) -> Result<(), String> {
    let Some(content) = data.get("content") else { return Ok(()) };
    if content.get().starts_with(['"', 'n']) {
        // A model's message that only calls has an empty text here.
        if content.get() != "\"\"" || calls.is_empty() {
            draft.content(content.get());
        }
        return Ok(());
    }
    let items = Object::array_of(content).ok_or_else(|| {
        let found = begin(content);
        format!("\"content\" holds {found}; expected a string or a list of blocks")
    })?;
    let (mut thinking, mut repeated, mut images) = (Vec::new(), Vec::new(), Vec::new());
    let mut parts = 0;
    for item in items {
        if item.get().starts_with('"') {
            draft.part(&format!("{{\"type\":\"text\",\"text\":{}}}", item.get()));
            parts += 1;
            continue;
        }
        let block = Object::of(item).ok_or_else(|| {
            format!("a block of the content is {}; expected an object", begin(item))
        })?;
        match block.text("type").as_deref() {
            Some("tool_use" | "tool_call" | "input_json_delta") if !calls.is_empty() => {
                repeated.push(item.get().to_owned());
            }
            Some("thinking" | "redacted_thinking") if parts == 0 => {
                thinking.push(item.get().to_owned());
            }
            Some("image") if image_url(&block).is_some() => {
                let url = image_url(&block).unwrap_or_default();
                let url = quoted(&url);
                draft.part(&format!("{{\"type\":\"image_url\",\"image_url\":{{\"url\":{url}}}}}"));
                images.push(members_but(&block, &["url", "base64", "data"]));
                parts += 1;
            }
            _ => {
                draft.part(item.get());
                parts += 1;
            }
        }
    }
    if !thinking.is_empty() {
        draft.field("thinking_blocks", &list_of(&thinking));
    }
    for (key, values) in [("repeated", repeated), ("images", images)] {
        if !values.is_empty() {
            draft.keep(key, &list_of(&values));
        }
    }
    Ok(())
}

/// Returns the URL of an image in LangChain's form, with all data in it.
fn image_url(block: &Object<'_>) -> Option<String> {
    if let Some(url) = block.text("url") {
        return Some(url.into_owned());
    }
    let data = block.text("base64").or_else(|| {
        (block.text("source_type").as_deref() == Some("base64")).then(|| block.text("data"))?
    })?;
    let kind = block.text("mime_type")?;
    Some(format!("data:{kind};base64,{data}"))
}
