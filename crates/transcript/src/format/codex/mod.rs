//! Reads session logs of Codex, in three generations of the format: one thread per file, or several that follow each
//! other.
//!
//! What the model saw (`response_item`) makes the messages. The stream for the user interface
//! (`event_msg`) repeats it, and is read for turns, usage and rollbacks; what was rolled back is a
//! conversation of its own. Anything that is not a message is kept raw.

mod content;
mod entry;
mod events;
mod item;
mod meta;
mod thread;
mod unit;
mod usage;

use super::{Context, Fit, Format};
use crate::Error;
use crate::conversion::Conversion;
use crate::draft::Draft;
use crate::object::Object;
use crate::record::Record;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Returns whether an object is a line of such a log, or a whole log.
pub(crate) fn fit(object: &Object<'_>, first: bool) -> Fit {
    let is_wrapped = object.text("type").is_some_and(|kind| entry::is_wrapper(&kind))
        && (object.object("payload").is_some() || object.text("timestamp").is_some());
    let is_header = first && entry::is_header(object);
    let is_state = object.text("record_type").as_deref() == Some("state");
    if is_wrapped || is_header || is_state || entry::is_whole(object) { Fit::Yes } else { Fit::No }
}

/// Returns whether a record names the model and the settings for what follows.
pub(crate) fn holds_on(record: &Record) -> bool {
    const KIND: &str = "turn_context";
    // Looking for the name first spares most records a parse.
    record.text.contains(KIND)
        && record.object().is_some_and(|object| object.text("type").as_deref() == Some(KIND))
}

/// Converts items of the Responses API to drafts of our messages.
///
/// # Errors
/// The index of the first one that is not an object.
pub(super) fn drafts(items: &[&RawValue]) -> Result<Vec<Draft>, usize> {
    let entries = items.iter().enumerate().map(|(n, item)| entry::Entry::item(item).ok_or(n));
    Ok(thread::drafts(&entries.collect::<Result<Vec<_>, _>>()?))
}

/// Returns each thread of a log as one conversation, and each part that was rolled back as another.
///
/// # Errors
/// When there is no message at all.
pub(crate) fn read(
    records: &[Record],
    context: Context<'_>,
    _damage: &mut Vec<Error>,
) -> Result<Vec<Conversion>, Error> {
    let entries = entry::entries(records);
    let (mut conversations, mut kept) = (Vec::new(), Vec::new());
    for entries in meta::threads(&entries) {
        conversations.extend(thread::conversations(entries, &mut kept));
    }
    let Some(last) = conversations.last_mut() else {
        let mut seen = BTreeMap::new();
        for (label, _) in kept {
            *seen.entry(label).or_default() += 1;
        }
        return Err(context.no_messages(Format::CodexLog, &seen));
    };
    for (label, entry) in kept {
        last.record(&label, entry.line, entry.raw);
    }
    Ok(conversations)
}
