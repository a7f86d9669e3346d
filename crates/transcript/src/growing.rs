//! Reads a file of conversations while another program writes it.

mod window;

use crate::input::Line;
use crate::looks::text_of;
use crate::record::Record;
use crate::{Conversation, Conversations, Error, Limits, Place, agent_meta};
use foldback_core::Message;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use window::{End, Source, Window};

/// A file of conversations that is read as it grows, in time proportional to what is new.
///
/// A line counts once it is ended, or is a whole JSON value. From a session log, only messages that stay as they are
/// ([`Conversation::settled`]) are returned. The last lines of a log are held, and read together with what follows
/// them. If that does not make the same messages as before with more after them (the session went back to an earlier
/// point, or the file was rewritten), the file is read from its beginning. The same happens when it has doubled in
/// size, because what is around the messages is known only then.
pub struct Growing {
    path: PathBuf,
    limits: Limits,
    known: Option<Known>,
}

/// What was added since a file was last read.
pub enum Grown {
    /// A conversation as it is now, and the line on which it begins, counted from 1.
    Conversation(Conversation, u64),
    /// Further messages of the first of the conversations that were last returned.
    Messages(Vec<Message>),
    /// Something that cannot be read, and is skipped.
    Damage(Error),
}

/// How far a file was read.
struct Known {
    /// Everything before this offset is read: it ends with a line.
    offset: u64,
    /// The number of lines before it.
    lines: u64,
    /// The first bytes, and the last ones before the offset, by which the file is recognised.
    first: Vec<u8>,
    last: Vec<u8>,
    /// How far it was read when it was last read from its beginning.
    whole: u64,
    nature: Nature,
}

/// How a file grows.
enum Nature {
    /// Each line is a conversation.
    Lines,
    /// All lines belong together.
    Log(Option<Window>),
    /// It is rewritten each time.
    Whole,
}

/// A file is recognised by this many bytes at its beginning, and this many before what is new.
const KNOWN_BY: u64 = 512;

/// A log is not read from its beginning before it has grown by this many bytes.
const LEAST_GROWTH: u64 = 1 << 20;

impl Growing {
    /// Follows the file at this path, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { path: path.into(), limits, known: None }
    }

    /// Reads what was added, and passes it to `take` piece by piece. After an error everything is passed again.
    ///
    /// # Errors
    /// When the file cannot be read or unpacked, and any error of `take`.
    pub fn read<E: From<Error>>(
        &mut self,
        mut take: impl FnMut(Grown) -> Result<(), E>,
    ) -> Result<(), E> {
        let opened = File::open(&self.path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, mut file) = opened.map_err(|source| self.failed(source))?;
        let known = self.known.take();
        let is_again = known.is_some();
        if let Some(mut known) = known
            && known.stands_in(&mut file, len).map_err(|source| self.failed(source))?
        {
            let text = known.behind(&mut file, len).map_err(|source| self.failed(source))?;
            if self.goes_on(&mut known, &text, &mut take)? {
                self.known = Some(known);
                return Ok(());
            }
        }
        self.known = self.read_whole(file, len, is_again, &mut take)?;
        Ok(())
    }

    /// Makes the next read begin at the start of the file.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Returns whether the text around the messages was read less far than the messages themselves.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let is_log = |known: &Known| matches!(known.nature, Nature::Log(_));
        self.known.as_ref().is_some_and(|known| is_log(known) && known.offset > known.whole)
    }

    /// Drops the lines that are held. The next addition is read with the whole file, and lines are held again.
    pub fn rest(&mut self) {
        if let Some(Known { nature: Nature::Log(window), .. }) = &mut self.known {
            *window = None;
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Io { file: self.name(), source }
    }

    /// Takes what follows the known part. `false` means that it cannot be read without the rest.
    fn goes_on<E: From<Error>>(
        &self,
        known: &mut Known,
        text: &[u8],
        take: &mut impl FnMut(Grown) -> Result<(), E>,
    ) -> Result<bool, E> {
        let ended = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = text.split_at(ended);
        let is_whole = serde_json::from_slice::<&RawValue>(rest).is_ok();
        let new = if is_whole { text } else { lines };
        if !text.is_empty() && new.trim_ascii().is_empty() {
            return Ok(true);
        }
        match &mut known.nature {
            // Nothing was added, and yet the file was written to.
            _ if text.is_empty() => return Ok(false),
            Nature::Lines => {
                let input = Conversations::from_reader(self.name(), new, self.limits)?;
                let mut conversations = input.behind(known.offset, known.lines);
                while let Some(next) = conversations.next() {
                    if conversations.log().is_some() {
                        return Ok(false);
                    }
                    let line = conversations.line();
                    take(match next {
                        Ok(conversation) => Grown::Conversation(conversation, line),
                        Err(error) if error.is_damage() => Grown::Damage(error),
                        Err(error) => return Err(error.into()),
                    })?;
                }
            }
            Nature::Log(Some(window)) => {
                let grown = known.offset.saturating_sub(known.whole);
                let is_due = grown > known.whole.max(LEAST_GROWTH);
                let first = known.lines + 1;
                let Some(mut records) =
                    self.records(lines, first, known.offset).filter(|_| !is_due)
                else {
                    return Ok(false);
                };
                let count = records.len();
                let number = first + line_breaks(lines);
                records.extend(
                    self.records(if is_whole { rest } else { &[] }, number, 0)
                        .into_iter()
                        .flatten(),
                );
                let Some(messages) = window.grow(records, count) else { return Ok(false) };
                if !messages.is_empty() {
                    take(Grown::Messages(messages))?;
                }
            }
            Nature::Log(None) | Nature::Whole => return Ok(false),
        }
        known.advance(lines);
        Ok(true)
    }

    /// Returns the records on these lines; `None` if one is damaged.
    fn records(&self, text: &[u8], first: u64, offset: u64) -> Option<Vec<Record>> {
        let (mut at, mut records) = (offset, Vec::new());
        for (number, bytes) in (first..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            let line = Line { number, offset: at, bytes: bytes.to_vec() };
            at += bytes.len() as u64;
            let place = Place { file: self.name(), line: number };
            if !text_of(&line, &place).ok()?.is_empty() {
                records.push(Record::of(&line, &place, &self.limits).ok()?);
            }
        }
        Some(records)
    }

    /// Reads the file from its beginning.
    fn read_whole<E: From<Error>>(
        &self,
        mut file: File,
        len: u64,
        is_again: bool,
        take: &mut impl FnMut(Grown) -> Result<(), E>,
    ) -> Result<Option<Known>, E> {
        let failed = |source| self.failed(source);
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let meta = agent_meta::beside(&self.path, &self.limits);
        let text = file.try_clone().map_err(failed)?.take(len);
        let input = Conversations::from_reader(self.name(), text, self.limits)?;
        let mut conversations = input.with_meta(meta.clone());
        let (mut damage, mut end, mut is_first) = (None, None, true);
        while let Some(next) = conversations.next() {
            damage.take().map_or(Ok(()), |error| take(Grown::Damage(error)))?;
            match next {
                Ok(conversation) => {
                    if std::mem::take(&mut is_first) && is_again {
                        end = End::of(&conversation);
                    }
                    take(Grown::Conversation(conversation, conversations.line()))?;
                }
                // There is no message yet.
                Err(Error::Nothing { .. } | Error::NoMessages { .. }) => {}
                Err(error) if error.is_damage() => damage = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        let (is_packed, lines) = (conversations.input().is_packed(), conversations.input().lines());
        let (log, is_one) = (conversations.log(), conversations.is_one_value());
        let Some((offset, last)) = end_of_lines(&mut file, len).map_err(failed)? else {
            // It was truncated meanwhile.
            return Ok(None);
        };
        // The last line may be half-written.
        if let Some(error) = damage.filter(|_| is_packed || offset == len) {
            take(Grown::Damage(error))?;
        }
        if is_first {
            // It is not yet known what it is.
            return Ok(None);
        }
        let nature = match log {
            _ if is_packed || is_one => Nature::Whole,
            None => Nature::Lines,
            Some(log) => Nature::Log(end.and_then(|end| {
                file.seek(SeekFrom::Start(0)).ok()?;
                let source = Source { log, name: self.name(), limits: self.limits, meta };
                Window::of(source, &mut (&file).take(offset), &end)
            })),
        };
        let begin = bytes_before(&mut file, offset.min(KNOWN_BY), KNOWN_BY).map_err(failed)?;
        Ok(begin.map(|first| Known { offset, lines, first, last, whole: offset, nature }))
    }
}

impl Known {
    /// Returns whether the file still holds what was read of it, as far as its size and the first and last bytes show.
    fn stands_in(&self, file: &mut File, len: u64) -> io::Result<bool> {
        if len < self.offset {
            return Ok(false);
        }
        let (first, last) = (self.first.len() as u64, self.last.len() as u64);
        Ok(bytes_before(file, first, first)?.as_ref() == Some(&self.first)
            && bytes_before(file, self.offset, last)?.as_ref() == Some(&self.last))
    }

    /// Returns what follows the known part.
    fn behind(&self, file: &mut File, len: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(self.offset))?;
        file.take(len - self.offset).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Counts lines as read.
    fn advance(&mut self, lines: &[u8]) {
        self.offset += lines.len() as u64;
        self.lines += line_breaks(lines);
        self.last.extend_from_slice(lines);
        self.last.drain(..self.last.len().saturating_sub(KNOWN_BY as usize));
    }
}

fn line_breaks(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Returns where the last ended line ends, and the last bytes before that; `None` if the file is now shorter.
fn end_of_lines(file: &mut File, len: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    const STEP: u64 = 1 << 16;
    let mut to = len;
    while to > 0 {
        let Some(text) = bytes_before(file, to, STEP)? else { return Ok(None) };
        if let Some(at) = text.iter().rposition(|byte| *byte == b'\n') {
            let end = to - text.len() as u64 + at as u64 + 1;
            return Ok(bytes_before(file, end, KNOWN_BY)?.map(|last| (end, last)));
        }
        to -= text.len() as u64;
    }
    Ok(Some((0, Vec::new())))
}

/// Returns at most `count` bytes before an offset; `None` if the file is shorter.
fn bytes_before(file: &mut File, offset: u64, count: u64) -> io::Result<Option<Vec<u8>>> {
    let from = offset.saturating_sub(count);
    let mut bytes = vec![0; usize::try_from(offset - from).unwrap_or(usize::MAX)];
    file.seek(SeekFrom::Start(from))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
