//! The new part of a body.

use crate::client_message::ClientMessage;
use std::borrow::Cow;
use std::ops::Range;

/// A body without the messages that are known from one with the same beginning: what remains is the same
/// request with a shorter list.
pub(crate) struct Rest<'b> {
    pub(crate) text: Cow<'b, str>,
    /// The messages that are left out.
    pub(crate) known: &'b [ClientMessage],
    /// Their place in the body, with what separates them from the messages after them.
    left_out: Range<usize>,
}

impl<'b> Rest<'b> {
    /// Returns what is left of a body that holds these messages. The last of them stays in it.
    pub(crate) fn behind(body: &'b str, known: &'b [ClientMessage]) -> Self {
        let shortened = known.split_last().and_then(|(next, known)| {
            let left_out = known.first()?.place.start..next.place.start;
            let text = [body.get(..left_out.start)?, body.get(left_out.end..)?].concat();
            Some(Self { text: text.into(), known, left_out })
        });
        shortened.unwrap_or(Self { text: body.into(), known: &[], left_out: 0..0 })
    }

    /// Returns the place of a slice of the text in the body.
    pub(crate) fn place(&self, part: &str) -> Range<usize> {
        let start = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let in_body = |at: usize| match at < self.left_out.start {
            true => at,
            false => at + self.left_out.len(),
        };
        in_body(start)..in_body(start + part.len())
    }
}
