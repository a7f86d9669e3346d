//! Token counts by o200k; each text is counted once.

use foldback_core::{Message, TokenCounter, ToolDefinition, message_tokens};
use foldback_o200k::O200k;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A counter of tokens that counts each text once: prompts repeat almost everything from call to call.
#[derive(Default)]
pub struct Counts {
    of: HashMap<Box<str>, u64>,
    /// Keyed by the address in memory, which belongs to one message as long as it is held here.
    shared: FxHashMap<usize, (Arc<Message>, u64)>,
}

impl Counts {
    /// Returns the same as [`message`](Self::message), for a message that prompts share.
    pub fn shared(&mut self, message: &Arc<Message>) -> u64 {
        let place = Arc::as_ptr(message) as usize;
        if let Some((_, tokens)) = self.shared.get(&place) {
            return *tokens;
        }
        let tokens = self.message(message);
        self.shared.insert(place, (Arc::clone(message), tokens));
        tokens
    }

    /// Returns the tokens of a message, including its frame.
    pub fn message(&mut self, message: &Message) -> u64 {
        if let Some(tokens) = self.of.get(message.json()) {
            return *tokens;
        }
        let tokens = message_tokens(&O200k, message) as u64;
        self.of.insert(message.json().into(), tokens);
        tokens
    }

    /// Returns the tokens of tool declarations, each as the chat-completions API takes it.
    pub fn tools(&mut self, tools: &[ToolDefinition]) -> u64 {
        let tokens = |tool: &ToolDefinition| {
            let parameters = serde_json::from_str(&tool.parameters).unwrap_or_default();
            self.text(&declaration(&tool.name, &tool.description, &parameters))
        };
        tools.iter().map(tokens).sum()
    }

    /// Returns the tokens of the tools that a recording declares: a JSON array in the format of the
    /// chat-completions or the messages API, counted by the same rule as [`tools`](Self::tools).
    pub fn recorded_tools(&mut self, json: &str) -> u64 {
        let Ok(tools) = serde_json::from_str::<Vec<Value>>(json) else { return self.text(json) };
        tools.iter().map(|tool| self.text(&recorded_declaration(tool))).sum()
    }

    /// Returns the tokens of a text.
    pub fn text(&mut self, text: &str) -> u64 {
        if let Some(tokens) = self.of.get(text) {
            return *tokens;
        }
        let tokens = O200k.count(text) as u64;
        self.of.insert(text.into(), tokens);
        tokens
    }
}

/// Returns a tool as the chat-completions API takes it.
fn declaration(name: &str, description: &str, parameters: &Value) -> String {
    let name = Value::from(name);
    let description = Value::from(description);
    format!(
        r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
    )
}

/// Returns the same for a tool that a recording declares; one of another format is returned as it is,
/// without the space between its parts.
fn recorded_declaration(tool: &Value) -> String {
    let body = tool.get("function").unwrap_or(tool);
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let parameters = body.get("parameters").or_else(|| body.get("input_schema"));
    match (text("name"), parameters) {
        (Some(name), parameters) => {
            let none = Value::Object(serde_json::Map::new());
            let description = text("description").unwrap_or_default();
            declaration(name, description, parameters.unwrap_or(&none))
        }
        (None, _) => tool.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_count_as_they_are_sent_whoever_declares_them() {
        let mut counts = Counts::default();
        let tool = ToolDefinition {
            name: "open_gate".to_owned(),
            description: "Opens \"it\".".to_owned(),
            parameters: r#"{"type": "object", "properties": {}}"#.to_owned(),
        };
        let sent = r#"{"type":"function","function":{"name":"open_gate","description":"Opens \"it\".","parameters":{"type":"object","properties":{}}}}"#;
        let tokens = counts.text(sent);
        let own = counts.tools(std::slice::from_ref(&tool));
        assert!(own.abs_diff(tokens) <= 2, "the order of keys hardly counts: {own}, {tokens}");
        let spaced = sent.replace(":{", ": {\n  ");
        assert_eq!(counts.recorded_tools(&format!("[{spaced}, {sent}]")), 2 * own);
        let other = r#"[{"name":"open_gate","description":"Opens \"it\".","input_schema":{"type":"object","properties":{}}}]"#;
        assert_eq!(counts.recorded_tools(other), own);
        let odd = counts.text(r#"{"type":"web_search"}"#);
        assert_eq!(counts.recorded_tools(r#"[{"type": "web_search"}]"#), odd);
        assert_eq!(counts.recorded_tools("none"), counts.text("none"));
        assert_eq!(counts.recorded_tools("[]"), 0);
    }
}
