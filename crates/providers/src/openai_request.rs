//! A request in the chat-completions format.

use crate::config::is_marked_openai;
use crate::draft::wire_id;
use crate::json::{parse, parse_object};
use crate::plain_schema::plain_schema;
use crate::{ModelConfig, Provider, tool_choice};
use foldback_core::{Content, Message, Part, Role, ToolDefinition};
use foldback_llm::legal_name;
use foldback_llm::{ChatRequest, ModelError, ModelErrorKind, Sampling, ToolNames};
use foldback_tool::canonical_tools;
use serde_json::{Map, Value, json};

/// The longest name of a speaker.
const LONGEST_SPEAKER: usize = 64;

/// If a call's arguments are not a JSON object and the server requires one, the text that the model
/// wrote is put under this key.
pub(crate) const RAW_ARGUMENTS: &str = "raw_arguments";

/// The text of an empty result, for servers that may not accept an empty text.
const NO_OUTPUT: &str = "(no output)";

/// The greatest number of marks that are set. A request writes the latest four, and is served from
/// what earlier requests wrote at the others.
const MARKS: usize = 80;

/// Builds the whole body: model, messages, sampling, tools and the choice among them.
pub(crate) fn body(
    request: &ChatRequest,
    config: &ModelConfig,
    names: &ToolNames,
    streamed: bool,
) -> Result<Map<String, Value>, ModelError> {
    let is_openai = config.provider == Provider::OpenAi;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.name));
    body.insert("stream".to_owned(), json!(streamed));
    let mut messages: Vec<Value> =
        request.messages.iter().map(|message| write(message, is_openai, names)).collect();
    // Without marks the provider finds the cached prefix itself.
    let marked = config.cache_marks && set_marks(request, &mut messages);
    let caching = json!({ "mode": if marked { "explicit" } else { "implicit" } });
    let takes_marks = is_openai && is_marked_openai(&config.name);
    if takes_marks {
        body.insert("prompt_cache_options".to_owned(), caching.clone());
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if streamed {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    draw(request, config, &mut body);
    if config.cache_marks && !takes_marks {
        body.insert("prompt_cache_options".to_owned(), caching);
    }
    if !request.tools.is_empty() {
        let tools = canonical_tools(&request.tools);
        let tools: Result<Vec<Value>, ModelError> = tools
            .iter()
            .map(|tool| {
                Ok(json!({"type": "function", "function": {
                    "name": names.wire(&tool.name),
                    "description": description(tool, names),
                    "parameters": schema(tool, is_openai)?,
                }}))
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools?));
    }
    match tool_choice::openai(request, names, config.allowed_tools)? {
        Some(choice) => {
            body.insert("tool_choice".to_owned(), choice);
        }
        // llama-cpp-python ignores the tools unless the request says that they may be called.
        None if !is_openai && !request.tools.is_empty() => {
            body.insert("tool_choice".to_owned(), json!("auto"));
        }
        None => {}
    }
    if let (true, Some(session)) = (is_openai, &request.session) {
        // Requests with one key are sent to one machine, whose cache has the prefix.
        body.insert("prompt_cache_key".to_owned(), json!(legal_name(session, LONGEST_SPEAKER)));
    }
    if config.prefill && ends_with_beginning(request) {
        // As vLLM has it.
        body.insert("add_generation_prompt".to_owned(), json!(false));
        body.insert("continue_final_message".to_owned(), json!(true));
    }
    Ok(body)
}

/// Writes the sampling settings and the length limit.
fn draw(request: &ChatRequest, config: &ModelConfig, body: &mut Map<String, Value>) {
    let Sampling { temperature, max_tokens, stop, seed, .. } = &request.sampling;
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if !stop.is_empty() {
        body.insert("stop".to_owned(), json!(stop));
    }
    if let Some(max_tokens) = max_tokens.or_else(|| config.longest_answer()) {
        // OpenAI's reasoning models refuse the old name; other servers know no other.
        let reasons = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
        let reasons = reasons.iter().any(|beginning| config.name.starts_with(beginning));
        let is_new = config.provider == Provider::OpenAi && reasons;
        let key = if is_new { "max_completion_tokens" } else { "max_tokens" };
        body.insert(key.to_owned(), json!(max_tokens));
    }
    if let Some(seed) = seed {
        body.insert("seed".to_owned(), json!(seed));
    }
}

/// Marks every message up to the last mark of the request, if it can carry one: a prefix is only
/// found if a mark is there now and was there when it was written. If there are too many, the
/// request's first and the latest stay. Returns whether there are any.
fn set_marks(request: &ChatRequest, messages: &mut [Value]) -> bool {
    let last = request.cache_marks.iter().max();
    let mut places = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        // Marks are set on parts, and the model's messages accept none.
        if *message.role() == Role::Assistant || message.content().is_blank() {
            continue;
        }
        let content = &mut messages[at]["content"];
        if content.is_string() {
            *content = json!([{"type": "text", "text": content}]);
        }
        if last.is_some_and(|last| at <= *last) {
            places.push(at);
        }
    }
    let surplus = places.len().saturating_sub(MARKS);
    if surplus > 0 {
        let first = usize::from(places.first() == request.cache_marks.iter().min());
        places.drain(first..first + surplus);
    }
    for at in &places {
        let part = messages[*at]["content"].as_array_mut().and_then(|parts| parts.last_mut());
        if let Some(part) = part {
            part["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
        }
    }
    !places.is_empty()
}

/// Returns whether the last message is the beginning of the answer.
pub(crate) fn ends_with_beginning(request: &ChatRequest) -> bool {
    request.messages.last().is_some_and(|message| {
        *message.role() == Role::Assistant && message.tool_calls().is_empty()
    })
}

/// Returns a tool's description; a tool with another name on the wire adds its own, since the prompt uses that name.
pub(crate) fn description(tool: &ToolDefinition, names: &ToolNames) -> String {
    if names.wire(&tool.name) == tool.name {
        tool.description.clone()
    } else {
        format!("{}: {}", tool.name, tool.description)
    }
}

/// Returns the schema of a tool's arguments for a server: chat templates know less of schemas than OpenAI.
fn schema(tool: &ToolDefinition, is_openai: bool) -> Result<Map<String, Value>, ModelError> {
    let schema = parameters(tool)?;
    Ok(if is_openai { schema } else { plain_schema(schema) })
}

/// Returns the schema of a tool's arguments.
pub(crate) fn parameters(tool: &ToolDefinition) -> Result<Map<String, Value>, ModelError> {
    parse_object(&tool.parameters).ok_or_else(|| {
        ModelError::new(
            ModelErrorKind::Request,
            format!(
                "the parameters of the tool {:?} must be a JSON object, not {}",
                tool.name, tool.parameters
            ),
        )
    })
}

fn write(message: &Message, is_openai: bool, names: &ToolNames) -> Value {
    let mut out = Map::new();
    // Only OpenAI has developer messages; elsewhere the system role serves.
    let role = match message.role() {
        Role::Developer if !is_openai => "system",
        role => role.as_str(),
    };
    out.insert("role".to_owned(), json!(role));
    let tells_name = *message.role() != Role::Tool && !message.is_observation();
    if let (Some(name), true) = (message.name(), tells_name) {
        out.insert("name".to_owned(), json!(legal_name(name, LONGEST_SPEAKER)));
    }
    let calls = message.tool_calls();
    let content = match message.content() {
        // Not every other server accepts an empty result.
        content if !is_openai && *message.role() == Role::Tool && content.is_blank() => {
            json!(NO_OUTPUT)
        }
        // Other servers and their templates read it as text.
        Content::Empty if is_openai && !calls.is_empty() => Value::Null,
        Content::Empty => json!(""),
        Content::Text(text) => json!(text),
        Content::Parts(parts) => Value::Array(parts.iter().map(part).collect()),
    };
    out.insert("content".to_owned(), content);
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let arguments = if is_openai || parse_object(&call.arguments).is_some() {
                call.arguments.clone()
            } else {
                // Chat templates parse the arguments as JSON and fail on anything else.
                json!({ RAW_ARGUMENTS: call.arguments }).to_string()
            };
            json!({"id": call_id(call.id.as_str(), is_openai), "type": "function", "function": {
                "name": names.wire(&call.name),
                "arguments": arguments,
            }})
        });
        out.insert("tool_calls".to_owned(), calls.collect());
        if !is_openai {
            // A model that reasons before its calls is shown its reasons.
            for (key, value) in message.fields() {
                if key.starts_with("reasoning")
                    && let Some(value) = parse(value.get())
                {
                    out.insert(key.into_owned(), value);
                }
            }
        }
    }
    if let Some(id) = message.tool_call_id() {
        out.insert("tool_call_id".to_owned(), json!(call_id(id.as_str(), is_openai)));
    }
    Value::Object(out)
}

/// Returns the id of a call: OpenAI accepts only legal ones. Elsewhere it stays as it is, since chat
/// templates may show it to the model (Kimi's ids are such as `functions.read_file:3`, and are numbered on).
fn call_id(id: &str, is_openai: bool) -> String {
    if is_openai { wire_id(id) } else { id.to_owned() }
}

/// Returns a part of a content; an image in Anthropic's form is rewritten.
fn part(part: &Part) -> Value {
    let raw = match part {
        Part::Text(text) => return json!({"type": "text", "text": text}),
        Part::Other(raw) => raw,
    };
    let Some(mut object) = parse_object(raw) else {
        return json!({"type": "text", "text": raw});
    };
    object.shift_remove("cache_control");
    let source = object.get("source");
    let source = |key: &str| source.and_then(|source| source.get(key)).and_then(Value::as_str);
    let is_image = object.get("type").and_then(Value::as_str) == Some("image");
    let url = match (is_image, source("url"), source("media_type"), source("data")) {
        (true, Some(url), _, _) => Some(url.to_owned()),
        (true, None, Some(kind), Some(data)) => Some(format!("data:{kind};base64,{data}")),
        _ => None,
    };
    match url {
        Some(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        None => Value::Object(object),
    }
}
