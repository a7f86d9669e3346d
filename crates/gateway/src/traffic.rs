//! Exchanges, kept in files.

use crate::body::begun;
use crate::exchange::Asked;
use crate::taped::{Taped, file_name};
use crate::{Api, Log};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use foldback_core::Timestamp;
use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// How many KiB may wait to be written. What exceeds that is not kept.
const MOST_WAITING: u32 = 256 << 10;

/// How many bytes of an answer are kept.
const LONGEST: usize = 64 << 20;

/// Keeps each exchange of a conversation as a file in a folder. A file gets its name when it is complete, so a file
/// that exists is never partial, whenever the gateway was killed. Whatever happens here, no client waits.
#[derive(Clone)]
pub struct Traffic {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    /// The key of digests.
    secret: [u8; 32],
    /// The room for exchanges that wait to be written.
    room: Arc<Semaphore>,
    /// How many were begun.
    count: AtomicU64,
    trouble: Mutex<Option<String>>,
    log: Log,
}

impl Traffic {
    pub(crate) fn new(dir: &Path, secret: [u8; 32], log: &Log) -> Self {
        let room = Arc::new(Semaphore::new(MOST_WAITING as usize));
        let (dir, log) = (dir.to_owned(), Arc::clone(log));
        let (count, trouble) = (AtomicU64::new(0), Mutex::default());
        Self { shared: Arc::new(Shared { dir, secret, room, count, trouble, log }) }
    }

    /// Begins to keep an exchange.
    pub(crate) fn asked(&self, api: Api, path: &str, headers: &HeaderMap, body: &Bytes) -> Tape {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Timestamp(i64::try_from(at.as_millis()).unwrap_or_default());
        let asked = Asked::new(at, api, path, headers, body, &self.shared.secret);
        let n = self.shared.count.fetch_add(1, Ordering::Relaxed);
        Tape { traffic: self.clone(), n, asked, began: Instant::now() }
    }

    /// Waits until everything that was taken is written.
    pub async fn finish(&self) {
        // All of the room is free again when the last exchange is written.
        drop(self.shared.room.acquire_many(MOST_WAITING).await);
    }
}

/// An exchange whose answer is awaited.
pub(crate) struct Tape {
    traffic: Traffic,
    /// Its number in this gateway.
    n: u64,
    asked: Asked,
    began: Instant,
}

impl Tape {
    /// Adds the head of its answer.
    pub(crate) fn answered(self, status: StatusCode, headers: &HeaderMap) -> Answered {
        let (headers, answer) = (headers.clone(), BytesMut::new());
        Answered { whole: Some(Whole { tape: self, status, headers, answer, times: None }) }
    }
}

/// An exchange whose answer is being given. It is written when the answer ends, however it ends.
pub(crate) struct Answered {
    whole: Option<Whole>,
}

/// An exchange, as far as it came.
struct Whole {
    tape: Tape,
    status: StatusCode,
    headers: HeaderMap,
    answer: BytesMut,
    /// When the first byte came, and the last.
    times: Option<(Duration, Duration)>,
}

/// Passes the pieces on, and copies each.
pub(crate) fn taped<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    mut answered: Option<Answered>,
) -> impl Stream<Item = Result<Bytes, E>> {
    pieces.inspect(move |piece| {
        let whole = answered.as_mut().and_then(|answered| answered.whole.as_mut());
        if let (Ok(piece), Some(whole)) = (piece, whole) {
            whole.copy(piece);
        }
    })
}

impl Drop for Answered {
    fn drop(&mut self) {
        let Some(whole) = self.whole.take() else { return };
        let traffic = whole.tape.traffic.clone();
        let kib = (whole.tape.asked.bytes() + whole.answer.len()) / 1024 + 1;
        let room = u32::try_from(kib).ok();
        let room =
            room.and_then(|kib| traffic.shared.room.clone().try_acquire_many_owned(kib).ok());
        let Some(room) = room else {
            traffic.shared.note(Err("more arrives than can be written".to_owned()));
            return;
        };
        let write = move || {
            traffic.shared.note(traffic.shared.write(whole));
            drop(room);
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(write)),
            Err(_) => write(),
        }
    }
}

impl Whole {
    fn copy(&mut self, piece: &Bytes) {
        let now = self.tape.began.elapsed();
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        let room = LONGEST - self.answer.len();
        self.answer.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }
}

impl Shared {
    /// Writes an exchange.
    fn write(&self, whole: Whole) -> Result<(), String> {
        let asked = &whole.tape.asked;
        let packed = || "a body has an unknown encoding, or is not text".to_owned();
        let request = asked.body().ok_or_else(packed)?;
        let answer = whole.answer.freeze();
        let answer = begun(&whole.headers, &answer).ok_or_else(packed)?;
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let at = u64::try_from(asked.at.0).unwrap_or_default();
        let mut headers = BTreeMap::new();
        for (name, value) in asked.headers.iter().filter(|(name, _)| *name != CONTENT_ENCODING) {
            let value = String::from_utf8_lossy(value.as_bytes());
            headers.insert(Cow::Borrowed(name.as_str()), value);
        }
        let taped = Taped {
            at,
            api: asked.api,
            path: Cow::Borrowed(&asked.path),
            client: Cow::Borrowed(&asked.sender.client),
            session: asked.sender.session(&self.secret).map(|digest| digest.to_hex().to_string()),
            headers,
            status: whole.status.as_u16(),
            request: Cow::Owned(request),
            answer: String::from_utf8_lossy(&answer),
            first_ms: whole.times.map(|(first, _)| ms(first)),
            last_ms: whole.times.map(|(_, last)| ms(last)),
        };
        let mut line = serde_json::to_vec(&taped).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let name = file_name(at, whole.tape.n);
        let (part, file) = (format!("{name}.part"), format!("{name}.json"));
        let (part, file) = (self.dir.join(part), self.dir.join(file));
        let written = self.create(&part).and_then(|mut to| to.write_all(&line));
        written.and_then(|()| std::fs::rename(&part, &file)).map_err(|error| {
            // What is left of it is of no use.
            let _ = std::fs::remove_file(&part);
            format!("{} cannot be written to: {error}", self.dir.display())
        })
    }

    /// Creates a file that only its owner can read, in a folder that is created if it does not exist.
    fn create(&self, path: &Path) -> std::io::Result<File> {
        let (mut folder, mut file) = (DirBuilder::new(), OpenOptions::new());
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
        }
        folder.recursive(true).create(&self.dir)?;
        file.write(true).create_new(true).open(path)
    }

    /// Reports why an exchange was not kept. The same reason is not reported twice in a row.
    fn note(&self, written: Result<(), String>) {
        let why = written.err();
        let before = std::mem::replace(&mut *self.trouble.lock(), why.clone());
        if let Some(why) = why.filter(|why| before.as_ref() != Some(why)) {
            (self.log)(&format!("an exchange is not kept: {why}"));
        }
    }
}
