//! Reads bytes, plain or packed, and returns whole lines.

use crate::{Error, Limits};
use std::io::{self, BufRead, BufReader, Read};
use zstd::stream::read::Decoder;

/// An input that returns its lines one by one, within the limits.
pub(crate) struct Input<'a> {
    name: String,
    limits: Limits,
    reader: BufReader<Unpacked<'a>>,
    /// Lines that were returned.
    lines: u64,
    /// Bytes that were returned.
    bytes: u64,
    /// Whether the input is inside a line that was too large, and was counted.
    is_within: bool,
}

/// One line, or the whole rest.
pub(crate) struct Line {
    /// The number of its first line, counted from 1.
    pub(crate) number: u64,
    /// The offset of its first byte, counted from 0.
    pub(crate) offset: u64,
    /// The bytes, including the line break.
    pub(crate) bytes: Vec<u8>,
}

/// Hardly any line is longer.
const SHORT: u64 = 1 << 20;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A packed input may ask for a window of two to the power of this many bytes (32 MiB), which is
/// allocated before anything is unpacked. All zstd levels up to 20 ask for less.
const WINDOW_LOG_MOST: u32 = 25;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl<'a> Input<'a> {
    pub(crate) fn open(
        name: String,
        reader: Box<dyn Read + Send + 'a>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Io { file: name.clone(), source };
        let mut packed =
            BufReader::with_capacity(1 << 16, Counted { inner: reader, bytes: 0, failed: false });
        let unpacked = if packed.fill_buf().map_err(failed)?.starts_with(&ZSTD) {
            let mut decoder = Decoder::with_buffer(packed).map_err(failed)?;
            decoder.window_log_max(WINDOW_LOG_MOST).map_err(failed)?;
            Unpacked::Zstd { decoder: Box::new(decoder), bytes: 0, limits, bomb: false }
        } else {
            Unpacked::Plain(packed)
        };
        let mut input = Self {
            name,
            limits,
            reader: BufReader::with_capacity(1 << 16, unpacked),
            lines: 0,
            bytes: 0,
            is_within: false,
        };
        if input.peek()?.starts_with(BYTE_ORDER_MARK) {
            input.reader.consume(BYTE_ORDER_MARK.len());
            input.bytes = BYTE_ORDER_MARK.len() as u64;
        }
        Ok(input)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts lines and bytes from here on, for a text that follows this many.
    pub(crate) fn stands_behind(&mut self, bytes: u64, lines: u64) {
        (self.bytes, self.lines) = (self.bytes + bytes, self.lines + lines);
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.reader.get_ref(), Unpacked::Zstd { .. })
    }

    /// Returns how many lines were returned or skipped.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the next bytes, at least one unless the input is at its end.
    pub(crate) fn peek(&mut self) -> Result<&[u8], Error> {
        match self.reader.fill_buf() {
            // The borrow of a buffer that is returned early would last too long, so it is fetched again.
            Ok(_) => Ok(self.reader.buffer()),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Returns the next line that is not blank; `None` at the end.
    pub(crate) fn line(&mut self) -> Result<Option<Line>, Error> {
        loop {
            let mut line = self.begin();
            self.read(&mut line, true)?;
            if line.bytes.is_empty() {
                return Ok(None);
            }
            if !line.bytes.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Like [`line`](Self::line), for lines of at most `most` bytes. A longer one is read only as far as that
    /// shows; [`pass_line`](Self::pass_line) skips the rest.
    pub(crate) fn line_within(&mut self, most: u64) -> Result<Option<Line>, Error> {
        loop {
            let mut line = self.begin();
            // Room for a line break beyond the limit. A growing vector temporarily holds twice its contents, so
            // the room for a long line is reserved at once; pages that are not written to use no memory yet.
            let whole = most.saturating_add(2);
            for most in [whole.min(SHORT), whole] {
                if most > SHORT {
                    line.bytes.reserve_exact(
                        usize::try_from(most).unwrap_or(usize::MAX) - line.bytes.len(),
                    );
                }
                let mut reader = self.reader.by_ref().take(most - line.bytes.len() as u64);
                let read = reader.read_until(b'\n', &mut line.bytes);
                read.map_err(|source| self.failed(source))?;
                if (line.bytes.len() as u64) < most || line.bytes.ends_with(b"\n") {
                    break;
                }
            }
            self.bytes += line.bytes.len() as u64;
            self.lines += 1;
            let text = line.bytes.strip_suffix(b"\n").unwrap_or(&line.bytes);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.len() as u64 > most {
                self.is_within = !line.bytes.ends_with(b"\n");
                let place = crate::Place { file: self.name.clone(), line: line.number };
                return Err(Error::LongLine { place, limit: most });
            }
            if line.bytes.is_empty() {
                self.lines -= 1;
                return Ok(None);
            }
            if !line.bytes.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Adds everything that follows to `line`.
    pub(crate) fn rest(&mut self, line: &mut Line) -> Result<(), Error> {
        self.read(line, false)
    }

    fn begin(&self) -> Line {
        Line { number: self.lines + 1, offset: self.bytes, bytes: Vec::new() }
    }

    fn read(&mut self, line: &mut Line, one_line: bool) -> Result<(), Error> {
        let limit = self.limits.conversation_bytes;
        let had = line.bytes.len();
        // One byte more than allowed distinguishes a text of just the allowed size from a larger one.
        let left = limit.saturating_add(1).saturating_sub(had as u64);
        let mut reader = self.reader.by_ref().take(left);
        let read = if one_line {
            reader.read_until(b'\n', &mut line.bytes)
        } else {
            reader.read_to_end(&mut line.bytes)
        };
        let read = read.map_err(|source| self.failed(source))?;
        if line.bytes.len() as u64 > limit {
            if one_line {
                self.bytes += line.bytes.len() as u64;
                self.lines += 1;
                self.is_within = !line.bytes.ends_with(b"\n");
                line.bytes = Vec::new();
                self.pass_line()?;
            }
            let place = crate::Place { file: self.name.clone(), line: line.number };
            return Err(Error::LargeConversation { place, limit });
        }
        self.bytes += read as u64;
        let new = line.bytes.get(had..).unwrap_or(&[]);
        self.lines += new.iter().filter(|b| **b == b'\n').count() as u64;
        Ok(())
    }

    /// Skips the rest of a line that was too large, without holding it. Does nothing if no line was.
    pub(crate) fn pass_line(&mut self) -> Result<(), Error> {
        while self.is_within {
            let ahead = self.peek()?;
            let end = ahead.iter().position(|byte| *byte == b'\n');
            let passed = end.map_or(ahead.len(), |end| end + 1);
            self.is_within = end.is_none() && passed > 0;
            self.reader.consume(passed);
            self.bytes += passed as u64;
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        let file = self.name.clone();
        match self.reader.get_ref() {
            Unpacked::Plain(_) => Error::Io { file, source },
            Unpacked::Zstd { bomb: true, bytes, limits, .. } => {
                Error::Bomb { file, ratio: limits.ratio, unpacked: *bytes }
            }
            Unpacked::Zstd { decoder, .. } => match decoder.get_ref().get_ref().failed {
                true => Error::Io { file, source },
                false => Error::Packed { file, reason: source.to_string() },
            },
        }
    }
}

/// The plain bytes of an input that may be packed.
enum Unpacked<'a> {
    Plain(BufReader<Counted<'a>>),
    Zstd {
        decoder: Box<Decoder<'static, BufReader<Counted<'a>>>>,
        /// Bytes that were unpacked.
        bytes: u64,
        limits: Limits,
        /// Whether reading stopped because the input unpacked to too much.
        bomb: bool,
    },
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buf),
            Self::Zstd { decoder, bytes, limits, bomb } => {
                let read = decoder.read(buf)?;
                *bytes += read as u64;
                let packed = decoder.get_ref().get_ref().bytes.max(1);
                if *bytes > limits.ratio_from && *bytes / packed > limits.ratio {
                    *bomb = true;
                    return Err(io::Error::other("the input unpacked to too much"));
                }
                Ok(read)
            }
        }
    }
}

/// A reader that counts what is read, and remembers whether reading itself failed.
struct Counted<'a> {
    inner: Box<dyn Read + Send + 'a>,
    bytes: u64,
    failed: bool,
}

impl Read for Counted<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf);
        match &read {
            Ok(read) => self.bytes += *read as u64,
            Err(error) => self.failed |= error.kind() != io::ErrorKind::Interrupted,
        }
        read
    }
}
