//! A request and its answer, as stored in a file.

use super::push_string;
use super::secrets::Secrets;
use foldback_core::Message;
use foldback_llm::{
    AllowedTools, ChatChunk, ChatRequest, ChatResponse, ModelError, ModelErrorKind, Sampling,
    StopReason, ToolChoice, Usage,
};
use foldback_tool::{canonical_json, canonical_schema, canonical_tools};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// One exchange.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    /// The request in its normal form.
    pub(super) request: Box<RawValue>,
    /// The pieces of a stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) chunks: Vec<Chunk>,
    /// The answer; neither this nor an error if nobody waited for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Response>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    message: Box<RawValue>,
    usage: Usage,
    stop: StopReason,
    model: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    #[serde(with = "kind")]
    kind: ModelErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// A piece of a stream, except the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Chunk {
    Text(String),
    ToolCall {
        index: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        arguments: String,
    },
}

impl Exchange {
    /// Returns an exchange that was begun.
    pub(super) fn begun(request: Box<RawValue>) -> Self {
        Self { request, chunks: Vec::new(), response: None, error: None }
    }

    /// Records how it ended.
    pub(super) fn end_with(&mut self, end: Result<&ChatResponse, &ModelError>) {
        match end {
            Ok(response) => {
                let message = one_line(response.message.json().to_owned());
                // A message's text was parsed from JSON, or written here.
                self.response = message.ok().map(|message| Response {
                    message,
                    usage: response.usage,
                    stop: response.stop.clone(),
                    model: response.model.clone(),
                });
            }
            Err(error) => {
                let milliseconds = |wait: Duration| u64::try_from(wait.as_millis()).ok();
                self.error = Some(Failure {
                    kind: error.kind,
                    message: error.message.clone(),
                    retry_after_ms: error.retry_after.and_then(milliseconds),
                });
            }
        }
    }

    /// Returns the same without secrets, in whatever pieces they came.
    pub(super) fn without(mut self, secrets: &Secrets) -> Result<Self, serde_json::Error> {
        let hide_json =
            |json: &RawValue| RawValue::from_string(secrets.hide_json(json.get()).into());
        self.request = hide_json(&self.request)?;
        let (mut texts, mut calls) = (Vec::new(), BTreeMap::<usize, Vec<&mut String>>::new());
        for chunk in &mut self.chunks {
            match chunk {
                Chunk::Text(text) => texts.push(text),
                Chunk::ToolCall { index, id, name, arguments } => {
                    for text in id.iter_mut().chain(name) {
                        secrets.hide_in_pieces(&mut [text]);
                    }
                    calls.entry(*index).or_default().push(arguments);
                }
            }
        }
        for pieces in calls.values_mut().chain([&mut texts]) {
            secrets.hide_in_pieces(pieces);
            if self.response.is_none() {
                secrets.hide_begun(pieces);
            }
        }
        if let Some(Response { message, model, stop, .. }) = &mut self.response {
            *message = hide_json(message)?;
            secrets.hide_in_pieces(&mut [model]);
            if let StopReason::Other(reason) = stop {
                secrets.hide_in_pieces(&mut [reason]);
            }
        }
        if let Some(Failure { message, .. }) = &mut self.error {
            secrets.hide_in_pieces(&mut [message]);
        }
        Ok(self)
    }

    /// Returns how it ended.
    pub(super) fn end(&self) -> Result<ChatResponse, ModelError> {
        if let Some(failure) = &self.error {
            let retry_after = failure.retry_after_ms.map(Duration::from_millis);
            return Err(ModelError {
                retry_after,
                ..ModelError::new(failure.kind, failure.message.clone())
            });
        }
        let wrong = |message: String| ModelError::new(ModelErrorKind::Response, message);
        let Some(Response { message, usage, stop, model }) = &self.response else {
            return Err(wrong(
                "nobody waited for the end of this answer when it was recorded".into(),
            ));
        };
        let message = Message::from_json(message.get())
            .map_err(|error| wrong(format!("a recorded answer is not a message: {error}")))?;
        Ok(ChatResponse { message, usage: *usage, stop: stop.clone(), model: model.clone() })
    }
}

impl Chunk {
    /// Returns `None` for the last piece, which is the end.
    pub(super) fn of(chunk: &ChatChunk) -> Option<Self> {
        match chunk.clone() {
            ChatChunk::Text(text) => Some(Self::Text(text)),
            ChatChunk::ToolCall { index, id, name, arguments } => {
                Some(Self::ToolCall { index, id, name, arguments })
            }
            ChatChunk::Again | ChatChunk::Done(_) => None,
        }
    }
}

impl From<Chunk> for ChatChunk {
    fn from(chunk: Chunk) -> Self {
        match chunk {
            Chunk::Text(text) => Self::Text(text),
            Chunk::ToolCall { index, id, name, arguments } => {
                Self::ToolCall { index, id, name, arguments }
            }
        }
    }
}

/// Parses a kind of error by its name.
mod kind {
    use super::ModelErrorKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        kind: &ModelErrorKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<ModelErrorKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        ModelErrorKind::from_name(&name).ok_or_else(|| {
            let names = ModelErrorKind::ALL.map(ModelErrorKind::as_str).join(", ");
            D::Error::custom(format!("{name:?} is no kind of error; these are: {names}"))
        })
    }
}

/// Returns JSON on one line: line breaks occur only between its parts.
fn one_line(json: String) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(if json.contains(['\n', '\r']) {
        json.replace(['\n', '\r'], " ")
    } else {
        json
    })
}

/// Returns a request in its normal form: what decides the answer, and nothing else. Its session is not
/// part of it, nor is the order in which its tools came, nor what only a recording knows about its
/// messages.
pub(super) fn request_json(request: &ChatRequest) -> Result<Box<RawValue>, serde_json::Error> {
    let mut json = String::from("{\"messages\":[");
    for (at, message) in request.messages.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        let message = message.api_json();
        json.push_str(&canonical_json(&message).unwrap_or(message));
    }
    json.push_str("],\"tools\":[");
    for (at, tool) in canonical_tools(&request.tools).iter().enumerate() {
        json.push_str(if at > 0 { ",{\"name\":" } else { "{\"name\":" });
        push_string(&tool.name, &mut json);
        json.push_str(",\"description\":");
        push_string(&tool.description, &mut json);
        json.push_str(",\"parameters\":");
        match canonical_schema(&tool.parameters) {
            Ok(schema) => json.push_str(&schema),
            Err(_) => push_string(&tool.parameters, &mut json),
        }
        json.push('}');
    }
    json.push_str("],\"tool_choice\":");
    json.push_str(&choice_json(&request.tool_choice));
    let Sampling { temperature, max_tokens, stop, seed, .. } = &request.sampling;
    let rest = json!({
        "temperature": temperature, "max_tokens": max_tokens, "stop": stop, "seed": seed,
    });
    json.push_str(&format!(
        ",\"sampling\":{rest},\"cache_marks\":{:?},\"volatile\":{}}}",
        request.cache_marks, request.volatile
    ));
    one_line(json)
}

fn choice_json(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "\"auto\"".to_owned(),
        ToolChoice::Required => "\"required\"".to_owned(),
        ToolChoice::ReplyOnly => "\"reply_only\"".to_owned(),
        ToolChoice::Allowed(AllowedTools { names, required, preferred }) => {
            json!({"allowed": names, "required": required, "preferred": preferred}).to_string()
        }
    }
}
