//! Reads items: what the model saw, and what it said.

use super::content::Parts;
use super::entry::Entry;
use super::thread::{Thread, rest_of};
use crate::draft::{push_member, quoted};
use crate::object::Object;
use serde_json::value::RawValue;

/// The beginnings of texts that the client writes in the user's name.
const INJECTED: [&str; 12] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<codex_internal_context",
    "<user_shell_command>",
    "<collaboration_mode>",
    "<personality_spec>",
    "<INSTRUCTIONS>",
];

/// Takes an item; `entry` is the record that it is in. Returns `false` if it is not a message.
pub(super) fn read<'r>(thread: &mut Thread<'_, 'r>, entry: &Entry<'r>, item: &Object<'r>) -> bool {
    let kind = item.text("type");
    // An item without a type is a message.
    match kind.as_deref().unwrap_or("message") {
        "message" => return message(thread, entry, item),
        "reasoning" => {
            let mut json = String::from("{\"type\":\"reasoning\"");
            for (key, value) in item.0.iter().filter(|(key, _)| key != "type" && key != "timestamp")
            {
                push_member(key, value.get(), &mut json);
            }
            json.push('}');
            let kept = rest_of(entry, item, &["summary", "content", "encrypted_content", "id"]);
            let unit = thread.unit(entry);
            unit.reason(&json);
            unit.keep_item(entry, kept);
        }
        "function_call" => call(thread, entry, item, item.text("name").as_deref(), "arguments"),
        "custom_tool_call" => call(thread, entry, item, item.text("name").as_deref(), "input"),
        "local_shell_call" => call(thread, entry, item, Some("local_shell"), "action"),
        "tool_search_call" => call(thread, entry, item, Some("tool_search"), "arguments"),
        "web_search_call" => {
            let id = call_with_id(thread, entry, item, Some("web_search"), "action");
            let mut parts = Parts::default();
            parts.push_json(BUILTIN.to_owned());
            thread.answer_builtin(id, entry, parts);
        }
        "image_generation_call" => {
            let id = call_with_id(thread, entry, item, Some("image_generation"), "revised_prompt");
            let mut parts = Parts::default();
            if let Some(image) = item.text("result") {
                let mut inner = String::new();
                push_member("url", &quoted(&format!("data:image/png;base64,{image}")), &mut inner);
                let inner = inner.strip_prefix(',').unwrap_or_default();
                parts.push_json(format!("{{\"type\":\"image_url\",\"image_url\":{{{inner}}}}}"));
            }
            thread.answer_builtin(id, entry, parts);
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let kept = rest_of(entry, item, &answer_keys(item, "output"));
            thread.answer(call_id(item), entry, item.get("output"), Some(kept));
        }
        "tool_search_output" => {
            let kept = rest_of(entry, item, &answer_keys(item, "tools"));
            let tools = item.get("tools").map(|tools| quoted(tools.get()));
            let tools = tools.and_then(|tools| RawValue::from_string(tools).ok());
            thread.answer(call_id(item), entry, tools.as_deref(), Some(kept));
        }
        "agent_message" => {
            let mut parts = Parts::default();
            if let Some(content) = item.get("content") {
                parts.push_all(content);
            }
            let kept = rest_of(entry, item, &["content"]);
            thread.say("user", entry, parts, true, Some(kept));
        }
        _ => return false,
    }
    true
}

/// The text in place of a result that only the model saw.
const BUILTIN: &str = "{\"type\":\"text\",\"text\":\"(This tool ran inside the model's service, and \
    the log does not hold what it gave back.)\"}";

fn message<'r>(thread: &mut Thread<'_, 'r>, entry: &Entry<'r>, item: &Object<'r>) -> bool {
    let (Some(role), Some(content)) = (item.text("role"), item.get("content")) else {
        return false;
    };
    let kept = rest_of(entry, item, &["role", "content"]);
    if role == "assistant" {
        let unit = thread.unit(entry);
        unit.say(content);
        unit.keep_item(entry, kept);
        return true;
    }
    let injected = role != "user" || is_injected(item, content);
    let mut parts = Parts::default();
    parts.push_all(content);
    thread.say(&role, entry, parts, injected, Some(kept));
    true
}

/// Returns whether nothing of a user's message was typed: newer logs say so for each part, in older
/// ones the texts show it.
fn is_injected(item: &Object<'_>, content: &RawValue) -> bool {
    let passed = item.object("internal_chat_message_metadata_passthrough");
    let kinds = passed.and_then(|passed| passed.array("content_item_kinds")).unwrap_or_default();
    let mut kinds = kinds.into_iter().filter_map(Object::text_of).peekable();
    if kinds.peek().is_some() {
        return !kinds.any(|kind| kind.starts_with("user."));
    }
    is_injected_content(content)
}

/// Returns whether a content consists only of texts of the client.
pub(super) fn is_injected_content(content: &RawValue) -> bool {
    let is_known = |text: &str| {
        let text = text.trim_start();
        INJECTED.iter().any(|begin| text.starts_with(begin))
    };
    match Object::text_of(content) {
        Some(text) => is_known(&text),
        None => {
            let parts = Object::array_of(content).unwrap_or_default();
            let texts: Vec<_> = parts.iter().map(|part| Object::of(part)?.text("text")).collect();
            !texts.is_empty() && texts.iter().all(|text| text.as_deref().is_some_and(is_known))
        }
    }
}

fn call<'r>(
    thread: &mut Thread<'_, 'r>,
    entry: &Entry<'r>,
    item: &Object<'r>,
    name: Option<&str>,
    arguments: &str,
) {
    let is_nameless = call_id(item).is_none();
    let id = call_with_id(thread, entry, item, name, arguments);
    if is_nameless {
        thread.remember_nameless(id);
    }
}

/// Adds a call to the response, and returns its id, which is made up if the log has none.
fn call_with_id<'r>(
    thread: &mut Thread<'_, 'r>,
    entry: &Entry<'r>,
    item: &Object<'r>,
    name: Option<&str>,
    arguments: &str,
) -> String {
    let id = call_id(item)
        .or_else(|| item.text("id").map(|id| id.into_owned()).filter(|id| !id.is_empty()))
        .unwrap_or_else(|| format!("line-{}", entry.line));
    let mut taken = vec![arguments];
    let is_image = item.text("type").as_deref() == Some("image_generation_call");
    taken.extend(call_id(item).is_some().then_some("call_id"));
    taken.extend((name.is_some() && item.text("name").as_deref() == name).then_some("name"));
    taken.extend((is_image && item.text("result").is_some()).then_some("result"));
    let kept = rest_of(entry, item, &taken);
    let unit = thread.unit(entry);
    let value = item.get(arguments).map_or("{}", RawValue::get);
    unit.call(&id, name.unwrap_or("unknown"), value);
    unit.keep_item(entry, kept);
    id
}

/// Returns the keys that are taken from the output of a call.
fn answer_keys(item: &Object<'_>, output: &'static str) -> Vec<&'static str> {
    let call = call_id(item).map(|_| "call_id");
    call.into_iter().chain([output]).collect()
}

fn call_id(item: &Object<'_>) -> Option<String> {
    item.text("call_id").map(|id| id.into_owned()).filter(|id| !id.is_empty())
}
