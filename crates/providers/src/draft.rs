//! An answer that is being assembled.

use crate::failure::unreadable;
use crate::hermes::{HermesParser, HermesPart, HermesProblem};
use crate::json::parse_object;
use crate::plain_schema::with_nulls;
use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::legal_name;
use foldback_llm::{
    ChatChunk, ChatRequest, ChatResponse, ModelError, ModelErrorKind, StopReason, ToolNames, Usage,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest call id that providers accept.
const LONGEST_ID: usize = 40;

/// What was read of an answer so far.
pub(crate) struct Draft {
    names: ToolNames,
    /// The ids of calls, including those in the request.
    ids: BTreeSet<String>,
    /// Makes the ids of this answer differ from those of others.
    seed: u64,
    text: String,
    reasoning: String,
    thinking: Vec<Value>,
    calls: Vec<ToolCall>,
    /// Which of the calls were sent on, which happens when the name is known.
    told: Vec<bool>,
    /// Reads calls from the text, if the server has no tool calls.
    hermes: Option<HermesParser>,
    /// The schemas of tools, by name, that the model saw without `null`.
    nullable: BTreeMap<String, Map<String, Value>>,
    /// The first malformed call in the text.
    problem: Option<HermesProblem>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<StopReason>,
    /// Why the provider stopped the answer before its end, if it did.
    pub(crate) interrupted: Option<String>,
    pub(crate) model: String,
}

impl Draft {
    /// Creates an empty answer to a request; `model` is the model that it was sent to.
    pub(crate) fn new(request: &ChatRequest, names: ToolNames, model: &str) -> Self {
        let calls = request.messages.iter().flat_map(|message| message.tool_calls());
        let last = request.messages.last().map_or("", |message| message.json());
        Self {
            names,
            ids: calls.map(|call| call.id.as_str().to_owned()).collect(),
            seed: xxh3_64_with_seed(last.as_bytes(), request.messages.len() as u64),
            text: String::new(),
            reasoning: String::new(),
            thinking: Vec::new(),
            calls: Vec::new(),
            told: Vec::new(),
            hermes: None,
            nullable: BTreeMap::new(),
            problem: None,
            usage: Usage::default(),
            stop: None,
            interrupted: None,
            model: model.to_owned(),
        }
    }

    /// Reads calls from the text, which continues this beginning.
    pub(crate) fn with_calls_in_text(mut self, beginning: &str) -> Self {
        let mut parser = HermesParser::default();
        // The beginning of a call is not part of an answer yet.
        drop(parser.push(beginning));
        self.hermes = Some(parser);
        self
    }

    /// For a model that saw no `null` in the schemas of these tools: arguments that it leaves out are
    /// written as `null` if the tool requires them.
    pub(crate) fn with_plain_schemas(mut self, tools: &[ToolDefinition]) -> Self {
        let schema =
            |tool: &ToolDefinition| Some((tool.name.clone(), parse_object(&tool.parameters)?));
        self.nullable = tools.iter().filter_map(schema).collect();
        self
    }

    /// Adds more text.
    pub(crate) fn push_text(&mut self, text: &str, ready: &mut VecDeque<ChatChunk>) {
        match &mut self.hermes {
            Some(parser) => {
                let parts = parser.push(text);
                self.push_parts(parts, ready);
            }
            None => self.push_words(text, ready),
        }
    }

    /// Adds the text that was held back until its end.
    pub(crate) fn end_text(&mut self, ready: &mut VecDeque<ChatChunk>) {
        if let Some(parser) = self.hermes.take() {
            self.push_parts(parser.finish(), ready);
            // The line breaks around calls are not text.
            if !self.calls.is_empty() {
                self.text = self.text.trim().to_owned();
            }
        }
    }

    fn push_parts(&mut self, parts: Vec<HermesPart>, ready: &mut VecDeque<ChatChunk>) {
        for part in parts {
            match part {
                HermesPart::Text(text) => self.push_words(&text, ready),
                HermesPart::Call(call) => {
                    let index = self.begin_call("", &call.name, ready);
                    self.push_arguments(index, &call.arguments, ready);
                }
                HermesPart::Problem(problem) => drop(self.problem.get_or_insert(problem)),
            }
        }
    }

    fn push_words(&mut self, text: &str, ready: &mut VecDeque<ChatChunk>) {
        if !text.is_empty() {
            self.text.push_str(text);
            ready.push_back(ChatChunk::Text(text.to_owned()));
        }
    }

    /// Adds more of the model's reasoning.
    pub(crate) fn push_reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }

    /// Adds a thinking block, which the provider requires back unchanged.
    pub(crate) fn push_thinking(&mut self, block: Value) {
        self.thinking.push(block);
    }

    /// Begins a call; returns its index. An id that is missing, or that another call has, is
    /// replaced: results are matched by id.
    pub(crate) fn begin_call(
        &mut self,
        id: &str,
        wire_name: &str,
        ready: &mut VecDeque<ChatChunk>,
    ) -> usize {
        let index = self.calls.len();
        let mut id = id.to_owned();
        for attempt in 0_u32.. {
            if !id.is_empty() && self.ids.insert(id.clone()) {
                break;
            }
            let sum = xxh3_64_with_seed(format!("{index} {attempt}").as_bytes(), self.seed);
            id = format!("call_{sum:016x}");
        }
        self.calls.push(ToolCall::new(&id, "", ""));
        self.told.push(false);
        self.name_call(index, wire_name, ready);
        index
    }

    /// Names the call at `index`, and sends on what is known of it. An empty name is not a name yet.
    pub(crate) fn name_call(
        &mut self,
        index: usize,
        wire_name: &str,
        ready: &mut VecDeque<ChatChunk>,
    ) {
        let (Some(call), Some(told)) = (self.calls.get_mut(index), self.told.get_mut(index)) else {
            return;
        };
        if wire_name.is_empty() {
            return;
        }
        call.name = self.names.original(wire_name);
        *told = true;
        ready.push_back(ChatChunk::ToolCall {
            index,
            id: Some(call.id.as_str().to_owned()),
            name: Some(call.name.clone()),
            arguments: call.arguments.clone(),
        });
    }

    /// Adds more of the arguments of the call at `index`.
    pub(crate) fn push_arguments(
        &mut self,
        index: usize,
        arguments: &str,
        ready: &mut VecDeque<ChatChunk>,
    ) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if arguments.is_empty() {
            return;
        }
        call.arguments.push_str(arguments);
        if !self.told.get(index).is_some_and(|told| *told) {
            return;
        }
        // The first piece of the arguments is sent with the name if both came together.
        match ready.back_mut() {
            Some(ChatChunk::ToolCall { index: last, arguments: pending, .. }) if *last == index => {
                pending.push_str(arguments);
            }
            _ => ready.push_back(ChatChunk::ToolCall {
                index,
                id: None,
                name: None,
                arguments: arguments.to_owned(),
            }),
        }
    }

    /// Returns the answer. `stop` is the provider's reason; calls that were sent on take precedence over a plain end.
    ///
    /// # Errors
    /// When a call in its text is malformed: if the model was cut off, its end says so instead.
    pub(crate) fn into_response(
        mut self,
        ready: &mut VecDeque<ChatChunk>,
    ) -> Result<ChatResponse, ModelError> {
        self.end_text(ready);
        if let Some(reason) = self.interrupted {
            let message = format!("the provider stopped the answer before its end: {reason}");
            let error = ModelError::new(ModelErrorKind::Unavailable, message);
            return Err(error.with_usage(self.usage));
        }
        if let Some(problem) = self.problem {
            return Err(unreadable(&problem.to_string(), "").with_usage(self.usage));
        }
        let is_cut = self.stop.as_ref().is_some_and(|stop| stop.incomplete().is_some());
        let last = self.calls.len().saturating_sub(1);
        for (at, call) in self.calls.iter_mut().enumerate() {
            if call.arguments.trim().is_empty() {
                // A call that was cut off before its arguments is not one without arguments: it must not be made.
                let arguments = if is_cut && at == last { "{" } else { "{}" };
                arguments.clone_into(&mut call.arguments);
            }
            let schema = self.nullable.get(&call.name);
            if let Some(whole) = schema.and_then(|schema| with_nulls(schema, &call.arguments)) {
                call.arguments = whole;
            }
        }
        let calls_tools = !self.calls.is_empty();
        let stop = match self.stop {
            None | Some(StopReason::End) if calls_tools => StopReason::ToolCalls,
            // Some servers say "tool calls" in any case.
            None | Some(StopReason::ToolCalls) if !calls_tools => StopReason::End,
            Some(stop) => stop,
            None => StopReason::End,
        };
        let mut message = Message::calls(&self.text, self.calls);
        let mut extra = Vec::new();
        if !self.reasoning.is_empty() {
            extra.push(("reasoning_content", json!(self.reasoning)));
        }
        if !self.thinking.is_empty() {
            extra.push(("thinking_blocks", Value::Array(self.thinking)));
        }
        if !extra.is_empty() {
            let mut text = message.json().to_owned();
            text.pop();
            for (key, value) in extra {
                text.push_str(&format!(",\"{key}\":{value}"));
            }
            text.push('}');
            message = Message::from_json(&text).map_err(|error| {
                unreadable(&format!("the answer is not a message: {error}"), &text)
                    .with_usage(self.usage)
            })?;
        }
        Ok(ChatResponse { message, usage: self.usage, stop, model: self.model })
    }
}

/// Returns the id of a call in a form that OpenAI and Anthropic accept.
pub(crate) fn wire_id(id: &str) -> String {
    legal_name(id, LONGEST_ID)
}
