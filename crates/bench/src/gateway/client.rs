//! A recorded conversation as a client of Anthropic's API sends it.

use foldback::MemoryTool;
use foldback_core::Message;
use foldback_gateway::{Api, Taped};
use foldback_transcript::{Conversation, Options, anthropic};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The text before the recorded instructions: clients have instructions of their own there.
const STANDING: &str = "You are an agent that works with tools.";

/// The model that is asked. Its price is in the terms.
const MODEL: &str = "claude-sonnet-4-5";

/// A client that sends a recorded conversation: a request for each answer of the model, with everything
/// that was said before, and with cache marks where Claude Code sets them.
pub(crate) struct Client {
    id: String,
    system: Value,
    tools: Value,
    messages: Vec<Value>,
}

impl Client {
    /// Creates a client for this conversation; `None` if no model speaks in it.
    pub(crate) fn of(id: &str, conversation: &Conversation) -> Option<Self> {
        let body = anthropic::body(&conversation.messages, &[], &Options::default());
        let mut body: Value = serde_json::from_str(&body).ok()?;
        let mut system = vec![json!({ "type": "text", "text": STANDING })];
        mark(system.last_mut());
        if let Some(Value::Array(own)) = body.get_mut("system").map(Value::take) {
            system.extend(own);
            mark(system.last_mut());
        }
        let Some(Value::Array(messages)) = body.get_mut("messages").map(Value::take) else {
            return None;
        };
        let speaks = messages.iter().any(is_models);
        let (id, tools) = (id.to_owned(), tools(conversation));
        speaks.then(|| Self { id, system: json!(system), tools, messages })
    }

    /// Returns what it sends, and what the model answers.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Taped<'_>> {
        self.answers().map(|at| self.exchange(at))
    }

    /// Returns the indexes of the model's answers.
    fn answers(&self) -> impl Iterator<Item = usize> {
        let numbered = self.messages.iter().enumerate();
        numbered.filter(|(_, message)| is_models(message)).map(|(at, _)| at)
    }

    /// Returns the exchange whose answer is at `at`.
    fn exchange(&self, at: usize) -> Taped<'_> {
        let mut messages = self.messages.get(..at).unwrap_or_default().to_vec();
        let last = messages.last_mut().and_then(|last| last.get_mut("content")?.as_array_mut());
        mark(last.and_then(|content| content.last_mut()));
        let request = json!({
            "model": MODEL,
            "max_tokens": 32_000,
            "system": self.system,
            "tools": self.tools,
            "messages": messages,
        });
        let content = self.messages.get(at).and_then(|message| message.get("content"));
        let calls = content.and_then(Value::as_array).into_iter().flatten();
        let stop = calls.last().filter(|last| last["type"] == "tool_use").map(|_| "tool_use");
        let answer = json!({
            "id": format!("msg_{at}"),
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": stop.unwrap_or("end_turn"),
            "stop_sequence": null,
        });
        let headers = [("user-agent", "claude-cli/2"), ("x-claude-code-session-id", &self.id)];
        let headers = headers.map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)));
        Taped {
            at: 0,
            api: Api::Messages,
            path: Cow::Borrowed("/v1/messages"),
            client: Cow::Borrowed("claude-cli"),
            session: None,
            headers: BTreeMap::from(headers),
            status: 200,
            request: Cow::Owned(request.to_string()),
            answer: Cow::Owned(answer.to_string()),
            first_ms: None,
            last_ms: None,
        }
    }
}

fn is_models(message: &Value) -> bool {
    message["role"] == "assistant"
}

/// Marks a block for the cache.
fn mark(block: Option<&mut Value>) {
    if let Some(block) = block.and_then(Value::as_object_mut) {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

/// Returns the tools that the recording declares, or the names of those that it calls; then the
/// memory's, as clients of `foldback mcp` name it.
fn tools(conversation: &Conversation) -> Value {
    let declared = conversation.envelope.get("tools");
    let declared = declared.and_then(|tools| serde_json::from_str::<Vec<Value>>(&tools).ok());
    let mut tools: Vec<Value> = match declared {
        Some(declared) => declared.iter().map(as_anthropic).collect(),
        None => {
            let calls = conversation.messages.iter().flat_map(Message::tool_calls);
            let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
            let bare = |name: &&str| json!({ "name": name, "description": "", "input_schema": { "type": "object" } });
            names.iter().map(bare).collect()
        }
    };
    tools.extend(MemoryTool::all().into_iter().filter(|tool| tool.name == "load").map(|load| {
        let schema: Value = serde_json::from_str(&load.parameters).unwrap_or_default();
        json!({ "name": "mcp__foldback__load", "description": load.description, "input_schema": schema })
    }));
    json!(tools)
}

/// Returns a declared tool in the format of Anthropic's API.
fn as_anthropic(tool: &Value) -> Value {
    let body = tool.get("function").unwrap_or(tool);
    let schema = body.get("parameters").or_else(|| body.get("input_schema"));
    json!({ "name": body["name"], "description": body["description"], "input_schema": schema })
}
