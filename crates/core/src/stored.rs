//! A stored message: its exact text with holes in place of large or repeated parts, and what fills
//! each hole.

use crate::{
    Check, Content, Escape, Message, Part, PayloadKind, PayloadRef, SeqNo, decode_literal,
    escape_into,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A stored message. The pieces, filled and joined, are its JSON text byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredMessage {
    /// The text, in order.
    pub pieces: Vec<Piece>,
    /// The parts that are stored outside, as the view shows them.
    pub offloads: Vec<Offload>,
    /// Whether it is the answer of a memory tool, whose text is elsewhere in its todo: it is not searched, and folds to a
    /// note.
    pub recall: bool,
    /// When it was recorded, in milliseconds since 1970, for messages without a time of their own.
    pub recorded_at: i64,
}

/// A piece of a message's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Piece {
    /// A text as it is.
    Text(String),
    /// A text from elsewhere, escaped by each layer in turn (the innermost first).
    Hole {
        /// Where the text is.
        source: Source,
        /// Which bytes of it: `None` for the whole.
        range: Option<(u64, u64)>,
        /// How it is escaped on its way into the JSON text.
        layers: Vec<Escape>,
    },
}

/// The source of a hole's text. Sources belong to the message's own todo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The payload with this number.
    Payload(u64),
    /// A text of an earlier message.
    Message(SeqNo, Site),
}

/// A place in a message that holds a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Site {
    /// The content, if it is one text.
    Content,
    /// The part of the content with this index.
    Part(u32),
    /// The whole arguments of the call with this index.
    Arguments(u32),
    /// The value of one key of the arguments: call index, and the key's index in their object.
    Argument(u32, u32),
}

impl Site {
    /// Returns the text at this place of `message`: of an argument that is a string the text it
    /// says, of any other argument its JSON. `None` if the message has no such place.
    #[must_use]
    pub fn text(self, message: &Message) -> Option<Cow<'_, str>> {
        let call = |index: u32| message.tool_calls().get(index as usize);
        match self {
            Self::Content => match message.content() {
                Content::Text(text) => Some(Cow::Borrowed(text)),
                Content::Empty | Content::Parts(_) => None,
            },
            Self::Part(index) => match message.content() {
                Content::Parts(parts) => match parts.get(index as usize)? {
                    Part::Text(text) => Some(Cow::Borrowed(text)),
                    Part::Other(_) => None,
                },
                Content::Empty | Content::Text(_) => None,
            },
            Self::Arguments(index) => Some(Cow::Borrowed(&call(index)?.arguments)),
            Self::Argument(index, key) => {
                let members = call(index)?.members()?;
                let (_, value) = *members.get(key as usize)?;
                Some(argument_text(value))
            }
        }
    }
}

/// Returns what an argument says: of a string its text, of any other value its JSON.
#[must_use]
pub fn argument_text(value: &RawValue) -> Cow<'_, str> {
    let json = value.get();
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) => decode_literal(inside),
        None => Cow::Borrowed(json),
    }
}

/// A part of a message that is stored outside the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offload {
    /// Its place in the message.
    pub site: Site,
    /// The payload's number in its todo.
    pub n: u64,
    /// The first characters of its hash.
    pub check: Check,
    /// What it holds.
    pub kind: PayloadKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// Its estimated tokens.
    pub tokens: u64,
    /// A short preview, at most 200 tokens.
    pub preview: String,
}

impl Offload {
    /// Returns the reference by which the payload is loaded inside its own todo.
    #[must_use]
    pub fn reference(&self) -> PayloadRef {
        PayloadRef::local(self.n, self.check)
    }
}

impl StoredMessage {
    /// Returns the exact JSON text. `fetch` returns the text of a source (a range of it, in bytes).
    ///
    /// # Errors
    /// The first error of `fetch`.
    pub fn json<E>(
        &self,
        mut fetch: impl FnMut(Source, Option<(u64, u64)>) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole { source, range, layers } => {
                    let mut text = fetch(*source, *range)?;
                    for layer in layers {
                        let mut escaped = String::with_capacity(text.len() + text.len() / 8);
                        escape_into(&text, *layer, &mut escaped);
                        text = escaped;
                    }
                    out.push_str(&text);
                }
            }
        }
        Ok(out)
    }

    /// Returns the text, if none of it is stored elsewhere.
    #[must_use]
    pub fn whole(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    #[test]
    fn each_place_says_its_text() {
        let arguments = r#"{"path": "a.rs", "text": "\u4e2d\n", "lines": [1, 2]}"#;
        let message = Message::calls("so", vec![ToolCall::new("c", "write", arguments)]);
        let at = |site: Site| site.text(&message).map(Cow::into_owned);
        assert_eq!(at(Site::Content).as_deref(), Some("so"));
        assert_eq!(at(Site::Arguments(0)).as_deref(), Some(arguments));
        assert_eq!(at(Site::Argument(0, 1)).as_deref(), Some("中\n"));
        assert_eq!(at(Site::Argument(0, 2)).as_deref(), Some("[1, 2]"));
        for nowhere in [Site::Part(0), Site::Arguments(1), Site::Argument(0, 3)] {
            assert_eq!(at(nowhere), None);
        }
    }

    #[test]
    fn filled_holes_are_the_text() {
        let hole = Piece::Hole {
            source: Source::Payload(1),
            range: None,
            layers: vec![Escape::Minimal, Escape::Ascii],
        };
        let pieces = vec![Piece::Text("\"".to_owned()), hole, Piece::Text("\"".to_owned())];
        let stored = StoredMessage { pieces, offloads: Vec::new(), recall: false, recorded_at: 0 };
        let filled = stored.json(|_, _| Ok::<_, ()>("ü\n".to_owned()));
        assert_eq!(filled.as_deref(), Ok(r#""\u00fc\\n""#));
        assert_eq!(stored.json(|_, _| Err(())), Err(()));
        assert_eq!(stored.whole(), None);
    }
}
