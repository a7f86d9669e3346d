//! The cost of responses.

use super::entry::{Entry, Kind};
use crate::object::Object;
use serde_json::value::RawValue;

/// Determines which records count a response. Newer logs count each response twice, once as an
/// event and once as a separate record; events are repeated when nothing was used.
pub(super) struct Usage<'r> {
    by_record: bool,
    total: Option<&'r RawValue>,
}

impl<'r> Usage<'r> {
    pub(super) fn of<'e>(mut entries: impl Iterator<Item = &'e Entry<'r>>) -> Self
    where
        'r: 'e,
    {
        Self { by_record: entries.any(|entry| entry.kind == Kind::Usage), total: None }
    }

    /// Returns the cost of the response before this record, if the record is the first to state it.
    pub(super) fn read(&mut self, entry: &Entry<'r>) -> Option<&'r RawValue> {
        match &entry.kind {
            Kind::Usage => entry.payload.get("usage"),
            Kind::Event(kind) if kind == "token_count" && !self.by_record => {
                let info = entry.payload.object("info")?;
                let total = info.get("total_token_usage");
                let same = total.map(RawValue::get) == self.total.map(RawValue::get);
                if total.is_some() && same {
                    return None;
                }
                self.total = total;
                info.get("last_token_usage")
            }
            _ => None,
        }
    }
}

/// Returns the input and output tokens; the input includes what was read from a cache.
pub(super) fn tokens(usage: &RawValue) -> [u64; 2] {
    let usage = Object::of(usage).unwrap_or(Object(Vec::new()));
    ["input_tokens", "output_tokens"]
        .map(|key| usage.get(key).and_then(|n| n.get().parse().ok()).unwrap_or(0))
}
