//! Findings: what is odd about a conversation.

use crate::Envelope;
use crate::object::Object;
use crate::record::object_of;
use foldback_core::{Message, Pairing, PairingTracker, Timestamp};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;

/// Something odd in a conversation. It was read and is kept as it is; the text of the finding says
/// how a view of the conversation handles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The message, counted from 0; `None` for the conversation as a whole.
    pub at: Option<usize>,
    /// What is odd.
    pub kind: FindingKind,
}

/// What is odd about a message, or about a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The conversation has no message.
    NoMessage,
    /// The last line of the session log was half-written when it was read.
    Unfinished {
        /// The line, counted from 1.
        line: u64,
    },
    /// The source holds only a part of the conversation.
    Partial,
    /// A call has the id of an earlier call.
    DuplicateCall {
        /// The id.
        id: String,
    },
    /// A call has no result before the conversation continues or ends.
    UnansweredCall {
        /// The id.
        id: String,
    },
    /// A result answers no open call.
    OrphanResult {
        /// The id that it names, if it names one.
        id: Option<String>,
    },
    /// A result was too large for the log, and is in another file.
    Spilled {
        /// The file, as the log names it.
        file: String,
    },
    /// A message says nothing and calls nothing.
    Empty,
    /// A message carries an earlier time than one before it.
    TimeRunsBack {
        /// The latest time before it.
        after: Timestamp,
        /// Its own time.
        at: Timestamp,
    },
    /// A key of the message, or of the conversation, appears more than once.
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// The `timestamp` is not a time.
    UnreadableTime {
        /// Its beginning, as JSON.
        found: String,
    },
    /// A text holds half a surrogate pair: `\ud83d` without its other half.
    HalfSurrogate,
    /// The arguments of a call are not a string.
    ArgumentsNoText {
        /// The call's id.
        id: String,
        /// Whether there are any arguments.
        missing: bool,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "message {at}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMessage => {
                f.write_str("the conversation has no message; nothing is recorded or shown")
            }
            Self::Unfinished { line } => write!(
                f,
                "line {line} is still being written; it is kept beside the messages, and what comes \
                 before it was read"
            ),
            Self::Partial => {
                f.write_str("this file has only a part of the conversation; the rest is not read")
            }
            Self::DuplicateCall { id } => write!(
                f,
                "the call {id:?} has the id of an earlier call; each result goes to the call \
                 directly before it, and views give the call its own id"
            ),
            Self::UnansweredCall { id } => write!(
                f,
                "the call {id:?} is never answered; views answer it with a note that there is no \
                 result"
            ),
            Self::OrphanResult { id: Some(id) } => write!(
                f,
                "this is the result of the call {id:?}, which is not open here; views show it as \
                 a user's text that says so"
            ),
            Self::OrphanResult { id: None } => f.write_str(
                "this tool message names no call; views show it as a user's text that says so",
            ),
            Self::Spilled { file } => write!(
                f,
                "the log holds only the beginning of this result; all of it is in {file:?}, \
                 which was not read"
            ),
            Self::Empty => f.write_str("the message is empty; views leave it out"),
            Self::TimeRunsBack { after, at } => write!(
                f,
                "its time {at} is earlier than {after}, the time of a message before it; the order \
                 stays that of the file"
            ),
            Self::RepeatedKey { key } => write!(
                f,
                "the key {key:?} appears more than once; the last value counts, and views show \
                 only that one"
            ),
            Self::UnreadableTime { found } => write!(
                f,
                "its timestamp {found} is not a readable time; views show it as a message \
                 without one"
            ),
            Self::HalfSurrogate => f.write_str(
                "one of its texts holds half a surrogate pair, which is read as U+FFFD; views show that \
                 wherever they rewrite the text",
            ),
            Self::ArgumentsNoText { id, missing: false } => write!(
                f,
                "the arguments of the call {id:?} are not a string; views send them as the text of \
                 their JSON"
            ),
            Self::ArgumentsNoText { id, missing: true } => {
                write!(f, "the call {id:?} has no arguments; views send an empty object, as text")
            }
        }
    }
}

pub(crate) fn check(messages: &[Message], envelope: &Envelope) -> Vec<Finding> {
    let fields = envelope.fields();
    let keys = repeated(fields.iter().map(|(key, _)| key.as_str()));
    let mut found: Vec<_> =
        keys.chain(of_source(envelope)).map(|kind| Finding { at: None, kind }).collect();
    if messages.is_empty() {
        found.push(Finding { at: None, kind: FindingKind::NoMessage });
        return found;
    }
    let mut tracker = PairingTracker::default();
    let mut seen = HashSet::new();
    let mut caller = None;
    let mut latest: Option<Timestamp> = None;
    for (at, message) in messages.iter().enumerate() {
        let mut find = |kind| found.push(Finding { at: Some(at), kind });
        match tracker.observe(message) {
            Pairing::Orphan => find(FindingKind::OrphanResult {
                id: message.tool_call_id().map(|id| id.as_str().to_owned()),
            }),
            Pairing::Answers => {}
            Pairing::Free { abandoned } | Pairing::Calls { abandoned } => {
                found.extend(abandoned.iter().map(|id| unanswered(caller, id.as_str())));
            }
        }
        let mut find = |kind| found.push(Finding { at: Some(at), kind });
        if !message.tool_calls().is_empty() {
            caller = Some(at);
        }
        for call in message.tool_calls() {
            if !seen.insert(call.id.as_str()) {
                find(FindingKind::DuplicateCall { id: call.id.as_str().to_owned() });
            }
        }
        let may_be_silent = !message.tool_calls().is_empty() || message.tool_call_id().is_some();
        if message.content().is_blank() && !may_be_silent {
            find(FindingKind::Empty);
        }
        if let Some(time) = message.timestamp() {
            if let Some(after) = latest.filter(|latest| time < *latest) {
                find(FindingKind::TimeRunsBack { after, at: time });
            }
            latest = latest.max(Some(time));
        }
        written(message).into_iter().for_each(find);
    }
    found.extend(tracker.open().iter().map(|id| unanswered(caller, id.as_str())));
    found.sort_by_key(|finding| finding.at);
    found
}

/// Returns the findings that a converted conversation records about its source.
fn of_source(envelope: &Envelope) -> Vec<FindingKind> {
    let source = envelope.get("source");
    let Some(source) = source.as_deref().and_then(object_of) else { return Vec::new() };
    let line = source.object("unfinished").and_then(|line| line.get("line")?.get().parse().ok());
    let unfinished = line.map(|line| FindingKind::Unfinished { line });
    let is_partial = source.get("partial").is_some_and(|value| value.get() == "true");
    unfinished.into_iter().chain(is_partial.then_some(FindingKind::Partial)).collect()
}

fn unanswered(caller: Option<usize>, id: &str) -> Finding {
    Finding { at: caller, kind: FindingKind::UnansweredCall { id: id.to_owned() } }
}

/// Returns what is odd about how a message is written.
fn written(message: &Message) -> Vec<FindingKind> {
    // Anything that was read as a message is an object.
    let Ok(object) = serde_json::from_str::<Object<'_>>(message.json()) else { return Vec::new() };
    let mut found: Vec<_> = repeated(object.0.iter().map(|(key, _)| key.as_ref())).collect();
    let time = object.get("timestamp").map(RawValue::get).filter(|time| *time != "null");
    if let (Some(time), None) = (time, message.timestamp()) {
        let found_time = time.chars().take(60).collect();
        found.push(FindingKind::UnreadableTime { found: found_time });
    }
    let spilled = object.object("source").and_then(|source| source.text("spilled"));
    found.extend(spilled.map(|file| FindingKind::Spilled { file: file.into_owned() }));
    // What is kept of the source is not text of the message.
    let mut said = object.0.iter().filter(|(key, _)| key != "source");
    if said.any(|(_, value)| has_half_surrogate(value.get())) {
        found.push(FindingKind::HalfSurrogate);
    }
    if !message.has_usual_calls() {
        let calls = object.array("tool_calls").unwrap_or_default();
        for (call, value) in message.tool_calls().iter().zip(calls) {
            let arguments = arguments(value);
            if !arguments.is_some_and(|value| value.get().starts_with('"')) {
                let (id, missing) = (call.id.as_str().to_owned(), arguments.is_none());
                found.push(FindingKind::ArgumentsNoText { id, missing });
            }
        }
    }
    found
}

/// Returns the keys that appear more than once, each once.
fn repeated<'a>(keys: impl Iterator<Item = &'a str>) -> impl Iterator<Item = FindingKind> {
    let (mut seen, mut repeated) = (HashSet::new(), BTreeSet::new());
    for key in keys {
        if !seen.insert(key) {
            repeated.insert(key.to_owned());
        }
    }
    repeated.into_iter().map(|key| FindingKind::RepeatedKey { key })
}

/// Returns the arguments of a call, wherever its type has them.
fn arguments(call: &RawValue) -> Option<&RawValue> {
    let call = Object::of(call)?;
    let kind = call.text("type").unwrap_or(Cow::Borrowed("function"));
    let body = call.object("function").or_else(|| call.object(&kind))?;
    body.get("arguments").or_else(|| body.get("input"))
}

/// Returns whether a valid JSON text escapes one half of a surrogate pair without the other.
/// Backslashes occur only in its strings.
fn has_half_surrogate(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, escape)) = rest.split_once('\\') {
        // An escape takes one character, except for the four digits of a code unit.
        rest = escape.get(1..).unwrap_or_default();
        rest = match (unit(escape), rest.get(4..).and_then(|next| unit(next.strip_prefix('\\')?))) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => rest.get(10..).unwrap_or_default(),
            (Some(0xD800..=0xDFFF), _) => return true,
            _ => rest,
        };
    }
    false
}

/// Returns the code unit of an escape `uXXXX`.
fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    /// Logs state that they are partial as JSON `true`.
    #[test]
    fn a_partial_log_is_a_finding() {
        #[track_caller]
        fn check(source: &str, expected: &[FindingKind]) {
            let after = format!("],\"source\":{source}}}");
            let envelope = Envelope::converted(Format::CodexLog, Some("a"), after);
            assert_eq!(of_source(&envelope), expected, "{source}");
        }
        check(r#"{"partial":true}"#, &[FindingKind::Partial]);
        check(
            r#"{"unfinished":{"line":7},"partial":true}"#,
            &[FindingKind::Unfinished { line: 7 }, FindingKind::Partial],
        );
        for source in [r#"{"partial":false}"#, r#"{"partial":null}"#, r#"{"partial":"true"}"#, "{}"]
        {
            check(source, &[]);
        }
    }
}
