//! Server-sent events, parsed from bytes as they arrive.

use crate::failure::{no_text, too_long};
use foldback_llm::ModelError;

/// Assembles events. Names, ids and retry times are ignored: both APIs put everything in the data.
#[derive(Debug)]
pub(crate) struct Events {
    /// The longest event that is read, in bytes.
    longest: usize,
    /// The line that is being read.
    line: Vec<u8>,
    /// Whether the last byte was a carriage return: a line feed after it is part of the same line end.
    returned: bool,
    /// The data of the event that is being read, once it has a line.
    data: Option<String>,
}

impl Events {
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, line: Vec::new(), returned: false, data: None }
    }

    /// Reads further bytes, and adds the data of every event that ends in them. A comment is an event without data.
    ///
    /// # Errors
    /// When a line is not UTF-8, or an event is too long. The events before it have been added.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<String>,
    ) -> Result<(), ModelError> {
        for byte in bytes {
            match byte {
                b'\n' if self.returned => {}
                b'\n' | b'\r' => self.end_line(events)?,
                _ => self.line.push(*byte),
            }
            self.returned = *byte == b'\r';
        }
        self.check_length()
    }

    /// Adds the event that is open at the end of the stream. Some servers omit the last empty line.
    ///
    /// # Errors
    /// When the last line is not UTF-8, or the event is too long.
    pub(crate) fn finish(&mut self, events: &mut Vec<String>) -> Result<(), ModelError> {
        if !self.line.is_empty() {
            self.end_line(events)?;
        }
        events.extend(self.data.take());
        Ok(())
    }

    /// Handles the end of a line: an empty line ends an event, any other belongs to it.
    fn end_line(&mut self, events: &mut Vec<String>) -> Result<(), ModelError> {
        self.check_length()?;
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            events.extend(self.data.take());
            return Ok(());
        }
        let data = self.data.get_or_insert_default();
        // A byte order mark may precede the first line, and means nothing in any other.
        let line = std::str::from_utf8(&line).map_err(no_text)?;
        let line = line.trim_start_matches('\u{feff}').trim();
        if let Some(more) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(more.trim());
        }
        Ok(())
    }

    /// Fails as soon as an event exceeds the limit.
    fn check_length(&self) -> Result<(), ModelError> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held > self.longest {
            return Err(too_long("an event of the answer", held, self.longest));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_llm::ModelErrorKind;
    use proptest::prelude::*;

    /// Returns the data of all events if the bytes come in pieces of this size.
    fn read(bytes: &[u8], size: usize) -> Vec<String> {
        let (mut reader, mut events) = (Events::new(bytes.len()), Vec::new());
        bytes.chunks(size).for_each(|piece| reader.read(piece, &mut events).unwrap());
        reader.finish(&mut events).unwrap();
        events
    }

    #[test]
    fn events_are_read_as_servers_write_them() {
        for (bytes, expected) in [
            ("data: 上海\n\ndata: b\n\n", vec!["上海", "b"]),
            ("data:a\r\n\r\ndata:b\r\n\r\n", vec!["a", "b"]),
            ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
            ("data: a\r\n\ndata: b\n\r\n", vec!["a", "b"]),
            ("event: ping\nid: 7\nretry: 9\ndata: a\n\n", vec!["a"]),
            ("data: {\ndata:   \"x\": 1\ndata: }\n\n", vec!["{\n\"x\": 1\n}"]),
            (": still at it\n\ndata: a\n\n", vec!["", "a"]),
            ("event: ping\n\ndata:\n\n", vec!["", ""]),
            ("\n\n\r\n\r\ndata: a\n\n\n\n", vec!["a"]),
            ("no field\ndata\ndata: a: b\n\n", vec!["a: b"]),
            ("\u{feff}data: a\n\n", vec!["a"]),
            ("data: a\n\ndata: no empty line", vec!["a", "no empty line"]),
            ("data: a\n\ndata: one end\n", vec!["a", "one end"]),
            ("", vec![]),
        ] {
            for size in 1..=bytes.len().max(1) {
                assert_eq!(read(bytes.as_bytes(), size), expected, "{bytes:?} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_an_error_behind_what_came_before() {
        let mut events = Vec::new();
        let mut reader = Events::new(64);
        let bytes = b"data: a\n\ndata: \xff\n\ndata: b\n\n";
        assert!(reader.read(bytes, &mut events).is_err());
        assert_eq!(events, ["a"]);

        let mut reader = Events::new(64);
        let cut = &"data: 上".as_bytes()[..8];
        assert_eq!(reader.read(cut, &mut events), Ok(()));
        assert!(reader.finish(&mut events).is_err());
    }

    /// One long line, many lines, and comments, however the bytes are cut.
    #[test]
    fn what_is_held_of_an_event_has_a_bound() {
        let fits = "data: 上海\n\ndata: 12345678\n\n: 1234567890\n\n";
        for long in ["data: 123456789", "data: 1\ndata: 2\ndata: 345678", ": 上海上海上"] {
            for size in 1..=fits.len() + long.len() {
                let (mut reader, mut events) = (Events::new(14), Vec::new());
                let bytes = format!("{fits}{long}");
                let read = bytes
                    .as_bytes()
                    .chunks(size)
                    .try_for_each(|piece| reader.read(piece, &mut events));
                let error = read.unwrap_err();
                assert_eq!(events, ["上海", "12345678", ""], "{long:?} by {size}");
                assert_eq!(error.kind, ModelErrorKind::Response);
                let expected = "an event of the answer is too long: ";
                assert!(error.message.starts_with(expected), "{error}");
                assert!(error.message.ends_with("bytes came, and at most 14 are read"), "{error}");
            }
        }
    }

    proptest! {
        /// Whatever the bytes are, and wherever they are cut, the events are the same.
        #[test]
        fn cuts_change_nothing(
            lines in prop::collection::vec(("(data:|event:|:|)( )?[a-z上🌧]{0,4}", "\n|\r|\r\n|\n\n|\r\r|\r\n\r\n"), 0..12),
            size in 1..9_usize,
        ) {
            let text: String = lines.into_iter().map(|(line, end)| line + &end).collect();
            prop_assert_eq!(read(text.as_bytes(), size), read(text.as_bytes(), text.len().max(1)));
        }
    }
}
