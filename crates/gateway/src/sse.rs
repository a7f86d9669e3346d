//! Server-sent events (WHATWG HTML, section 9.2), cut from bytes as they arrive.

use bytes::{Bytes, BytesMut};

/// Cuts a stream into events, wherever its pieces begin and end.
#[derive(Default)]
pub(crate) struct Events {
    buffer: BytesMut,
    /// The start of the line that is being read.
    line: usize,
    /// How far it was searched for its end.
    seen: usize,
}

/// One event, or a comment, with the empty line after it.
pub(crate) struct Event {
    pub(crate) raw: Bytes,
    /// Empty if it has none.
    pub(crate) data: String,
}

impl Events {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Returns what came after the last whole event.
    pub(crate) fn rest(&mut self) -> Bytes {
        (self.line, self.seen) = (0, 0);
        self.buffer.split().freeze()
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let behind = self.buffer.get(self.seen..)?;
            let Some(end) = behind.iter().position(|byte| *byte == b'\n') else {
                self.seen = self.buffer.len();
                return None;
            };
            let end = self.seen + end;
            let is_empty = matches!(self.buffer.get(self.line..end), Some(b"" | b"\r"));
            (self.line, self.seen) = (end + 1, end + 1);
            if is_empty {
                (self.line, self.seen) = (0, 0);
                return Some(Event::of(self.buffer.split_to(end + 1).freeze()));
            }
        }
    }
}

impl Event {
    fn of(raw: Bytes) -> Self {
        // Bytes that are not text are passed on like any event without data.
        let text = std::str::from_utf8(&raw).unwrap_or_default();
        let data = text.lines().filter_map(data_of).collect::<Vec<_>>().join("\n");
        Self { raw, data }
    }

    /// Returns the same event with other data.
    pub(crate) fn with(&self, data: &str) -> String {
        let text = std::str::from_utf8(&self.raw).unwrap_or_default();
        let (mut out, mut is_said) = (String::new(), false);
        for line in text.split_inclusive('\n') {
            if data_of(line).is_none() {
                out.push_str(line);
            } else if !is_said {
                is_said = true;
                out.push_str("data: ");
                out.push_str(data);
                out.push('\n');
            }
        }
        out
    }
}

fn data_of(line: &str) -> Option<&str> {
    let data = line.strip_prefix("data:")?;
    Some(data.strip_prefix(' ').unwrap_or(data))
}
