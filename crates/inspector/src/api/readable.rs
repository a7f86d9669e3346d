//! Messages of a session, without those that are damaged.

use foldback::core::{Message, TodoId};
use foldback::{Error, ErrorKind, Memory};
use std::ops::Range;

/// Reads the messages of a range that can be read, each with its number. A message that is damaged, or that has lost a
/// payload, is left out.
///
/// # Errors
/// When the store fails in any other way: what cannot be read now may be read later.
pub(super) fn readable(
    memory: &Memory,
    todo: &TodoId,
    range: Range<u64>,
) -> Result<Vec<(u64, Message)>, Error> {
    match memory.messages(todo, range.clone()) {
        Ok(messages) => Ok(range.zip(messages).collect()),
        Err(error) if !is_damage(&error) => Err(error),
        Err(_) => {
            let mut found = Vec::new();
            for seq in range {
                match memory.messages(todo, seq..seq + 1) {
                    Ok(one) => found.extend(one.into_iter().map(|message| (seq, message))),
                    Err(error) if is_damage(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        }
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
}
