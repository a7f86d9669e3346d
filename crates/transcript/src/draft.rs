//! A message that is being converted from another format to ours.

use crate::format::Format;
use crate::object::{push_one_line, push_string};

/// A message that is built piece by piece. Values are taken as exact JSON, except that line breaks
/// between them become spaces. Data for which a message has no place is kept under its key
/// `source`.
pub(crate) struct Draft {
    role: String,
    line: u64,
    content: Body,
    calls: Vec<String>,
    fields: Vec<(String, String)>,
    source: Vec<(String, String)>,
    further: Vec<String>,
}

/// Values larger than this are kept with the conversation and not in its messages, so that messages
/// stay about as large as what they say.
const LARGE: usize = 4096;

/// The keys that the conversion back to Anthropic's API needs in the message.
const NEEDED: [&str; 3] = ["calls_at", "calls", "block"];

enum Body {
    None,
    Whole(String),
    Parts(Vec<String>),
}

impl Draft {
    /// Creates a message of this role, found on this line of its source.
    pub(crate) fn new(role: &str, line: u64) -> Self {
        Self {
            role: role.to_owned(),
            line,
            content: Body::None,
            calls: Vec::new(),
            fields: Vec::new(),
            source: Vec::new(),
            further: Vec::new(),
        }
    }

    /// Returns the line that it was found on.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Sets the content: a JSON string, a list of parts, or null.
    pub(crate) fn content(&mut self, json: &str) {
        self.content = if json.trim() == "null" { Body::None } else { Body::Whole(line_of(json)) };
    }

    /// Sets the content to a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.content = Body::Whole(quoted(text));
    }

    /// Adds a part, a JSON object, to a content that is a list of parts.
    pub(crate) fn part(&mut self, json: &str) {
        let part = line_of(json);
        match &mut self.content {
            Body::Parts(parts) => parts.push(part),
            content => *content = Body::Parts(vec![part]),
        }
    }

    /// Adds a call. Arguments that are a JSON string are taken as they are; anything else becomes
    /// the text of its JSON.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let mut call = String::from("{\"id\":");
        push_string(id, &mut call);
        call.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        push_string(name, &mut call);
        call.push_str(",\"arguments\":");
        if arguments.starts_with('"') {
            call.push_str(arguments);
        } else {
            push_string(arguments, &mut call);
        }
        call.push_str("}}");
        self.calls.push(call);
    }

    /// Sets the call that this message answers.
    pub(crate) fn answers(&mut self, id: &str) {
        self.field("tool_call_id", &quoted(id));
    }

    /// Sets another key of the message (`timestamp`, `name`, `is_error`, `thinking_blocks`, ...).
    pub(crate) fn field(&mut self, key: &str, json: &str) {
        self.fields.push((key.to_owned(), line_of(json)));
    }

    /// Keeps a value that the message has no place for.
    pub(crate) fn keep(&mut self, key: &str, json: &str) {
        self.source.push((key.to_owned(), line_of(json)));
    }

    /// Keeps a text that the message has no place for.
    pub(crate) fn keep_text(&mut self, key: &str, text: &str) {
        self.source.push((key.to_owned(), quoted(text)));
    }

    /// Records what a further line of the source says about this message: members of an object, with
    /// a comma before each. The log may get more of them while the message stays as it is, so they
    /// are kept with the conversation.
    pub(crate) fn further_line(&mut self, line: u64, members: &str) {
        let of = self.line;
        self.further.push(line_of(&format!("{{\"line\":{line},\"of\":{of}{members}}}")));
    }

    /// Takes out what further lines say.
    pub(crate) fn take_further(&mut self) -> Vec<String> {
        std::mem::take(&mut self.further)
    }

    /// Takes out the values that are too large for the message, by key. The message names the keys.
    pub(crate) fn take_large(&mut self) -> Vec<(String, String)> {
        let source = std::mem::take(&mut self.source).into_iter();
        let is_large =
            |(key, json): &(String, String)| json.len() > LARGE && !NEEDED.contains(&key.as_str());
        let (large, small): (Vec<_>, Vec<_>) = source.partition(is_large);
        self.source = small;
        if !large.is_empty() {
            let keys: Vec<_> = large.iter().map(|(key, _)| quoted(key)).collect();
            self.keep("in_records", &list_of(&keys));
        }
        large
    }

    /// Returns whether it says nothing and calls nothing so far.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.content, Body::None) && self.calls.is_empty()
    }

    /// Returns the message's JSON, with where it came from.
    pub(crate) fn to_json(&self, format: Format) -> String {
        let mut out = String::from("{\"role\":");
        push_string(&self.role, &mut out);
        out.push_str(",\"content\":");
        match &self.content {
            // A message that calls nothing has a text, even if it is empty.
            Body::None if self.calls.is_empty() => out.push_str("\"\""),
            Body::None => out.push_str("null"),
            Body::Whole(json) => out.push_str(json),
            Body::Parts(parts) => out.push_str(&list_of(parts)),
        }
        if !self.calls.is_empty() {
            out.push_str(",\"tool_calls\":");
            out.push_str(&list_of(&self.calls));
        }
        for (key, value) in &self.fields {
            push_member(key, value, &mut out);
        }
        out.push_str(",\"source\":{\"format\":");
        push_string(format.name(), &mut out);
        push_member("line", &self.line.to_string(), &mut out);
        for (key, value) in &self.source {
            push_member(key, value, &mut out);
        }
        out.push_str("}}");
        out
    }
}

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(text, &mut out);
    out
}

/// Returns a JSON text on one line.
pub(crate) fn line_of(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    push_one_line(json, &mut out);
    out
}

/// Returns a list of JSON values.
pub(crate) fn list_of(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// Writes a further member of an object that already has one.
pub(crate) fn push_member(key: &str, json: &str, out: &mut String) {
    out.push(',');
    push_string(key, out);
    out.push(':');
    out.push_str(json);
}
