//! Session logs of Claude Code: a tree of lines, one block of content on most of them.
//!
//! The active thread is one conversation, each branch that was left (an edited prompt, a rewind) and
//! each side chain (a sub-agent) is one of its own. What is no message is kept raw.

mod caller;
mod line;
mod message;
mod response;
mod session;
mod tree;

use super::{Context, Fit, Format};
use crate::object::Object;
use crate::record::Record;
use crate::{Conversation, Error};
use line::Line;
use session::Session;
use std::collections::BTreeMap;

/// Whether an object is a line of such a log.
pub(crate) fn fit(object: &Object<'_>, _first: bool) -> Fit {
    let Some(kind) = object.text("type") else { return Fit::No };
    let is_chained = ["uuid", "sessionId", "parentUuid"].into_iter().all(|key| object.has(key));
    match kind.as_ref() {
        "user" | "assistant" | "system" | "attachment" | "progress" if is_chained => Fit::Yes,
        "summary" | "last-prompt" if object.has("leafUuid") => Fit::Maybe,
        "file-history-snapshot" | "file-history-delta" if object.has("messageId") => Fit::Maybe,
        _ if object.has("sessionId") => Fit::Maybe,
        _ => Fit::No,
    }
}

/// All conversations of a log: the active thread first, then its branches, then the side chains.
///
/// # Errors
/// When there is no message at all, or one is too large.
pub(crate) fn read(records: &[Record], context: Context<'_>) -> Result<Vec<Conversation>, Error> {
    let session = Session::of(records.iter().map(Line::of).collect());
    let conversations = session.conversations(context)?;
    if conversations.is_empty() {
        let mut seen = BTreeMap::new();
        for line in session.lines() {
            *seen.entry(line.kind.clone()).or_default() += 1;
        }
        return Err(context.no_messages(Format::ClaudeCodeLog, &seen));
    }
    Ok(conversations)
}
