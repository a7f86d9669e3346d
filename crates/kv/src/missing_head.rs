//! Tells whether a todo without a head is new or forgotten.

use crate::Key;
use crate::registry::{REGISTRY, own_key};

/// The head of a forgotten todo, which no writer expects.
///
/// It is not stored: a todo that has no head, whose number was assigned and which is no longer registered,
/// was forgotten. (Stores in which a todo was forgotten by an earlier version do hold this head.)
pub const FORGOTTEN_HEAD: u64 = 1 << 62;

/// Returns the head of a todo that has no stored one: 0, or [`FORGOTTEN_HEAD`]. An engine calls this whenever it finds
/// no head; when it compares heads, it does so in the same transaction. `head` returns the head of a number as it is
/// stored, 0 for none and [`DAMAGED_HEAD`](crate::DAMAGED_HEAD) for a damaged one; `has` returns whether there is a
/// record, damaged or not.
///
/// # Errors
/// Those of `head` and `has`.
pub fn missing_head<E>(
    todo: u32,
    head: impl FnOnce(u32) -> Result<u64, E>,
    has: impl FnOnce(Key) -> Result<bool, E>,
) -> Result<u64, E> {
    if todo == REGISTRY || u64::from(todo) > head(REGISTRY)? || has(own_key(todo))? {
        return Ok(0);
    }
    Ok(FORGOTTEN_HEAD)
}
