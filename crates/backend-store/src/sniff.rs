//! Detects what a payload holds while it is streamed.

use crate::{file::reader::count_feeds, kind::kind_of_head};
use foldback_core::PayloadKind;

/// How much of the beginning decides the kind.
pub(crate) const HEAD: usize = 64 << 10;

/// A detector that sees a payload in pieces of any size and remembers only its beginning.
pub(crate) struct Sniffer {
    head: Vec<u8>,
    utf8: Utf8,
    bytes: u64,
    feeds: u64,
    last: Option<u8>,
    /// The last byte that is not white space.
    last_ink: Option<u8>,
}

impl Sniffer {
    pub(crate) fn new() -> Self {
        Self {
            head: Vec::new(),
            utf8: Utf8 { open: Vec::new(), valid: true },
            bytes: 0,
            feeds: 0,
            last: None,
            last_ink: None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        self.utf8.push(bytes);
        self.bytes += bytes.len() as u64;
        self.feeds += count_feeds(bytes);
        self.last = bytes.last().copied().or(self.last);
        let ink = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace());
        self.last_ink = ink.copied().or(self.last_ink);
    }

    pub(crate) fn lines(&self) -> u64 {
        self.feeds + u64::from(self.last.is_some_and(|last| last != b'\n'))
    }

    pub(crate) fn kind(&self) -> PayloadKind {
        if !self.utf8.valid || !self.utf8.open.is_empty() {
            return PayloadKind::Binary;
        }
        // The head may end inside a character.
        let head = match std::str::from_utf8(&self.head) {
            Ok(head) => head,
            Err(error) => {
                let (valid, _) = self.head.split_at(error.valid_up_to());
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        let whole = self.bytes <= self.head.len() as u64;
        kind_of_head(head, whole, self.last_ink)
    }
}

/// A check whether a text that comes in pieces is UTF-8.
struct Utf8 {
    /// The bytes of an unfinished character: at most three.
    open: Vec<u8>,
    valid: bool,
}

impl Utf8 {
    fn push(&mut self, mut bytes: &[u8]) {
        while self.valid && !self.open.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { return };
            bytes = rest;
            self.open.push(*first);
            match std::str::from_utf8(&self.open) {
                Ok(_) => self.open.clear(),
                Err(error) => self.valid = error.error_len().is_none(),
            }
        }
        if !self.valid {
            return;
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            self.valid = error.error_len().is_none();
            self.open.extend(bytes.iter().skip(error.valid_up_to()));
            self.open.truncate(3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind_of;

    #[test]
    fn pieces_say_what_the_whole_says() {
        let texts: [&[u8]; 8] = [
            b"",
            b"\n",
            "第一行\n第二行 😀\n".as_bytes(),
            b"a\xffb",
            b"tail \xe4\xb8",
            b"\xed\xa0\x80",
            b"{\"a\": [1, 2]}\n",
            b"fn main() {\n    println!(\"x\");\n}\n",
        ];
        for text in texts {
            let mut whole = Sniffer::new();
            whole.push(text);
            assert_eq!(whole.kind(), kind_of(text));
            for size in 1..5 {
                let mut pieces = Sniffer::new();
                text.chunks(size).for_each(|piece| pieces.push(piece));
                assert_eq!(pieces.kind(), whole.kind(), "{text:?} by {size}");
                assert_eq!(pieces.lines(), whole.lines(), "{text:?} by {size}");
            }
            let is_text = std::str::from_utf8(text).is_ok();
            assert_eq!(whole.kind() != PayloadKind::Binary, is_text, "{text:?}");
        }
    }
}
