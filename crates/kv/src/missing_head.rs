//! What a todo without a head is: new, or forgotten.

use crate::Key;
use crate::registry::{REGISTRY, own_key};

/// The head of a todo that is no more, which no writer expects.
///
/// Nothing is stored of it: a todo without a head whose number was given out, and which is no longer
/// registered, was forgotten. (Stores in which a todo was forgotten before that was so have the head itself.)
pub const FORGOTTEN_HEAD: u64 = 1 << 62;

/// The head of a todo that has none of its own: 0, or [`FORGOTTEN_HEAD`]. An engine asks this wherever it finds
/// no head, and where it compares heads, in the same transaction. `head` gives the head of a number as it is stored, 0
/// for none and [`DAMAGED_HEAD`](crate::DAMAGED_HEAD) for a damaged one; `has` says whether there is a record, damaged or not.
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
