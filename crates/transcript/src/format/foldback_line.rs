//! Foldback JSON Lines: one object a line, with an id and messages.

use super::{Context, Format, conversation, messages_of};
use crate::conversation::id_of;
use crate::object::Object;
use crate::{Conversation, Error};

/// Returns whether an object is a line of this format.
pub(super) fn fits(object: &Object<'_>) -> bool {
    object.has("messages") && object.get("id").is_some_and(|id| id_of(id.get()).is_some())
}

/// Returns whether an object is a line that was converted from another format.
pub(super) fn is_converted(object: &Object<'_>) -> bool {
    let source = || object.object("source").and_then(|source| source.text("format"));
    object.has("messages") && source().is_some()
}

pub(super) fn read(
    text: &str,
    object: &Object<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let id = object.get("id").and_then(|id| id_of(id.get()));
    let (array, values) = messages_of(object, context)?;
    conversation(Format::FoldbackJsonLines, id, text, array, &values, context)
}
