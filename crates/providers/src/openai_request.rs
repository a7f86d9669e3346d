//! A request in the words of chat-completions.

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

/// Where a call's arguments are no JSON object and the server wants one: the text that the model
/// wrote stands under this key.
pub(crate) const RAW_ARGUMENTS: &str = "raw_arguments";

/// What a result says that says nothing, where the server may not take an empty text.
const NO_OUTPUT: &str = "(no output)";

/// The greatest number of marks that are looked at. A request writes the latest four, and is served
/// from what earlier requests wrote at the others.
const MARKS: usize = 80;

/// The whole body: model, messages, how the answer is drawn, tools and what is said about them.
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
        // llama-cpp-python passes over the tools where it is not said that they may be called.
        None if !is_openai && !request.tools.is_empty() => {
            body.insert("tool_choice".to_owned(), json!("auto"));
        }
        None => {}
    }
    if let (true, Some(session)) = (is_openai, &request.session) {
        // Requests of one key are sent to one machine, whose cache has the prefix.
        body.insert("prompt_cache_key".to_owned(), json!(legal_name(session, LONGEST_SPEAKER)));
    }
    if config.prefill && ends_with_beginning(request) {
        // As vLLM has it.
        body.insert("add_generation_prompt".to_owned(), json!(false));
        body.insert("continue_final_message".to_owned(), json!(true));
    }
    Ok(body)
}

/// How the answer is drawn, and how long it may be.
fn draw(request: &ChatRequest, config: &ModelConfig, body: &mut Map<String, Value>) {
    let Sampling { temperature, max_tokens, stop, seed, .. } = &request.sampling;
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if !stop.is_empty() {
        body.insert("stop".to_owned(), json!(stop));
    }
    if let Some(max_tokens) = max_tokens.or_else(|| config.longest_answer()) {
        // OpenAI's models that reason refuse the old name; the servers of others know no other.
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

/// Marks every message up to the last mark of the request where one can stand: a prefix is only
/// found where a mark stands now and stood when it was written. Of too many, the request's first
/// and the latest stay. Whether there are any.
fn set_marks(request: &ChatRequest, messages: &mut [Value]) -> bool {
    let last = request.cache_marks.iter().max();
    let mut places = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        // Marks stand on parts, and what the model said takes none.
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

/// Whether the last message is the beginning of the answer.
pub(crate) fn ends_with_beginning(request: &ChatRequest) -> bool {
    request.messages.last().is_some_and(|message| {
        *message.role() == Role::Assistant && message.tool_calls().is_empty()
    })
}

/// What a tool does; one that goes by another name on the wire tells its own, since that is what the
/// prompt calls it.
pub(crate) fn description(tool: &ToolDefinition, names: &ToolNames) -> String {
    if names.wire(&tool.name) == tool.name {
        tool.description.clone()
    } else {
        format!("{}: {}", tool.name, tool.description)
    }
}

/// The schema of a tool's arguments as a server takes it: chat templates know less of schemas than OpenAI.
fn schema(tool: &ToolDefinition, is_openai: bool) -> Result<Map<String, Value>, ModelError> {
    let schema = parameters(tool)?;
    Ok(if is_openai { schema } else { plain_schema(schema) })
}

/// The schema of a tool's arguments.
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
    // Only OpenAI knows developers; elsewhere the system says the same.
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
        // Not every server of others takes a result without a word.
        content if !is_openai && *message.role() == Role::Tool && content.is_blank() => {
            json!(NO_OUTPUT)
        }
        // Servers of others read it as text, and so do their templates.
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
                // Chat templates read the arguments as JSON and fail on anything else.
                json!({ RAW_ARGUMENTS: call.arguments }).to_string()
            };
            json!({"id": call_id(call.id.as_str(), is_openai), "type": "function", "function": {
                "name": names.wire(&call.name),
                "arguments": arguments,
            }})
        });
        out.insert("tool_calls".to_owned(), calls.collect());
        if !is_openai {
            // A model that reasons before its calls is shown why it made them.
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

/// The id of a call: OpenAI takes only legal ones. Elsewhere it stays as it is, since chat templates
/// may say it to the model (Kimi's are such as `functions.read_file:3`, and count on).
fn call_id(id: &str, is_openai: bool) -> String {
    if is_openai { wire_id(id) } else { id.to_owned() }
}

/// A part of a content; an image in Anthropic's words is said in these.
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
