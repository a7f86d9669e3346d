//! Reads session logs of Claude Code: a tree of lines, one block of content on most of them.
//!
//! The active thread is one conversation; each branch that was left (an edited prompt, a rewind) and
//! each side chain (a sub-agent) is another. Anything that is not a message is kept raw.

mod caller;
mod line;
mod message;
mod response;
mod session;
mod sessions;
mod tree;

use super::{Context, Fit, Format};
use crate::Error;
use crate::conversion::Conversion;
use crate::object::Object;
use crate::record::Record;
use line::Line;
use session::Session;
use std::collections::BTreeMap;

/// Returns whether an object is a line of such a log.
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

/// Returns all conversations of each session: the active thread first, then its branches, then the side chains.
///
/// # Errors
/// When there is no message at all, or only those of the client's own summariser.
pub(crate) fn read(
    records: &[Record],
    context: Context<'_>,
    _damage: &mut Vec<Error>,
) -> Result<Vec<Conversion>, Error> {
    let lines: Vec<_> = records.iter().map(Line::of).collect();
    let said = || lines.iter().filter(|line| line.said.is_some());
    if said().next().is_some() && said().all(Line::is_of_summariser) {
        let kind = "a message of the run that sums a session up".to_owned();
        let seen = BTreeMap::from([(kind, said().count() as u64)]);
        return Err(context.no_messages(Format::ClaudeCodeLog, &seen));
    }
    let (mut conversations, mut silent) = (Vec::new(), Vec::new());
    for lines in sessions::sessions(lines) {
        let session = Session::of(lines);
        let made = session.conversations(context);
        if made.is_empty() {
            silent.extend(session.into_lines());
        }
        conversations.extend(made);
    }
    let Some(last) = conversations.last_mut() else {
        let mut seen = BTreeMap::new();
        for line in silent {
            *seen.entry(line.kind).or_default() += 1;
        }
        return Err(context.no_messages(Format::ClaudeCodeLog, &seen));
    };
    for line in silent {
        last.record(&line.kind, line.record.line, &line.record.text);
    }
    Ok(conversations)
}
