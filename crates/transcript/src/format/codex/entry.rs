//! Reads the records of a log, of any generation, as entries of one kind.

use crate::format::lines::Lines;
use crate::object::Object;
use crate::record::Record;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One record: a line, or an item of a log that is one JSON value.
pub(super) struct Entry<'r> {
    pub(super) line: u64,
    /// The exact text of the record.
    pub(super) raw: &'r str,
    pub(super) kind: Kind<'r>,
    /// The fields of the record itself, without any wrapper.
    pub(super) payload: Object<'r>,
    /// When it was written.
    pub(super) timestamp: Option<&'r RawValue>,
    /// The record around its payload, if it has one.
    pub(super) wrapper: Option<Object<'r>>,
}

/// The kind of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'r> {
    /// The identity of the thread.
    Meta,
    /// An item that the model saw or said.
    Item(Cow<'r, str>),
    /// An event for the user interface.
    Event(Cow<'r, str>),
    /// The model and the settings for what follows.
    TurnContext,
    /// The prompt was replaced by a shorter one.
    Compacted,
    /// The cost of one response.
    Usage,
    /// Anything else, by its type.
    Other(Cow<'r, str>),
}

/// Types of records that hold a payload.
pub(super) fn is_wrapper(kind: &str) -> bool {
    matches!(
        kind,
        "session_meta"
            | "response_item"
            | "event_msg"
            | "turn_context"
            | "compacted"
            | "world_state"
            | "token_usage_record"
    )
}

/// Returns whether an object states the identity of a log of bare items: its first line.
pub(super) fn is_header(object: &Object<'_>) -> bool {
    object.text("id").is_some()
        && object.text("timestamp").is_some()
        && object.has("instructions")
        && !object.has("type")
}

/// Returns whether an object is a log that is one JSON value.
pub(super) fn is_whole(object: &Object<'_>) -> bool {
    object.object("session").is_some_and(|session| session.has("id"))
        && object.get("items").is_some_and(|items| items.get().starts_with('['))
}

/// Returns all entries, in the order of the file.
pub(super) fn entries(records: &[Record]) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(records.len());
    for record in records {
        match record.object() {
            Some(object) if is_whole(&object) => push_whole(record, &object, &mut entries),
            Some(object) => entries.push(Entry::of(record.line, &record.text, object)),
            None => entries.push(Entry {
                line: record.line,
                raw: &record.text,
                kind: Kind::Other(Cow::Borrowed("no object")),
                payload: Object(Vec::new()),
                timestamp: None,
                wrapper: None,
            }),
        }
    }
    entries
}

/// Returns the entries of a log that is one JSON value: its session, then its items.
fn push_whole<'r>(record: &'r Record, whole: &Object<'r>, entries: &mut Vec<Entry<'r>>) {
    let mut lines = Lines::new(&record.text, record.line);
    for (key, value) in &whole.0 {
        match key.as_ref() {
            "items" => {
                for item in Object::array_of(value).unwrap_or_default() {
                    let line = lines.of(item.get());
                    let object = Object::of(item).unwrap_or(Object(Vec::new()));
                    entries.push(Entry::of(line, item.get(), object));
                }
            }
            "session" => {
                let payload = Object::of(value).unwrap_or(Object(Vec::new()));
                let (line, timestamp) = (lines.of(value.get()), payload.get("timestamp"));
                let (raw, kind, wrapper) = (value.get(), Kind::Meta, None);
                entries.push(Entry { line, raw, kind, payload, timestamp, wrapper });
            }
            _ => {
                let payload = Object::of(value).unwrap_or(Object(Vec::new()));
                let kind = Kind::Other(Cow::Owned(format!("key {key}")));
                let (line, raw) = (lines.of(value.get()), value.get());
                let (timestamp, wrapper) = (None, None);
                entries.push(Entry { line, raw, kind, payload, timestamp, wrapper });
            }
        }
    }
}

impl<'r> Entry<'r> {
    fn of(line: u64, raw: &'r str, object: Object<'r>) -> Self {
        let timestamp = object.get("timestamp");
        let kind = object.text("type");
        if let Some(payload) = object.object("payload")
            && let Some(kind) = kind
        {
            let inner = payload.text("type").unwrap_or(Cow::Borrowed("no type"));
            let kind = match kind.as_ref() {
                "session_meta" => Kind::Meta,
                "response_item" => Kind::Item(inner),
                "event_msg" => Kind::Event(inner),
                "turn_context" => Kind::TurnContext,
                "compacted" => Kind::Compacted,
                "token_usage_record" => Kind::Usage,
                _ => Kind::Other(kind),
            };
            return Self { line, raw, kind, payload, timestamp, wrapper: Some(object) };
        }
        let kind = match kind {
            None if is_header(&object) => Kind::Meta,
            None => match object.text("record_type") {
                Some(record) => Kind::Other(record),
                None => Kind::Other(Cow::Borrowed("no type")),
            },
            // Some writers left the wrapper out.
            Some(kind) => match kind.as_ref() {
                "session_meta" => Kind::Meta,
                "turn_context" => Kind::TurnContext,
                "compacted" => Kind::Compacted,
                "token_usage_record" => Kind::Usage,
                "agent_message" if object.has("message") => Kind::Event(kind),
                "user_message" | "agent_reasoning" | "token_count" | "thread_rolled_back"
                | "task_started" | "turn_started" | "task_complete" | "turn_complete"
                | "turn_aborted" | "item_completed" => Kind::Event(kind),
                _ if is_wrapper(&kind) => Kind::Other(kind),
                _ => Kind::Item(kind),
            },
        };
        Self { line, raw, kind, payload: object, timestamp, wrapper: None }
    }

    /// Returns an item of the Responses API, without a log around it. An item without a type is a message.
    pub(super) fn item(raw: &'r RawValue) -> Option<Self> {
        let payload = Object::of(raw)?;
        let kind = Kind::Item(payload.text("type").unwrap_or(Cow::Borrowed("message")));
        Some(Self { line: 1, raw: raw.get(), kind, payload, timestamp: None, wrapper: None })
    }

    /// Returns the name under which such records are counted.
    pub(super) fn label(&self) -> String {
        match &self.kind {
            Kind::Meta => "session_meta".to_owned(),
            Kind::Item(kind) => format!("response_item/{kind}"),
            Kind::Event(kind) => format!("event_msg/{kind}"),
            Kind::TurnContext => "turn_context".to_owned(),
            Kind::Compacted => "compacted".to_owned(),
            Kind::Usage => "token_usage_record".to_owned(),
            Kind::Other(kind) => kind.clone().into_owned(),
        }
    }

    pub(super) fn is_item(&self, kind: &str) -> bool {
        matches!(&self.kind, Kind::Item(is) if is == kind)
    }

    /// Returns whether a turn begins here.
    pub(super) fn is_turn_start(&self) -> bool {
        matches!(&self.kind, Kind::Event(is) if is == "task_started" || is == "turn_started")
    }

    /// Returns the time, if it is a text.
    pub(super) fn time(&self) -> Option<&'r RawValue> {
        self.timestamp.filter(|time| Object::text_of(time).is_some())
    }
}
