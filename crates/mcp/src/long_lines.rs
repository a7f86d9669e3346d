//! What a server writes, where a line that is too long is followed by an error in its place.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that is read, in bytes. The transport drops a longer one without a word.
pub(crate) const LONGEST: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

/// The code of the error that stands for an answer that is too long.
pub(crate) const TOO_LONG: i32 = -31_616;

/// A reader of what a server writes. After an answer that is too long it adds an error with the number of the same
/// request, so that nobody waits for the answer until the time is over.
#[derive(Debug)]
pub(crate) struct LongLines<R> {
    inner: R,
    line: Line,
    /// What comes before anything else is read.
    pending: Vec<u8>,
    longest: usize,
}

impl<R> LongLines<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, line: Line::default(), pending: Vec::new(), longest: LONGEST }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LongLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.pending.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            let mut kept = read.len();
            for (at, byte) in read.iter().enumerate() {
                if !this.pending.is_empty() {
                    this.pending.push(*byte);
                }
                this.line.read(*byte);
                if *byte == b'\n'
                    && let Some(error) = std::mem::take(&mut this.line).error(this.longest)
                {
                    kept = kept.min(at + 1);
                    this.pending.extend_from_slice(error.as_bytes());
                }
            }
            buffer.set_filled(before + kept);
        } else {
            let most = this.pending.len().min(buffer.remaining());
            buffer.put_slice(&this.pending[..most]);
            this.pending.drain(..most);
        }
        Poll::Ready(Ok(()))
    }
}

/// A line as far as it has been read: a JSON object, of which only the fields at its top matter.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    /// The name of the field that is being read.
    name: Vec<u8>,
    /// What has been read of its value, or of the next name, if that is neither an object nor a list.
    text: Vec<u8>,
    id: Option<String>,
    is_request: bool,
}

/// The longest number of a request that is read, in bytes.
const LONGEST_ID: usize = 256;

impl Line {
    fn read(&mut self, byte: u8) {
        self.length += 1;
        if self.is_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_field();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_field(),
            b':' if self.depth == 1 => self.name = std::mem::take(&mut self.text),
            _ if byte.is_ascii_whitespace() => {}
            _ => {
                self.is_string = byte == b'"';
                self.keep(byte);
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.text.len() < LONGEST_ID {
            self.text.push(byte);
        }
    }

    fn end_field(&mut self) {
        if self.depth != 1 {
            return;
        }
        let text = std::mem::take(&mut self.text);
        match self.name.as_slice() {
            b"\"id\"" => self.id = String::from_utf8(text).ok().filter(|id| !id.is_empty()),
            b"\"method\"" => self.is_request = true,
            _ => {}
        }
        self.name.clear();
    }

    /// Returns the error that stands for the line, if it is an answer of more than `longest` bytes.
    fn error(self, longest: usize) -> Option<String> {
        let id = self.id.filter(|_| self.length > longest && !self.is_request)?;
        let message = "its answer has more than 16 MiB";
        Some(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{TOO_LONG},\"message\":\"{message}\"}}}}\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use tokio::io::AsyncReadExt;

    /// What is read of this text if lines of more than 60 bytes are too long, in pieces of this size.
    async fn read(text: &str, piece: usize) -> String {
        let mut reader = LongLines { longest: 60, ..LongLines::new(text.as_bytes()) };
        let (mut all, mut bytes) = (Vec::new(), vec![0; piece]);
        while let read @ 1.. = reader.read(&mut bytes).await.unwrap() {
            all.extend_from_slice(&bytes[..read]);
        }
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_followed_by_an_error() {
        let long = "杭州\\\"}".repeat(20);
        let error = |id: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-31616,\"message\":\"its answer has \
                 more than 16 MiB\"}}}}\n"
            )
        };
        let short = "{\"id\": 7, \"result\": {\"id\": 8}}\n";
        for (line, id) in [
            (
                format!("{{\"id\": 5, \"result\": {{\"id\": 6, \"text\": \"{long}\"}}}}\n"),
                Some("5"),
            ),
            (
                format!("{{\"result\": [{{\"id\": 6}}, \"{long}\"], \"id\": \"甲\"}}\n"),
                Some("\"甲\""),
            ),
            (format!("{{\"x\": \"{long}\", \"id\":9 }}\r\n"), Some("9")),
            (format!("{{\"id\": 5, \"method\": \"{long}\"}}\n"), None),
            (format!("{{\"result\": {{\"id\": 6}}, \"text\": \"{long}\"}}\n"), None),
            (format!("\"id\": 5 {long}\n"), None),
        ] {
            let expected = format!("{short}{line}{}{short}", id.map(error).unwrap_or_default());
            for piece in [1, 7, 64, 10_000] {
                assert_eq!(
                    read(&format!("{short}{line}{short}"), piece).await,
                    expected,
                    "{piece}"
                );
            }
        }
    }
}
