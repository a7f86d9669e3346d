//! One message of a conversation, in the shape of chat-completions.

mod error;
mod outcome;
mod read;
mod write;

pub use error::MessageError;
pub use outcome::CallOutcome;

use crate::{Content, OBSERVATIONS, Object, Role, Timestamp, ToolCall, ToolCallId};
use read::{opt_string, read_calls, read_content, string};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};
use write::push_string;

/// One message: the exact JSON text it came as, and beside it what the text says.
///
/// The text is never changed: not its number forms, escapes or order of keys, and no key that is
/// unknown here is lost. Two messages are equal when their texts are.
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
                _ => {}
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
        })
    }

    /// A user's message.
    #[must_use]
    pub fn user(text: &str) -> Self {
        Self::compose(Role::User, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// A model's message.
    #[must_use]
    pub fn assistant(text: &str) -> Self {
        Self::compose(Role::Assistant, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// A standing instruction.
    #[must_use]
    pub fn system(text: &str) -> Self {
        Self::compose(Role::System, Content::Text(text.to_owned()), Vec::new(), None)
    }

    /// A model's message that calls tools; `text` may be empty.
    #[must_use]
    pub fn calls(text: &str, calls: Vec<ToolCall>) -> Self {
        let content = if text.is_empty() { Content::Empty } else { Content::Text(text.to_owned()) };
        Self::compose(Role::Assistant, content, calls, None)
    }

    /// The result of a call.
    #[must_use]
    pub fn tool_result(call: &ToolCallId, text: &str) -> Self {
        Self::compose(Role::Tool, Content::Text(text.to_owned()), Vec::new(), Some(call.clone()))
    }

    /// A message made of its parts.
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
        };
        message.json = message.write_json(None, &[]).into();
        message
    }

    /// What a loop tells its model on the user's side, without a person who says it.
    ///
    /// ```
    /// use foldback_core::{Message, OBSERVATIONS, Role};
    ///
    /// let told = Message::observation("小雨");
    /// assert_eq!((told.role(), told.name()), (&Role::User, Some(OBSERVATIONS)));
    /// assert!(told.is_observation());
    /// // Chat APIs are told what they would be of any user.
    /// assert_eq!(told.api_json(), Message::user("小雨").api_json());
    /// ```
    #[must_use]
    pub fn observation(text: &str) -> Self {
        let mut message = Self::user(text).with_field("name", &format!("\"{OBSERVATIONS}\""));
        message.name = Some(OBSERVATIONS.to_owned());
        message
    }

    /// Whether it is what a [loop](Self::observation) tells.
    #[must_use]
    pub fn is_observation(&self) -> bool {
        self.role == Role::User && self.name() == Some(OBSERVATIONS)
    }

    /// The same message, said at `at`.
    #[must_use]
    pub fn at(self, at: Timestamp) -> Self {
        let value = format!("\"{}\"", at.to_rfc3339());
        let mut message = self.with_field("timestamp", &value);
        message.timestamp = Some(at);
        message
    }

    /// The same message with another content and other calls (a light stand-in of itself). Every
    /// other key keeps its exact value, and so does a content that is the same.
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

    /// The same message with one more key, whose value is the JSON `value`; a key of that name
    /// that is there is replaced.
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

    /// The exact JSON text.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Whether the text writes its calls as chat APIs do: with arguments that are a string. Some
    /// writers give an object, or nothing.
    #[must_use]
    pub fn has_usual_calls(&self) -> bool {
        self.has_usual_calls
    }

    /// The message as a chat API takes it: the exact values, without the keys that only a
    /// recording has (`id`, `timestamp`, the name of [observations](Self::observation), how a call
    /// [went](Self::outcome), and whatever else no API knows). Calls that are not written
    /// as chat APIs do are written so.
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

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// What is said.
    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// What is said, as one text: the text parts joined by newlines.
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

    /// The tools that the model asks for.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    /// The call that this message answers.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&ToolCallId> {
        self.tool_call_id.as_ref()
    }

    /// The speaker's name, or the tool's.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The id that the source gave to the message.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// When it was said, where the source tells and it can be read.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// The keys and their exact values, in the order of the text; of a key that stands twice, the
    /// last.
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

/// Keys of a message that chat APIs take, or that a provider gave and wants back.
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
