//! An object that is open for reading.

use super::client::Client;
use crate::Error;
use crate::payload_files::PayloadFile;
use bytes::Bytes;
use object_store::path::Path;
use std::io;
use std::sync::Arc;

/// An object of up to this size is read whole when it is opened.
const WHOLE: u64 = 1 << 20;

/// How many bytes are read from the end of a larger one: the table of most payloads.
const TAIL: u64 = 16 << 10;

/// How many bytes are read at once while an object is read through.
const AHEAD: u64 = 4 << 20;

/// An object that is open for reading. Its end was read when it was opened; of the rest, what is asked for is read, and
/// more than that once it is read through.
pub(super) struct ObjectFile {
    client: Arc<Client>,
    path: Path,
    len: u64,
    tail: Window,
    window: Window,
}

/// A run of bytes, and where it begins.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Bytes,
}

impl ObjectFile {
    /// Opens an object, if there is one.
    pub(super) fn open(client: &Arc<Client>, path: Path) -> Result<Option<Self>, Error> {
        let Some(found) = client.head(&path)? else { return Ok(None) };
        let len = found.size;
        let at = if len <= WHOLE { 0 } else { len - TAIL };
        let bytes = if len == 0 { Some(Bytes::new()) } else { client.part(&path, at..len)? };
        let Some(bytes) = bytes else { return Ok(None) };
        let tail = Window { at, bytes };
        let client = client.clone();
        Ok(Some(Self { client, path, len, tail, window: Window::default() }))
    }
}

impl PayloadFile for ObjectFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let wanted = out.len() as u64;
        let end = at.checked_add(wanted).filter(|end| *end <= self.len);
        let Some(end) = end else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if wanted == 0 || self.tail.fill(at, out) || self.window.fill(at, out) {
            return Ok(());
        }
        let goes_on = at > 0 && (self.window.at..=self.window.end()).contains(&at);
        let to = if goes_on { end.max(at.saturating_add(AHEAD)).min(self.len) } else { end };
        let bytes = self.client.range(&self.path, at..to)?;
        self.window = Window { at, bytes };
        if self.window.fill(at, out) { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Window {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Fills `out` with the bytes from `at` on, if it has all of them.
    fn fill(&self, at: u64, out: &mut [u8]) -> bool {
        let inside = at.checked_sub(self.at).and_then(|from| usize::try_from(from).ok());
        let found = inside.and_then(|from| self.bytes.get(from..from.checked_add(out.len())?));
        found.map(|found| out.copy_from_slice(found)).is_some()
    }
}
