//! Reads JSON Lines of single messages, as they are recorded one by one.

use crate::input::Input;
use crate::looks::text_of;
use crate::object::Object;
use crate::scan::{check_depth, json_error};
use crate::{Error, Limits, Place};
use foldback_core::Message;
use std::io::Read;

/// Reads one line that holds one message. `n` is the line's number, counted from 1, for the error.
///
/// # Errors
/// When the line is not JSON, is too large or too deep for the default [`Limits`], or is not a
/// message.
pub fn read_message_line(line: &str, n: u64) -> Result<Message, Error> {
    let place = Place { file: "the input".to_owned(), line: n };
    let line = line.trim_start_matches('\u{feff}').trim_matches([' ', '\t', '\r', '\n']);
    read(line, n, &place, &Limits::default())
}

/// The messages of an input that holds one on each line. Blank lines, a byte order mark and CRLF are skipped. A line is
/// read until it is longer than a message may be, and no further. After an error there is nothing more, because what
/// follows a missing message should not be recorded as if nothing were missing; [`lenient`](Self::lenient) changes
/// that.
pub struct MessageLines<'a> {
    input: Input<'a>,
    done: bool,
    lenient: bool,
    line: u64,
    messages: u64,
}

impl<'a> MessageLines<'a> {
    /// Reads from any reader; errors call it `name`. Each message is returned as soon as its line
    /// is there.
    ///
    /// # Errors
    /// When the beginning cannot be read.
    pub fn from_reader(
        name: impl Into<String>,
        reader: impl Read + Send + 'a,
        limits: Limits,
    ) -> Result<Self, Error> {
        let input = Input::open(name.into(), Box::new(reader), limits)?;
        Ok(Self { input, done: false, lenient: false, line: 0, messages: 0 })
    }

    /// Continues after a line that cannot be read ([`Error::is_damage`]), and returns its error in
    /// its place.
    #[must_use]
    pub fn lenient(self) -> Self {
        Self { lenient: true, ..self }
    }

    /// Returns the line of the last returned message or error, counted from 1; 0 before the first.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    fn read(&mut self) -> Result<Option<Message>, Error> {
        let most = self.input.limits().message_bytes;
        let line = self.input.pass_line().and_then(|()| self.input.line_within(most));
        self.line = self.input.lines();
        let Some(line) = line? else { return Ok(None) };
        self.line = line.number;
        let place = Place { file: self.input.name().to_owned(), line: line.number };
        let text = text_of(&line, &place)?;
        let message = read(text, self.messages + 1, &place, self.input.limits())?;
        self.messages += 1;
        Ok(Some(message))
    }
}

impl Iterator for MessageLines<'_> {
    type Item = Result<Message, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = match &next {
            Some(Ok(_)) => false,
            Some(Err(error)) => !(self.lenient && error.is_damage()),
            None => true,
        };
        next
    }
}

fn read(line: &str, n: u64, place: &Place, limits: &Limits) -> Result<Message, Error> {
    let index = usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
    let bytes = line.len() as u64;
    if bytes > limits.message_bytes {
        let (place, limit) = (place.clone(), limits.message_bytes);
        return Err(Error::LargeMessage { place, conversation: None, index, bytes, limit });
    }
    check_depth(line, place, limits)?;
    let shape = |what: String| Error::Shape { place: place.clone(), what };
    if !line.starts_with('{') {
        return Err(shape("this is not a message, which is a JSON object".to_owned()));
    }
    serde_json::from_str::<Object<'_>>(line).map_err(|e| json_error(&e, line, place))?;
    Message::from_json(line).map_err(|error| shape(error.to_string()))
}
