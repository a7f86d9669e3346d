//! What was sent, and what it cost.

use crate::operations::Operations;
use crate::{Contents, Entries, Log, Tokens};
use foldback_core::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What each request of a conversation cost, and what it would have cost whole: a file with a line of JSON for
/// each. Entries that cannot be written still count in the sums.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` if it is kept only in memory.
    path: Option<PathBuf>,
    file: Mutex<Option<File>>,
    sums: Mutex<Sums>,
    operations: Mutex<Operations>,
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
    /// The todo; for requests that are not recorded, the prefix of the todos of their session.
    pub session: String,
    /// The model, as the client names it.
    pub model: String,
    /// What the request was for.
    pub class: String,
    /// What was sent.
    pub sent: Bill,
    /// What the client asked for, as it would have been billed if its conversation had always been sent whole.
    pub whole: Bill,
    /// The tokens of the answer to that.
    pub output: u64,
    /// What else was requested within its turn.
    #[serde(default)]
    pub recalls: Recalls,
    /// Whether the provider reported no tokens: then four bytes count as one, and none as cached.
    pub is_estimate: bool,
    /// The tokens of what the client asked for, if the provider was asked to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Which messages were sent; `None` if it could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
}

/// The cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bill {
    /// The bytes of its body, unpacked.
    pub bytes: u64,
    /// Its tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// What these cost, in tokens at the plain price.
    pub cost: f64,
}

/// The cost of looking things up within a turn: the requests after its first, which the client does not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recalls {
    /// How many requests.
    pub requests: u64,
    /// Their tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// The tokens of the answers to them.
    pub output: u64,
    /// What they cost, in tokens at the plain price.
    pub cost: f64,
}

/// Requests that their provider was asked to count whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// How many requests.
    pub requests: u64,
    /// Their tokens, as the provider counted them.
    pub counted: u64,
    /// Their tokens, as they are in the ledger.
    pub whole: u64,
}

/// The sums of several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sums {
    /// How many requests.
    pub requests: u64,
    /// Those from which something was left out.
    pub folded: u64,
    /// Those for which the provider reported no tokens.
    pub estimated: u64,
    /// What was sent.
    pub sent: Bill,
    /// What it would have been whole.
    pub whole: Bill,
    /// The tokens of the answers to that.
    pub output: u64,
    /// What else was requested within their turns.
    pub recalls: Recalls,
    /// Those that were counted whole.
    pub checked: Checked,
}

impl Ledger {
    /// The name of its file in a store's folder.
    pub const FILE: &'static str = "ledger.jsonl";

    pub(crate) fn new(path: Option<PathBuf>, log: &Log) -> Self {
        let (file, sums, trouble) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (operations, refusals, log) = (Mutex::default(), AtomicU64::new(0), Arc::clone(log));
        Self { shared: Arc::new(Shared { path, file, sums, operations, refusals, trouble, log }) }
    }

    /// Returns what was sent since it began.
    #[must_use]
    pub fn sums(&self) -> Sums {
        *self.shared.sums.lock()
    }

    /// Returns how many requests of a conversation the providers refused since it began.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.load(Ordering::Relaxed)
    }

    /// Reads the entries of a file, in the order in which they were written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Entries> {
        Self::read_from(path, 0)
    }

    /// Reads the entries of a file from this byte on, at which a line begins.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_from(path: &Path, byte: u64) -> io::Result<Entries> {
        Entries::open(path, byte)
    }

    /// Returns the operations since it began.
    pub(crate) fn operations(&self) -> MutexGuard<'_, Operations> {
        self.shared.operations.lock()
    }

    pub(crate) fn refused(&self) {
        self.shared.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a request.
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
            // One write for each line: several processes may append to the same file.
            to.write_all(&line)
        });
        if written.is_err() {
            *file = None;
        }
        let why = written.err().map(|error| error.to_string());
        let before = std::mem::replace(&mut *self.shared.trouble.lock(), why.clone());
        // The same reason is not reported twice in a row.
        if let Some(why) = why.filter(|why| before.as_ref() != Some(why)) {
            (self.shared.log)(&format!("{} cannot be written to: {why}", path.display()));
        }
    }
}

/// Opens the file, for its owner alone. An unfinished line is ended, so that the next one is separate.
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
            recalls: entry.recalls,
            checked: entry.counted.map_or_else(Checked::default, |counted| Checked {
                requests: 1,
                counted,
                whole: entry.whole.tokens.total(),
            }),
        };
    }

    /// Returns what was spent: on what was sent, and on looking things up.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.sent.cost + self.recalls.cost
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
        self.recalls += other.recalls;
        self.checked += other.checked;
    }
}

impl AddAssign for Checked {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.counted = self.counted.saturating_add(other.counted);
        self.whole = self.whole.saturating_add(other.whole);
    }
}

impl AddAssign for Recalls {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.tokens += other.tokens;
        self.output = self.output.saturating_add(other.output);
        self.cost += other.cost;
    }
}

impl AddAssign for Bill {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.tokens += other.tokens;
        self.cost += other.cost;
    }
}
