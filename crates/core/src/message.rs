//! One message of a conversation, in the shape of chat-completions.

mod beside;
mod error;
mod outcome;
mod read;
mod write;

pub use error::MessageError;
pub use outcome::CallOutcome;

use crate::{Content, OBSERVATIONS, Object, Role, Timestamp, ToolCall, ToolCallId};
use beside::Beside;
use read::{opt_string, read_calls, read_content, string};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};
use write::push_string;

/// One message: its exact JSON text, and beside it the parsed content.
///
/// The text is never changed: number formats, escapes and the order of keys are kept, and so are
/// unknown keys. Two messages are equal when their texts are.
#[derive(Clone)]
pub struct Message {
    json: Box<str>,
    role: Role,
    content: Content,
    tool_calls: Vec<ToolCall>,
    /// Whether the text writes its calls as chat APIs do.
    has_usual_calls: bool,
    tool_call_id: Option<ToolCallId>,
    name: Option<String>,
    id: Option<String>,
    timestamp: Option<Timestamp>,
    beside: Beside,
}

impl Message {
    /// Reads one message in the shape of chat-completions, keeping `json` as it is.
    ///
    /// # Errors
    /// When `json` is not one JSON object, has no `role`, or a known key has a value of another
    /// shape than chat-completions gives it.
    pub fn from_json(json: &str) -> Result<Self, MessageError> {
        let json = json.trim();
        let fields = serde_json::from_str::<Object<'_>>(json)?.distinct();
        let mut role = None;
        let mut content = Content::Empty;
        let (mut tool_calls, mut has_usual_calls) = (Vec::new(), true);
        let (mut tool_call_id, mut name, mut id, mut timestamp) = (None, None, None, None);
        let mut beside = Beside::default();
        for (key, value) in &fields {
            match key.as_ref() {
                "role" => role = Some(Role::from(string("role", value)?.as_ref())),
                "content" => content = read_content(value)?,
                "tool_calls" if value.get() != "null" => {
                    (tool_calls, has_usual_calls) = read_calls(value)?;
                }
                "tool_call_id" if value.get() != "null" => {
                    tool_call_id = Some(ToolCallId::new(&string("tool_call_id", value)?));
                }
                "name" => name = opt_string(value),
                "id" => id = opt_string(value),
                "timestamp" => timestamp = opt_string(value).and_then(|t| Timestamp::parse(&t)),
                key => beside.take(key, value.get()),
            }
        }
        let role = role.ok_or(MessageError::Missing { key: "role" })?;
        let json = json.into();
        Ok(Self {
            json,
            role,
            content,
            tool_calls,
            has_usual_calls,
            tool_call_id,
            name,
            id,
            timestamp,
            beside,
        })
    }

    /// Creates a user's message.
    #[must_use]
    pub fn user(text: &str) -> Self {
        Self::compose(Role::User, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// Creates a model's message.
    #[must_use]
    pub fn assistant(text: &str) -> Self {
        Self::compose(Role::Assistant, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// Creates a standing instruction.
    #[must_use]
    pub fn system(text: &str) -> Self {
        Self::compose(Role::System, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// Creates a model's message that calls tools; `text` may be empty.
    #[must_use]
    pub fn calls(text: &str, calls: Vec<ToolCall>) -> Self {
        let content = if text.is_empty() { Content::Empty } else { Content::Text(text.to_owned()) };
        Self::compose(Role::Assistant, content, calls, None)
    }

    /// Creates the result of a call.
    #[must_use]
    pub fn tool_result(call: &ToolCallId, text: &str) -> Self {
        Self::compose(Role::Tool, Content::Text(text.to_owned()), Vec::new(), Some(call.clone()))
    }

    /// Creates a message made of its parts.
    #[must_use]
    pub fn compose(
        role: Role,
        content: Content,
        tool_calls: Vec<ToolCall>,
        tool_call_id: Option<ToolCallId>,
    ) -> Self {
        let mut message = Self {
            json: "".into(),
            role,
            content,
            tool_calls,
            has_usual_calls: true,
            tool_call_id,
            name: None,
            id: None,
            timestamp: None,
            beside: Beside::default(),
        };
        message.json = message.write_json(None, &[]).into();
        message
    }

    /// Creates a message in which a loop reports something to its model on the user's side, though
    /// no person says it.
    ///
    /// ```
    /// use foldback_core::{Message, OBSERVATIONS, Role};
    ///
    /// let told = Message::observation("小雨");
    /// assert_eq!((told.role(), told.name()), (&Role::User, Some(OBSERVATIONS)));
    /// assert!(told.is_observation());
    /// // A chat API is sent what it would be sent of any user.
    /// assert_eq!(told.api_json(), Message::user("小雨").api_json());
    /// ```
    #[must_use]
    pub fn observation(text: &str) -> Self {
        let mut message = Self::user(text).with_field("name", &format!("\"{OBSERVATIONS}\""));
        message.name = Some(OBSERVATIONS.to_owned());
        message
    }

    /// Returns whether a [loop](Self::observation) wrote it.
    #[must_use]
    pub fn is_observation(&self) -> bool {
        self.role == Role::User && self.name() == Some(OBSERVATIONS)
    }

    /// Returns the same message, said at `at`.
    #[must_use]
    pub fn at(self, at: Timestamp) -> Self {
        let value = format!("\"{}\"", at.to_rfc3339());
        let mut message = self.with_field("timestamp", &value);
        message.timestamp = Some(at);
        message
    }

    /// Returns the same message with another content and other calls (a light stand-in of itself).
    /// Every other key keeps its exact value, and so does a content that is the same.
    #[must_use]
    pub fn with_body(&self, content: Content, tool_calls: Vec<ToolCall>) -> Self {
        let same_content = content == self.content;
        let mut raw_content = None;
        let mut extra = Vec::new();
        for (key, value) in self.fields() {
            match key.as_ref() {
                "content" if same_content => raw_content = Some(value.get()),
                "role" | "content" | "tool_calls" => {}
                _ => extra.push((key.into_owned(), value.get().to_owned())),
            }
        }
        let mut message = Self { content, tool_calls, has_usual_calls: true, ..self.clone() };
        message.json = message.write_json(raw_content, &extra).into();
        message
    }

    /// Returns the same message with one more key, whose value is the JSON `value`; a key of that
    /// name is replaced.
    #[must_use]
    fn with_field(self, key: &str, value: &str) -> Self {
        let mut extra: Vec<_> = self
            .fields()
            .into_iter()
            .filter(|(k, _)| !matches!(k.as_ref(), "role" | "content" | "tool_calls") && k != key)
            .map(|(key, value)| (key.into_owned(), value.get().to_owned()))
            .collect();
        extra.push((key.to_owned(), value.to_owned()));
        let json = self.write_json(None, &extra).into();
        Self { json, ..self }
    }

    /// Returns the exact JSON text.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns whether the text writes its calls as chat APIs do: with arguments that are a string.
    /// Some writers give an object, or nothing.
    #[must_use]
    pub fn has_usual_calls(&self) -> bool {
        self.has_usual_calls
    }

    /// Returns the message as a chat API takes it: the exact values, without the keys that only a
    /// recording has (`id`, `timestamp`, the name of [observations](Self::observation), how a call
    /// [went](Self::outcome), and whatever else no API knows). Calls in any other form are
    /// rewritten as chat APIs write them.
    #[must_use]
    pub fn api_json(&self) -> String {
        if !self.has_usual_calls {
            return self.with_body(self.content.clone(), self.tool_calls.clone()).api_json();
        }
        let mut out = String::with_capacity(self.json.len());
        out.push('{');
        for (key, value) in self.fields() {
            if !is_api_key(&key) || (key == "name" && self.is_observation()) {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            push_string(&key, &mut out);
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        out
    }

    /// Returns the speaker's role.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Returns the content.
    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns the content as one text: the text parts joined by newlines.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.content {
            Content::Text(text) => Cow::Borrowed(text),
            content => {
                let mut texts = content.texts();
                match (texts.next(), texts.next()) {
                    (None, _) => Cow::Borrowed(""),
                    (Some(only), None) => Cow::Borrowed(only),
                    (Some(first), Some(second)) => {
                        let mut all = vec![first, second];
                        all.extend(texts);
                        Cow::Owned(all.join("\n"))
                    }
                }
            }
        }
    }

    /// Returns the model's calls of tools.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    /// Returns the call that this message answers.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&ToolCallId> {
        self.tool_call_id.as_ref()
    }

    /// Returns the speaker's name, or the tool's.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the id that the source gave the message.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns when it was said, if the source gives a time that can be read.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Returns how many bytes a chat API is sent beside the content and the calls: the reasoning, a
    /// refusal and a call of the old form. Of several forms of the reasoning the longest counts,
    /// because a provider takes only one.
    #[must_use]
    pub fn beside_bytes(&self) -> usize {
        self.beside.bytes()
    }

    /// Returns the keys and their exact values, in the order of the text; the last value of a
    /// repeated key.
    #[must_use]
    pub fn fields(&self) -> Vec<(Cow<'_, str>, &RawValue)> {
        // The text was read once by `from_json` or written here, so it can be read again.
        serde_json::from_str(&self.json).map(Object::distinct).unwrap_or_default()
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({})", self.json)
    }
}

/// Returns whether chat APIs take this key of a message, or a provider gave it and wants it back.
fn is_api_key(key: &str) -> bool {
    matches!(
        key,
        "role"
            | "content"
            | "name"
            | "tool_calls"
            | "tool_call_id"
            | "function_call"
            | "refusal"
            | "audio"
            | "cache_control"
            | "thinking"
            | "thinking_blocks"
    ) || key.starts_with("reasoning")
}

#[cfg(test)]
mod tests;
