//! What can be wrong with an input.

use crate::Format;
use foldback_core::MessageError;
use std::fmt;

/// An input that could not be read. Each message names the file, the line and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or read.
    #[error("{file} could not be read: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is packed with zstd, and cannot be unpacked: it is cut off or damaged.
    #[error("{file} begins like a zstd file, but cannot be unpacked: {reason}")]
    Packed {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The file unpacks to far more than text does.
    #[error(
        "{file} unpacks to over {ratio} times its size ({unpacked} bytes so far), which no recorded \
         conversation does"
    )]
    Bomb {
        /// The file.
        file: String,
        /// The ratio that is allowed.
        ratio: u64,
        /// How many bytes were unpacked when reading stopped.
        unpacked: u64,
    },
    /// The bytes are not text.
    #[error("{place}: byte {offset} of the text is not valid UTF-8; conversations are UTF-8 text")]
    Utf8 {
        /// Where.
        place: Place,
        /// The first bad byte, counted from 0 at the beginning of the (unpacked) text.
        offset: u64,
    },
    /// The text is not JSON.
    #[error("{place}, column {column}: {reason}")]
    Json {
        /// Where.
        place: Place,
        /// The byte in the line, counted from 1.
        column: usize,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// Objects and arrays are nested too deeply.
    #[error("{place}: objects and arrays are nested {depth} deep; at most {limit} are read")]
    TooDeep {
        /// Where.
        place: Place,
        /// How deep.
        depth: usize,
        /// How deep they may be.
        limit: usize,
    },
    /// One message is too large.
    #[error(
        "{place}: message {index}{} has {bytes} bytes; a message may have {limit} bytes at most",
        of(conversation)
    )]
    LargeMessage {
        /// Where.
        place: Place,
        /// The conversation, where it has an id.
        conversation: Option<String>,
        /// Which message of the conversation, counted from 0.
        index: usize,
        /// Its size.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A line that should hold one message is longer than a message may be.
    #[error("{place}: the line is longer than the {limit} bytes that a message may have at most")]
    LongLine {
        /// Where.
        place: Place,
        /// What is allowed.
        limit: u64,
    },
    /// One line, or one file that is a single JSON value, is too large.
    #[error("{place}: a conversation of over {limit} bytes; this many are read at most")]
    LargeConversation {
        /// Where it begins.
        place: Place,
        /// What is allowed.
        limit: u64,
    },
    /// One message is not in the shape of chat-completions.
    #[error("{place}: message {index}{} is not one: {source}", of(conversation))]
    Message {
        /// Where.
        place: Place,
        /// The conversation, where it has an id.
        conversation: Option<String>,
        /// Which message of the conversation, counted from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: MessageError,
    },
    /// A record of a known format is not in its shape.
    #[error("{place}: {what}")]
    Shape {
        /// Where.
        place: Place,
        /// What was found, and what was expected.
        what: String,
    },
    /// The format is known, and no message is there.
    #[error(
        "{place}: this is {format} that holds no message; expected was at least one. Found were \
         {seen}"
    )]
    NoMessages {
        /// Where it begins.
        place: Place,
        /// The format.
        format: Format,
        /// What is there instead, by kind.
        seen: String,
    },
    /// The text is none of the formats that are read.
    #[error("{place}: {found}. {}", crate::format::TRIED)]
    Unknown {
        /// Where.
        place: Place,
        /// What it is instead, as far as can be told: a sentence without its full stop.
        found: String,
    },
    /// The input holds no conversation at all.
    #[error(
        "{file} holds no conversation: it is empty or blank. Expected was at least one line \
         {{\"id\": ..., \"messages\": [...]}}"
    )]
    Nothing {
        /// The file.
        file: String,
    },
}

impl Error {
    /// Whether the error is about one line, or about what a file holds, so that whoever is lenient
    /// may pass over it. An input that cannot be read or unpacked is another matter.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Packed { .. } | Self::Bomb { .. })
    }

    /// The line of the record that the error is about, where it is about one.
    pub(crate) fn record(&self) -> Option<u64> {
        match self {
            Self::LargeMessage { place, .. }
            | Self::Message { place, .. }
            | Self::Shape { place, .. } => Some(place.line),
            _ => None,
        }
    }
}

fn of(conversation: &Option<String>) -> String {
    match conversation {
        Some(id) => format!(" of conversation {:?}", id.chars().take(60).collect::<String>()),
        None => String::new(),
    }
}

/// Where in an input something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or what the input is called.
    pub file: String,
    /// The line, counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}
