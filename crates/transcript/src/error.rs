//! The errors of reading an input.

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
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is packed with zstd, and cannot be unpacked: it is cut off or damaged.
    #[error("{file} begins like a zstd file, but cannot be unpacked: {reason}")]
    Packed {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// The file unpacks to far more than recorded text does.
    #[error(
        "{file} unpacks to over {ratio} times its size ({unpacked} bytes so far), which no recorded \
         conversation does"
    )]
    Bomb {
        /// The file.
        file: String,
        /// The maximum ratio.
        ratio: u64,
        /// How many bytes were unpacked when reading stopped.
        unpacked: u64,
    },
    /// The bytes are not text.
    #[error("{place}: byte {offset} of the text is not valid UTF-8; conversations are UTF-8 text")]
    Utf8 {
        /// The place in the input.
        place: Place,
        /// The first bad byte, counted from 0 at the beginning of the (unpacked) text.
        offset: u64,
    },
    /// The text is not JSON.
    #[error("{place}, column {column}: {reason}")]
    Json {
        /// The place in the input.
        place: Place,
        /// The byte in the line, counted from 1.
        column: usize,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// Objects and arrays are nested too deeply.
    #[error("{place}: objects and arrays are nested {depth} deep; at most {limit} levels are read")]
    TooDeep {
        /// The place in the input.
        place: Place,
        /// The depth.
        depth: usize,
        /// The maximum depth.
        limit: usize,
    },
    /// One message is too large.
    #[error(
        "{place}: message {index}{} has {bytes} bytes; a message may have {limit} bytes at most",
        of(conversation)
    )]
    LargeMessage {
        /// The place in the input.
        place: Place,
        /// The conversation's id, if it has one.
        conversation: Option<String>,
        /// The index of the message in the conversation, counted from 0.
        index: usize,
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A line that should hold one message is longer than a message may be.
    #[error(
        "{place}: the line is longer than {limit} bytes, which is the most that a message may have"
    )]
    LongLine {
        /// The place in the input.
        place: Place,
        /// The limit in bytes.
        limit: u64,
    },
    /// One line, or one file that is a single JSON value, is too large.
    #[error("{place}: the conversation has over {limit} bytes; at most that many are read")]
    LargeConversation {
        /// Where it begins.
        place: Place,
        /// The limit in bytes.
        limit: u64,
    },
    /// A message does not have the shape of chat-completions.
    #[error("{place}: message {index}{} is invalid: {source}", of(conversation))]
    Message {
        /// The place in the input.
        place: Place,
        /// The conversation's id, if it has one.
        conversation: Option<String>,
        /// The index of the message in the conversation, counted from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: MessageError,
    },
    /// A record of a known format does not have its shape.
    #[error("{place}: {what}")]
    Shape {
        /// The place in the input.
        place: Place,
        /// What was found, and what was expected.
        what: String,
    },
    /// The format is known, but there is no message.
    #[error(
        "{place}: this is {format} that holds no message; expected at least one. Found: \
         {seen}"
    )]
    NoMessages {
        /// Where it begins.
        place: Place,
        /// The format.
        format: Format,
        /// What it holds instead, by kind.
        seen: String,
    },
    /// The text is in none of the formats that are read.
    #[error("{place}: {found}. {}", crate::format::TRIED)]
    Unknown {
        /// The place in the input.
        place: Place,
        /// What it is instead, as far as is known: a sentence without its full stop.
        found: String,
    },
    /// The input holds no conversation at all.
    #[error(
        "{file} holds no conversation: it is empty or blank. Expected at least one line \
         {{\"id\": ..., \"messages\": [...]}}"
    )]
    Nothing {
        /// The file.
        file: String,
    },
}

impl Error {
    /// Returns whether the error is about one line or about the contents of a file, so that a
    /// lenient caller may skip it. This does not hold for an input that cannot be read or unpacked.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Packed { .. } | Self::Bomb { .. })
    }

    /// Returns the line of the record that the error is about, if it is about one.
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

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of the input.
    pub file: String,
    /// The line, counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}
