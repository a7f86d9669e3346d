//! The text of a file, line by line.

use crate::workspace::failed;
use cap_std::fs::File;
use foldback_core::thousands;
use foldback_tool::ToolError;
use std::io::{BufRead, BufReader, Cursor, Read};

/// The text of a file, line by line.
pub(super) struct Text {
    reader: Box<dyn BufRead>,
    /// The size of the file in bytes.
    pub(super) size: u64,
    /// The number of the line that was read last, counted from 1.
    line: u64,
    /// Whether that line continues.
    is_inside: bool,
}

/// A file that is not text.
pub(super) struct Binary {
    pub(super) size: u64,
}

/// The number of bytes that decide whether a file is text, as in git.
const HEAD: usize = 8_000;

/// The byte order marks of UTF-16, little-endian first.
const UTF_16: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

impl Text {
    /// Opens the text of a file, if it is text. UTF-16 is recognised by its byte order mark and is read whole, if
    /// it has at most `most` bytes.
    pub(super) fn of(file: File, most: u64) -> std::io::Result<Result<Self, Binary>> {
        let size = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let head = reader.fill_buf()?;
        let mark = head.get(..2).and_then(|head| UTF_16.iter().position(|mark| mark == head));
        let Some(mark) = mark else {
            if head.iter().take(HEAD).any(|byte| *byte == 0) {
                return Ok(Err(Binary { size }));
            }
            return Ok(Ok(Self::new(reader, size)));
        };
        if size > most {
            return Ok(Err(Binary { size }));
        }
        let mut bytes = Vec::new();
        reader.take(most).read_to_end(&mut bytes)?;
        let units = bytes.chunks_exact(2).skip(1).map(|unit| match (mark, unit) {
            (0, &[low, high]) => u16::from_le_bytes([low, high]),
            (_, &[high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        });
        let text: String = char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        Ok(Ok(Self::new(Cursor::new(text.into_bytes()), size)))
    }

    fn new(reader: impl BufRead + 'static, size: u64) -> Self {
        Self { reader: Box::new(reader), size, line: 0, is_inside: false }
    }

    /// Reads the next line with its end, or the next `most` bytes of a longer one. Returns the number of
    /// the line, counted from 1.
    pub(super) fn next(&mut self, part: &mut Vec<u8>, most: usize) -> std::io::Result<Option<u64>> {
        part.clear();
        let limit = u64::try_from(most).unwrap_or(u64::MAX);
        if self.reader.by_ref().take(limit).read_until(b'\n', part)? == 0 {
            return Ok(None);
        }
        if !self.is_inside {
            self.line += 1;
        }
        self.is_inside = !part.ends_with(b"\n");
        Ok(Some(self.line))
    }
}

impl Binary {
    /// Returns the error for a model that asked for its text.
    pub(super) fn error(&self, shown: &str) -> ToolError {
        ToolError::permanent(format!(
            "{shown} is not text: it is a binary file of {} bytes. This tool works only on text.",
            thousands(self.size)
        ))
    }
}

/// Reads the whole file, if it is UTF-8 and has at most `most` bytes.
///
/// # Errors
/// When it is neither, or cannot be read.
pub(super) fn whole(mut file: File, most: u64, shown: &str) -> Result<String, ToolError> {
    let io = |error: std::io::Error| failed(shown, &error);
    let size = file.metadata().map_err(io)?.len();
    if size > most {
        return Err(ToolError::permanent(format!(
            "{shown} has {} bytes; files of up to {} bytes can be edited",
            thousands(size),
            thousands(most)
        )));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(most).read_to_end(&mut bytes).map_err(io)?;
    let is_binary = bytes.iter().take(HEAD).any(|byte| *byte == 0);
    String::from_utf8(bytes).map_err(|error| {
        if is_binary {
            return Binary { size }.error(shown);
        }
        ToolError::permanent(format!(
            "{shown} is not UTF-8 (byte {} is not text), so it cannot be edited without damage",
            error.utf8_error().valid_up_to()
        ))
    })
}

/// Returns whether every line has the line end of Windows.
pub(super) fn ends_lines_as_windows(text: &str) -> bool {
    let ends = text.matches('\n').count();
    ends > 0 && text.matches("\r\n").count() == ends
}

/// Returns the longest beginning of at most `most` bytes that does not split a UTF-8 character.
pub(super) fn char_safe(bytes: &[u8], most: usize) -> &[u8] {
    let mut end = most.min(bytes.len());
    // A character has up to four bytes; bytes that are not text have no characters to keep whole.
    for _ in 0..3 {
        match bytes.get(end) {
            Some(byte) if byte & 0b1100_0000 == 0b1000_0000 && end > 0 => end -= 1,
            _ => break,
        }
    }
    bytes.get(..end).unwrap_or_default()
}
