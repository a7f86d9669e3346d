//! A client's message with less in it.

use crate::{Api, exact};
use foldback_core::{Content, Message, Part, Role};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// How a client's message is changed before it is sent.
#[derive(Default)]
pub(crate) struct Rewriting {
    /// The replacements of recorded messages that it holds.
    pub(crate) instead: Vec<Arc<Message>>,
    /// If it holds several recorded messages and some of them left: the calls whose results stay, and whether its
    /// own text does.
    pub(crate) stays: Option<(HashSet<String>, bool)>,
    /// Whether the model's thinking is dropped: it followed other text.
    pub(crate) drops_thinking: bool,
}

impl Rewriting {
    /// Returns the changes of the content, as texts: the same for the same changes.
    pub(crate) fn steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        for message in &self.instead {
            steps.push(message.text().into_owned());
            steps.extend(message.tool_calls().iter().map(|call| call.arguments.clone()));
        }
        if let Some((results, has_words)) = &self.stays {
            let mut results: Vec<&str> = results.iter().map(String::as_str).collect();
            results.sort_unstable();
            steps.push(format!("{} {has_words}", results.join(" ")));
        }
        steps
    }

    /// Returns whether thinking in this message is dropped.
    pub(crate) fn drops_thoughts_of(&self, json: &str) -> bool {
        self.drops_thinking && json.contains("thinking\"")
    }

    /// Returns whether anything in it changes.
    fn changes(&self, json: &str) -> bool {
        !self.instead.is_empty() || self.stays.is_some() || self.drops_thoughts_of(json)
    }

    /// Returns the message as it is sent; `None` if nothing is left of it. A message that does not have the
    /// shape of its API stays unchanged.
    pub(crate) fn apply<'m>(&self, api: Api, json: &'m str) -> Option<Cow<'m, str>> {
        let message = if self.changes(json) { exact::read(json) } else { None };
        let Some(mut message) = message else { return Some(Cow::Borrowed(json)) };
        let is_left = match (api, &mut message) {
            (Api::Messages, Value::Object(message)) => self.rewrite_blocks(message),
            (Api::Responses, Value::Array(items)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| self.item(item));
                true
            }
            (Api::Responses, Value::Object(item)) => {
                self.item(item);
                true
            }
            (_, Value::Object(message)) => {
                self.chat(message);
                true
            }
            _ => true,
        };
        is_left.then(|| Cow::Owned(exact::write(&message)))
    }

    /// Rewrites the blocks of an Anthropic message. Returns whether any is left.
    fn rewrite_blocks(&self, message: &mut Map<String, Value>) -> bool {
        let words = self.words();
        match message.get_mut("content") {
            Some(Value::String(text)) => {
                if let Some([only]) = words.as_deref() {
                    only.clone_into(text);
                }
                true
            }
            Some(Value::Array(blocks)) => {
                blocks.retain_mut(|block| self.block(block));
                set_words(blocks.iter_mut().filter(|block| is_text(block)), words);
                !blocks.is_empty()
            }
            _ => true,
        }
    }

    /// Rewrites an Anthropic block. Returns whether it stays.
    fn block(&self, block: &mut Value) -> bool {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let text =
            |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "thinking" | "redacted_thinking" => !self.drops_thinking,
            "tool_result" => {
                let id = text("tool_use_id");
                if self.stays.as_ref().is_some_and(|(results, _)| !results.contains(&id)) {
                    return false;
                }
                if let (Some(result), Some(block)) = (self.result(&id), block.as_object_mut()) {
                    block.insert("content".to_owned(), json!(result));
                }
                true
            }
            "tool_use" => {
                let arguments = self.arguments(&text("id"));
                let input = arguments.and_then(|arguments| exact::read(&arguments));
                if let (Some(input), Some(block)) = (input, block.as_object_mut()) {
                    block.insert("input".to_owned(), input);
                }
                true
            }
            _ => self.stays.as_ref().is_none_or(|(_, has_words)| *has_words),
        }
    }

    /// Rewrites an item of the Responses API.
    fn item(&self, item: &mut Map<String, Value>) {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let (kind, id) = (text("type").to_owned(), text("call_id").to_owned());
        if kind.ends_with("_call_output") {
            if let Some(result) = self.result(&id) {
                item.insert("output".to_owned(), json!(result));
            }
        } else if kind.ends_with("_call") {
            let key = if kind == "custom_tool_call" { "input" } else { "arguments" };
            if let (Some(arguments), true) = (self.arguments(&id), item.contains_key(key)) {
                item.insert(key.to_owned(), json!(arguments));
            }
        } else if kind == "message" || kind.is_empty() {
            self.set_content(item);
        }
    }

    /// Rewrites a message of the chat API.
    fn chat(&self, message: &mut Map<String, Value>) {
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
        if let Some(result) = self.result(id) {
            message.insert("content".to_owned(), json!(result));
            return;
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            let arguments = self.arguments(id);
            let function = call.get_mut("function").and_then(Value::as_object_mut);
            if let (Some(arguments), Some(function)) = (arguments, function) {
                function.insert("arguments".to_owned(), json!(arguments));
            }
        }
        self.set_content(message);
    }

    /// Replaces the text of a message whose content is a text or parts with texts.
    fn set_content(&self, message: &mut Map<String, Value>) {
        match (message.get_mut("content"), self.words()) {
            (Some(Value::String(text)), Some(words)) => {
                if let [only] = words.as_slice() {
                    only.clone_into(text);
                }
            }
            (Some(Value::Array(parts)), words) => {
                set_words(parts.iter_mut().filter(|part| is_text(part)), words);
            }
            _ => {}
        }
    }

    /// Returns the replacement of a call's result.
    fn result(&self, id: &str) -> Option<String> {
        let is_it =
            |message: &&Arc<Message>| message.tool_call_id().is_some_and(|own| own.as_str() == id);
        self.instead.iter().find(is_it).map(|message| message.text().into_owned())
    }

    /// Returns the replacement of a call's arguments.
    fn arguments(&self, id: &str) -> Option<String> {
        let mut calls = self.instead.iter().flat_map(|message| message.tool_calls());
        calls.find(|call| call.id.as_str() == id).map(|call| call.arguments.clone())
    }

    /// Returns the replacements of the message's own texts, in order.
    fn words(&self) -> Option<Vec<String>> {
        let said = self.instead.iter().find(|message| *message.role() != Role::Tool)?;
        Some(match said.content() {
            Content::Empty => Vec::new(),
            Content::Text(text) => vec![text.clone()],
            Content::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(text.clone()),
                    Part::Other(_) => None,
                })
                .collect(),
        })
    }
}

/// Returns a message that the gateway writes, on the user's side.
pub(crate) fn written(api: Api, text: &str) -> String {
    match api {
        Api::Messages => json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
        Api::Responses => json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }),
        _ => json!({ "role": "user", "content": text }),
    }
    .to_string()
}

fn is_text(part: &Value) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "text" | "input_text" | "output_text")
}

/// Replaces the texts in `parts` with these. If their number differs, all stay.
fn set_words<'p>(parts: impl Iterator<Item = &'p mut Value>, words: Option<Vec<String>>) {
    let (parts, words) = (parts.collect::<Vec<_>>(), words.unwrap_or_default());
    if parts.len() == words.len() {
        for (part, text) in parts.into_iter().zip(words) {
            if let Some(part) = part.as_object_mut() {
                part.insert("text".to_owned(), json!(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rewriting;
    use crate::Api;

    #[test]
    fn gw5_numbers_keep_their_digits_where_thinking_leaves() {
        let call = r#"{"type":"tool_use","id":"a","name":"读","input":{"id":123456789012345678901234567890,"at":[19.90,1e5]}}"#;
        let message = |blocks: &str| format!(r#"{{"role":"assistant","content":[{blocks}]}}"#);
        let thought = r#"{"type":"thinking","thinking":"港口?","signature":"s"}"#;
        let sent = Rewriting { drops_thinking: true, ..Rewriting::default() };
        let sent =
            sent.apply(Api::Messages, &message(&format!("{thought},{call}"))).map(String::from);
        assert_eq!(sent, Some(message(call)));
    }
}
