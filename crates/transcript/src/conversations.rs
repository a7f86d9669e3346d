//! Reads conversations, one after the other.

use crate::conversion::Conversion;
use crate::draft::{list_of, quoted};
use crate::format::{self, Context, Log, describe_bytes};
use crate::input::{Input, Line};
use crate::looks::{Looks, is_begun, lines_of, text_of, what_is};
use crate::record::{Record, json_of};
use crate::scan::check_depth;
use crate::{Conversation, Error, Limits, Place, agent_meta};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The conversations of one input. If each line is one, they are read on demand. Anything else is
/// read as a whole: one JSON value, or a session log, which may hold several.
///
/// A line that cannot be read is an error, and the next call continues after it
/// ([`Error::is_damage`]). After an error of the input itself (reading, unpacking) there is nothing
/// more. An input without any conversation gives one error that says so. The last line of a session
/// log may be half-written, because the session is still running: that is not an error but a
/// [finding](Conversation::check).
pub struct Conversations<'a> {
    input: Input<'a>,
    state: State,
    line: u64,
    /// Lines that were read to detect what the input is.
    seen: VecDeque<Line>,
    /// The results that are already read.
    ready: VecDeque<Ready>,
    /// The metadata from the file beside an agent's log.
    meta: Option<String>,
    /// The format, if it is one whose lines belong together.
    log: Option<&'static Log>,
    /// Whether the input is one JSON value over several lines.
    is_one_value: bool,
}

/// A conversation, or a damaged line, and where it begins.
struct Ready(u64, Result<Conversation, Error>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not yet known what the input is.
    Fresh,
    /// There is one conversation on each line.
    Lines,
    /// So far no line is one: the first foreign line stands for all of them.
    Foreign,
    Done,
}

/// The nature of an input: each line is a conversation, or none is, or all lines belong together.
enum Nature {
    Lines(State),
    Log(&'static Log),
}

/// How many lines are examined to detect what an input is.
const LOOK: usize = 64;

/// Opens a file; whether it is packed with zstd is detected from its first bytes.
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
    /// Reads from any reader, plain or packed; errors call it `name`.
    ///
    /// # Errors
    /// When its beginning cannot be read.
    pub fn from_reader(
        name: impl Into<String>,
        reader: impl Read + Send + 'a,
        limits: Limits,
    ) -> Result<Self, Error> {
        let input = Input::open(name.into(), Box::new(reader), limits)?;
        let (seen, ready, state) = (VecDeque::new(), VecDeque::new(), State::Fresh);
        let (meta, log, is_one_value) = (None, None, false);
        Ok(Self { input, state, line: 0, seen, ready, meta, log, is_one_value })
    }

    /// Adds the metadata from the file beside an agent's log.
    pub(crate) fn with_meta(self, meta: Option<String>) -> Self {
        Self { meta, ..self }
    }

    /// States that the input is the rest of a file, after this many bytes and lines.
    pub(crate) fn behind(mut self, bytes: u64, lines: u64) -> Self {
        self.input.stands_behind(bytes, lines);
        self
    }

    /// Returns the input, as far as it was read.
    pub(crate) fn input(&self) -> &Input<'a> {
        &self.input
    }

    /// Returns the format, if the input was found to be of one whose lines belong together.
    pub(crate) fn log(&self) -> Option<&'static Log> {
        self.log
    }

    /// Returns whether the input was found to be one JSON value over several lines.
    pub(crate) fn is_one_value(&self) -> bool {
        self.is_one_value
    }

    /// Returns the line on which the last returned conversation begins, counted from 1; 0 before the first.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    fn read(&mut self) -> Result<Option<Conversation>, Error> {
        if self.state == State::Fresh {
            // Any failure below is final.
            self.state = State::Done;
            self.begin()?;
        }
        if let Some(Ready(line, ready)) = self.ready.pop_front() {
            self.line = line;
            return ready.map(Some);
        }
        if self.state == State::Done {
            return Ok(None);
        }
        let state = std::mem::replace(&mut self.state, State::Done);
        let line = match self.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(error) => {
                if error.is_damage() {
                    (self.state, self.line) = (state, self.input.lines());
                }
                return Err(error);
            }
        };
        self.state = state;
        self.line = line.number;
        let place = self.place(line.number);
        let context = Context { place: &place, limits: self.input.limits(), meta: None };
        let read = text_of(&line, &place)
            .and_then(|text| check_depth(text, &place, context.limits).map(|()| text))
            .and_then(|text| format::read(text, context));
        // Lines of no known format are all the same foreign text; one error is enough.
        if state == State::Foreign && matches!(read, Err(Error::Unknown { .. })) {
            self.state = State::Done;
        }
        read.map(Some)
    }

    /// Detects what the input is, and reads it if it has to be read as a whole.
    fn begin(&mut self) -> Result<(), Error> {
        if let Some(found) = describe_bytes(self.input.peek()?) {
            return Err(Error::Unknown { place: self.place(1), found: found.to_owned() });
        }
        match self.look()? {
            Nature::Lines(state) => self.state = state,
            Nature::Log(log) => {
                self.log = Some(log);
                self.read_log(log)?;
            }
        }
        Ok(())
    }

    /// Examines the first lines.
    fn look(&mut self) -> Result<Nature, Error> {
        let (mut maybe, mut looked) = (None, Vec::new());
        let mut nature = Nature::Lines(State::Foreign);
        let mut first = true;
        while looked.len() < LOOK {
            let mut line = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                // What follows a line that is too large is examined in its turn.
                Err(error) if error.is_damage() => {
                    self.ready.push_back(Ready(self.input.lines(), Err(error)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            if looked.is_empty() && is_begun(&line) {
                self.input.rest(&mut line)?;
                if let Some(lines) = lines_of(&line) {
                    self.seen.extend(lines);
                    continue;
                }
                self.is_one_value = true;
            }
            let found = match json_of(&line, &self.place(line.number), self.input.limits()) {
                Ok(text) => Some(what_is(text, first)),
                // A damaged line shows nothing, and gives its error in its turn.
                Err(_) => None,
            };
            looked.push(line);
            match found {
                Some(Looks::Log(log)) => {
                    nature = Nature::Log(log);
                    break;
                }
                Some(Looks::Conversation) => {
                    nature = Nature::Lines(State::Lines);
                    break;
                }
                Some(Looks::BesideLog(log)) => maybe = maybe.or(Some(log)),
                Some(Looks::Foreign) | None => {}
            }
            first &= found.is_none();
        }
        if looked.is_empty() && self.ready.is_empty() {
            return Err(Error::Nothing { file: self.input.name().to_owned() });
        }
        for line in looked.into_iter().rev() {
            self.seen.push_front(line);
        }
        Ok(match (nature, maybe) {
            (Nature::Lines(_), Some(log)) => Nature::Log(log),
            (nature, _) => nature,
        })
    }

    /// Reads all lines together. Each damaged line is an error of its own, returned before the
    /// conversations that the others make.
    fn read_log(&mut self, log: &'static Log) -> Result<(), Error> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let (mut damaged, mut unfinished) = (Vec::new(), None);
        loop {
            let line = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) if error.is_damage() => {
                    damaged.push(self.input.lines());
                    self.ready.push_back(Ready(self.input.lines(), Err(error)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            bytes += line.bytes.len() as u64;
            let limit = self.input.limits().conversation_bytes;
            if bytes > limit {
                return Err(Error::LargeConversation { place: self.place(line.number), limit });
            }
            match Record::of(&line, &self.place(line.number), self.input.limits()) {
                Ok(record) => records.push(record),
                Err(Error::Json { .. } | Error::Utf8 { .. })
                    if !line.bytes.ends_with(b"\n") && !records.is_empty() =>
                {
                    unfinished = Some(line);
                }
                Err(error) => {
                    damaged.push(line.number);
                    self.ready.push_back(Ready(line.number, Err(error)));
                }
            }
        }
        let begin = records.first().map_or(1, |record| record.line);
        let place = self.place(begin);
        let (limits, meta) = (self.input.limits(), self.meta.as_deref());
        let context = Context { place: &place, limits, meta };
        let mut bad = Vec::new();
        let read = (log.read)(&records, context, &mut bad);
        drop(records);
        let mut conversions = match read {
            Ok(conversions) => conversions,
            Err(error) => {
                self.ready.push_back(Ready(begin, Err(error)));
                return Ok(());
            }
        };
        conversions.iter_mut().for_each(|conversion| conversion.drain(context, &mut bad));
        conversions.retain(|conversion| bad.is_empty() || !conversion.is_empty());
        for error in bad {
            // A record that does not have the shape of its kind counts as damaged like any other.
            let line = error.record().unwrap_or(begin);
            damaged.push(line);
            self.ready.push_back(Ready(line, Err(error)));
        }
        damaged.sort_unstable();
        self.ready.make_contiguous().sort_by_key(|Ready(line, _)| *line);
        for mut conversion in conversions {
            state_reading(&damaged, unfinished.as_ref(), &mut conversion);
            self.ready.push_back(Ready(begin, Ok(conversion.finish())));
        }
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<Line>, Error> {
        match self.seen.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.input.line(),
        }
    }

    fn place(&self, line: u64) -> Place {
        Place { file: self.input.name().to_owned(), line }
    }
}

impl Conversations<'static> {
    /// Opens a file within the given limits. Beside the log of a Claude Code agent (`agent-7.jsonl`) there may be a
    /// file that says what it was started for (`agent-7.meta.json`), which is read too.
    ///
    /// # Errors
    /// When the file cannot be opened, or its beginning cannot be read.
    pub fn from_file(path: impl AsRef<Path>, limits: Limits) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Io { file: name.clone(), source })?;
        Ok(Self::from_reader(name, file, limits)?.with_meta(agent_meta::beside(path, &limits)))
    }
}

impl Iterator for Conversations<'_> {
    type Item = Result<Conversation, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done && self.ready.is_empty() {
            None
        } else {
            self.read().transpose()
        }
    }
}

/// Records how the file of a conversation was read.
fn state_reading(damaged: &[u64], unfinished: Option<&Line>, conversion: &mut Conversion) {
    if !damaged.is_empty() {
        let lines: Vec<_> = damaged.iter().map(u64::to_string).collect();
        conversion.fact("damaged_lines", &list_of(&lines));
    }
    if let Some(line) = unfinished {
        let text = quoted(&String::from_utf8_lossy(&line.bytes));
        conversion.fact("unfinished", &format!("{{\"line\":{},\"text\":{text}}}", line.number));
    }
}
