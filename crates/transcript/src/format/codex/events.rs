//! Uses events as the source of messages, for logs in which nothing else contains them.

use super::content::Parts;
use super::entry::{Entry, Kind};
use super::item::is_injected_content;
use super::thread::{Thread, rest_of};
use crate::object::Object;

/// Which events hold what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// None, because there are items that do.
    Items,
    /// One event for each message (`user_message`, `agent_message`, `agent_reasoning`).
    Messages,
    /// One event for each item that is complete (`item_completed`).
    Completed,
}

impl Source {
    pub(super) fn of<'e, 'r: 'e>(mut entries: impl Iterator<Item = &'e Entry<'r>> + Clone) -> Self {
        if entries.clone().any(|entry| entry.is_item("message")) {
            return Self::Items;
        }
        let speaks = |entry: &Entry<'_>| {
            let item = completed(entry);
            let kind = item.and_then(|item| item.text("type"));
            matches!(kind.as_deref(), Some("UserMessage" | "AgentMessage"))
        };
        if entries.any(speaks) { Self::Completed } else { Self::Messages }
    }

    /// Takes an event. Returns `false` if it is in no message.
    pub(super) fn read<'r>(self, thread: &mut Thread<'_, 'r>, entry: &Entry<'r>) -> bool {
        let Kind::Event(kind) = &entry.kind else { return false };
        let (kind, item) = match self {
            Self::Items => return false,
            Self::Messages => (kind.clone(), None),
            Self::Completed => match completed(entry) {
                Some(item) => (item.text("type").unwrap_or_default(), Some(item)),
                None => return false,
            },
        };
        let from = item.as_ref().unwrap_or(&entry.payload);
        let (is_user, key) = match (kind.as_ref(), self) {
            ("user_message", Self::Messages) => (true, "message"),
            ("agent_message", Self::Messages) => (false, "message"),
            ("UserMessage", Self::Completed) => (true, "content"),
            ("AgentMessage", Self::Completed) => (false, "content"),
            ("agent_reasoning", Self::Messages) | ("Reasoning", Self::Completed) => {
                return reason(thread, entry, from);
            }
            _ => return false,
        };
        let Some(content) = from.get(key) else { return false };
        let kept = rest_of(entry, from, &[key]);
        if is_user {
            let mut parts = Parts::default();
            parts.push_all(content);
            thread.say("user", entry, parts, is_injected_content(content), Some(kept));
        } else {
            let unit = thread.unit(entry);
            unit.say(content);
            unit.keep_item(entry, kept);
        }
        true
    }
}

/// Returns the item that an event reports as complete.
fn completed<'r>(entry: &Entry<'r>) -> Option<Object<'r>> {
    match &entry.kind {
        Kind::Event(kind) if kind == "item_completed" => entry.payload.object("item"),
        _ => None,
    }
}

fn reason<'r>(thread: &mut Thread<'_, 'r>, entry: &Entry<'r>, from: &Object<'r>) -> bool {
    let (key, texts) = match from.get("text") {
        Some(text) => ("text", vec![text]),
        None => ("summary_text", from.array("summary_text").unwrap_or_default()),
    };
    if texts.is_empty() {
        return false;
    }
    let summary: Vec<_> = texts
        .iter()
        .map(|text| format!("{{\"type\":\"summary_text\",\"text\":{}}}", text.get()))
        .collect();
    let kept = rest_of(entry, from, &[key]);
    let unit = thread.unit(entry);
    unit.reason(&format!("{{\"type\":\"reasoning\",\"summary\":[{}]}}", summary.join(",")));
    unit.keep_item(entry, kept);
    true
}
