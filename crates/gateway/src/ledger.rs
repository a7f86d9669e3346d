//! What was sent, and what that cost.

use crate::{Log, Tokens};
use foldback_core::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What each request of a conversation cost, and what it would have cost whole: a file of a line of JSON for each.
/// What cannot be written is counted all the same.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` where it is kept in memory alone.
    path: Option<PathBuf>,
    file: Mutex<Option<File>>,
    sums: Mutex<Sums>,
    refusals: AtomicU64,
    trouble: Mutex<Option<String>>,
    log: Log,
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// When it was asked.
    pub at: Timestamp,
    /// The program, in a word.
    pub client: String,
    /// The todo; of requests that are not recorded, the name that the todos of their session begin with.
    pub session: String,
    /// As the client names it.
    pub model: String,
    /// What the request was for.
    pub class: String,
    /// What was sent.
    pub sent: Bill,
    /// What the client asked for, as it would have been billed if its conversation had always been sent whole.
    pub whole: Bill,
    /// The tokens of the answer.
    pub output: u64,
    /// Whether the provider said nothing of tokens: then four bytes are taken for one, and nothing for cached.
    pub is_estimate: bool,
}

/// What a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bill {
    /// The bytes of its body, unpacked.
    pub bytes: u64,
    /// Its tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// What these cost, in tokens that the cache has no part in.
    pub cost: f64,
}

/// The sums of several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sums {
    /// How many.
    pub requests: u64,
    /// Those of which something was left out.
    pub folded: u64,
    /// Those of whose tokens the provider said nothing.
    pub estimated: u64,
    /// What was sent.
    pub sent: Bill,
    /// What it would have been whole.
    pub whole: Bill,
    /// The tokens of the answers.
    pub output: u64,
}

impl Ledger {
    /// The name of its file in a store's folder.
    pub const FILE: &'static str = "ledger.jsonl";

    pub(crate) fn new(path: Option<PathBuf>, log: &Log) -> Self {
        let (file, sums, trouble) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (refusals, log) = (AtomicU64::new(0), Arc::clone(log));
        Self { shared: Arc::new(Shared { path, file, sums, refusals, trouble, log }) }
    }

    /// What was sent since it began.
    #[must_use]
    pub fn sums(&self) -> Sums {
        *self.shared.sums.lock()
    }

    /// How many requests of a conversation the providers refused since it began.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.load(Ordering::Relaxed)
    }

    /// The entries of a file, in the order in which they were written. A line that is none is passed over: a process
    /// that was killed may have left a part of one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
        let lines = BufReader::new(File::open(path)?).split(b'\n');
        Ok(lines.filter_map(|line| match line {
            Ok(line) => serde_json::from_slice(&line).ok().map(Ok),
            Err(error) => Some(Err(error)),
        }))
    }

    pub(crate) fn refused(&self) {
        self.shared.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a request.
    pub(crate) fn note(&self, entry: &Entry) {
        self.shared.sums.lock().add(entry);
        let Some(path) = &self.shared.path else { return };
        let mut file = self.shared.file.lock();
        let written = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            let to = match file.take() {
                Some(open) => file.insert(open),
                None => file.insert(opened(path)?),
            };
            // One write a line: several processes may add to the same file.
            to.write_all(&line)
        });
        if written.is_err() {
            *file = None;
        }
        let why = written.err().map(|error| error.to_string());
        let before = std::mem::replace(&mut *self.shared.trouble.lock(), why.clone());
        // The same again is not said again.
        if let Some(why) = why.filter(|why| before.as_ref() != Some(why)) {
            (self.shared.log)(&format!("{} cannot be written to: {why}", path.display()));
        }
    }
}

/// The file, for its owner alone. A line that was left unfinished is ended, so that the next one stands by itself.
fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.read(true).append(true).create(true).open(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

impl Sums {
    /// Adds a request.
    pub fn add(&mut self, entry: &Entry) {
        *self += Self {
            requests: 1,
            folded: u64::from(entry.sent.bytes < entry.whole.bytes),
            estimated: u64::from(entry.is_estimate),
            sent: entry.sent,
            whole: entry.whole,
            output: entry.output,
        };
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.folded += other.folded;
        self.estimated += other.estimated;
        self.sent += other.sent;
        self.whole += other.whole;
        self.output = self.output.saturating_add(other.output);
    }
}

impl AddAssign for Bill {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.tokens += other.tokens;
        self.cost += other.cost;
    }
}
