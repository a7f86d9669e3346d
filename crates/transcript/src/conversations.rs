//! Conversations, one after the other.

use crate::format::{self, Context, describe_bytes};
use crate::input::{Input, Line};
use crate::scan::{check_depth, scan};
use crate::{Conversation, Error, Limits, Place};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The conversations of one input, read as they are asked for: one line at a time where the input
/// is JSON Lines, else the whole as one conversation.
///
/// A line that cannot be read is an error, and the next call goes on behind it. After an error of
/// the input itself (reading, unpacking, size) there is nothing more. An input without any
/// conversation gives one error that says so.
pub struct Conversations<'a> {
    input: Input<'a>,
    state: State,
    line: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read, so it is not known yet whether there is one conversation on each line.
    Fresh,
    Lines,
    Done,
}

/// Opens a file; `.zst` or not is told from its first bytes.
///
/// # Errors
/// When the file cannot be opened, or its beginning cannot be read.
pub fn read_file(path: impl AsRef<Path>) -> Result<Conversations<'static>, Error> {
    Conversations::from_file(path, Limits::default())
}

/// Reads from memory, plain or packed.
///
/// # Errors
/// When the beginning is packed and damaged.
pub fn read_bytes(bytes: &[u8]) -> Result<Conversations<'_>, Error> {
    Conversations::from_reader("the input", bytes, Limits::default())
}

impl<'a> Conversations<'a> {
    /// Reads from anything that gives bytes, plain or packed; errors call it `name`.
    ///
    /// # Errors
    /// When its beginning cannot be read.
    pub fn from_reader(
        name: impl Into<String>,
        reader: impl Read + Send + 'a,
        limits: Limits,
    ) -> Result<Self, Error> {
        let input = Input::open(name.into(), Box::new(reader), limits)?;
        Ok(Self { input, state: State::Fresh, line: 0 })
    }

    /// The line on which the conversation given last begins, counted from 1; 0 before the first.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    fn read(&mut self) -> Result<Option<Conversation>, Error> {
        let fresh = self.state == State::Fresh;
        // Whatever fails below, fails for good, until a whole line is in hand.
        self.state = State::Done;
        if fresh && let Some(found) = describe_bytes(self.input.peek()?) {
            let place = Place { file: self.input.name().to_owned(), line: 1 };
            return Err(Error::Unknown { place, found: found.to_owned() });
        }
        let Some(mut line) = self.input.line()? else {
            return match fresh {
                true => Err(Error::Nothing { file: self.input.name().to_owned() }),
                false => Ok(None),
            };
        };
        let one_on_each_line = !fresh || {
            let begin = line.bytes.trim_ascii_start().first();
            !matches!(begin, Some(b'{' | b'[')) || scan(&line.bytes).complete
        };
        if one_on_each_line {
            self.state = State::Lines;
        } else {
            self.input.rest(&mut line)?;
        }
        self.line = line.number;
        let place = Place { file: self.input.name().to_owned(), line: line.number };
        let text = text_of(&line, &place)?;
        // Lines that look like nothing are all the same foreign text; one error says it.
        if one_on_each_line && fresh && !text.starts_with(['{', '[']) {
            self.state = State::Done;
        }
        check_depth(text, &place, self.input.limits())?;
        format::read(text, Context { place: &place, limits: self.input.limits() }).map(Some)
    }
}

impl Conversations<'static> {
    /// Opens a file within limits of one's own.
    ///
    /// # Errors
    /// When the file cannot be opened, or its beginning cannot be read.
    pub fn from_file(path: impl AsRef<Path>, limits: Limits) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        let file = File::open(path).map_err(|source| Error::Io { file: name.clone(), source })?;
        Self::from_reader(name, file, limits)
    }
}

impl Iterator for Conversations<'_> {
    type Item = Result<Conversation, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done { None } else { self.read().transpose() }
    }
}

/// The text of a line, without the white space around it.
pub(crate) fn text_of<'l>(line: &'l Line, place: &Place) -> Result<&'l str, Error> {
    match std::str::from_utf8(&line.bytes) {
        Ok(text) => Ok(text.trim_matches([' ', '\t', '\r', '\n'])),
        Err(error) => {
            let good = error.valid_up_to();
            let breaks = line.bytes.iter().take(good).filter(|b| **b == b'\n').count() as u64;
            let place = Place { file: place.file.clone(), line: place.line + breaks };
            Err(Error::Utf8 { place, offset: line.offset + good as u64 })
        }
    }
}
