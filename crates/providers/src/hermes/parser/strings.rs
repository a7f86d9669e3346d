//! Where the strings of JSON and of Python literals begin and end.

/// Follows strings byte by byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    /// The quote that the open string began with.
    quote: Option<u8>,
    /// Whether a backslash precedes the next byte.
    is_escaped: bool,
    /// Whether a string ended, and only white space came since.
    is_behind: bool,
}

/// The position of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// In a string; its quotes count as inside.
    Inside,
    /// Outside strings.
    Outside,
    /// After a string, where nothing like it may be: the quote before it did not end the string, so
    /// from there on what looks like outside is inside.
    Misplaced,
}

impl Strings {
    /// Returns whether a string is open.
    pub(super) fn is_open(&self) -> bool {
        self.quote.is_some()
    }

    /// Takes the next byte.
    pub(super) fn take(&mut self, byte: u8) -> Placed {
        if let Some(quote) = self.quote {
            if self.is_escaped {
                self.is_escaped = false;
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else if byte == quote {
                self.quote = None;
                self.is_behind = true;
            }
            return Placed::Inside;
        }
        if byte.is_ascii_whitespace() {
            return Placed::Outside;
        }
        let is_behind = std::mem::take(&mut self.is_behind);
        match byte {
            b',' | b':' | b'}' | b']' | b')' => Placed::Outside,
            _ if is_behind => Placed::Misplaced,
            b'"' | b'\'' => {
                self.quote = Some(byte);
                Placed::Inside
            }
            _ => Placed::Outside,
        }
    }
}
