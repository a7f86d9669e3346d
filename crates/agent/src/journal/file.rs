//! A journal in a file.

use super::{Journal, JournalError, Record};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the format below.
const VERSION: u32 = 1;

/// The most bytes that are read of a file that may not be a journal.
const FOUND_BYTES: u64 = 400;

/// A journal in an append-only file of JSON Lines, for one process at a time.
///
/// The first line names the version. Each other line is one record, with its number and a checksum
/// over both. An incomplete last line was being written when the process or the machine died: it is
/// removed when the journal is opened. Any other damage is an error.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    file: Arc<Locked>,
    state: Arc<Mutex<State>>,
    /// The number of durable records. It is locked while the file is synced, so that calls that wait for
    /// a sync share one.
    synced: tokio::sync::Mutex<u64>,
    /// The change that is made to a record's text.
    change: Option<Change>,
}

/// A change to a text before it is written.
type Change = for<'t> fn(&'t str) -> Cow<'t, str>;

#[derive(Debug)]
struct State {
    /// The number of records.
    records: u64,
    /// The bytes that they and the first line take.
    bytes: u64,
    /// The places of each run's records.
    runs: BTreeMap<String, Vec<Place>>,
    /// Whether a write or a sync failed, so that the end of the file is unknown.
    broken: bool,
}

/// The place of a record.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its number.
    n: u64,
    /// The offset of its line, in bytes, and the length with its line break.
    at: u64,
    length: usize,
}

impl State {
    /// Adds a record of `length` bytes.
    fn add(&mut self, run: &str, length: usize) {
        let place = Place { n: self.records, at: self.bytes, length };
        match self.runs.get_mut(run) {
            Some(places) => places.push(place),
            None => {
                self.runs.insert(run.to_owned(), vec![place]);
            }
        }
        self.records += 1;
        self.bytes += length as u64;
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    journal: u32,
}

/// Any other line.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    n: u64,
    #[serde(borrow)]
    check: Cow<'a, str>,
    #[serde(borrow)]
    entry: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    run: Cow<'a, str>,
    #[serde(borrow)]
    record: &'a RawValue,
}

impl FileJournal {
    /// Opens the journal at `path`, or creates a new one. Its folder must exist.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use, is damaged before its end, or is not a journal.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
        }
        let locked = Locked(file);
        let mut file = &locked.0;

        let mut state = read(&path)?;
        let length = file.metadata().map_err(io("measure"))?.len();
        let mut header = serde_json::to_vec(&Header { journal: VERSION })?;
        header.push(b'\n');
        let whole = state.bytes;
        if whole == 0 {
            check_is_torn_header(&path, &header)?;
        }
        if whole < length {
            file.set_len(whole).map_err(io("cut the torn end off"))?;
        }
        if whole == 0 {
            file.write_all(&header).map_err(io("write"))?;
            state.bytes = header.len() as u64;
        }
        if whole < length || whole == 0 {
            file.sync_all().map_err(io("sync"))?;
            sync_folder_of(&path).map_err(io("sync the folder of"))?;
        }
        Ok(Self {
            path,
            file: Arc::new(locked),
            state: Arc::new(Mutex::new(state)),
            synced: tokio::sync::Mutex::new(0),
            change: None,
        })
    }

    /// Applies `change` to the JSON of each record before it is written, for a journal that must not hold
    /// everything. Later reads return what was written. A text that was changed once must not change again.
    #[must_use]
    pub fn with_change(mut self, change: for<'t> fn(&'t str) -> Cow<'t, str>) -> Self {
        self.change = Some(change);
        self
    }

    fn io(&self, action: &'static str) -> impl FnOnce(io::Error) -> JournalError {
        let path = self.path.clone();
        move |source| JournalError::Io { action, path, source }
    }

    fn broken(&self) -> JournalError {
        JournalError::Broken { path: self.path.clone() }
    }
}

/// A file that stays locked until this value is dropped.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    /// Releases the lock at once. If the file were only closed, a child process that is just being started
    /// would keep the lock until it has become another program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Journal for FileJournal {
    /// The change is made to a text as JSON, as it is to the text in a record.
    fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let changed = self.change.and_then(|change| {
            let json = serde_json::to_string(text).ok()?;
            match change(&json) {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => serde_json::from_str(&changed).ok(),
            }
        });
        changed.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        let mut record = serde_json::value::to_raw_value(record)?;
        if let Some(change) = self.change {
            record = RawValue::from_string(change(record.get()).into_owned())?;
        }
        let entry = Entry { run: Cow::Borrowed(run), record: &record };
        let entry = serde_json::value::to_raw_value(&entry)?;

        let mut state = self.state.lock();
        if state.broken {
            return Err(self.broken());
        }
        let n = state.records;
        let check = Cow::Owned(check(n, entry.get()));
        let mut line = serde_json::to_vec(&Line { n, check, entry: &entry })?;
        line.push(b'\n');
        if let Err(source) = (&self.file.0).write_all(&line) {
            state.broken = true;
            return Err(self.io("write")(source));
        }
        state.add(run, line.len());
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        async move {
            let wanted = self.state.lock().records;
            let mut synced = self.synced.lock().await;
            if *synced >= wanted {
                return Ok(());
            }
            let (written, broken) = {
                let state = self.state.lock();
                (state.records, state.broken)
            };
            if broken {
                return Err(self.broken());
            }
            let (file, state) = (Arc::clone(&self.file), Arc::clone(&self.state));
            let sync = move || {
                let done = file.0.sync_data();
                // After a failed sync the state of the disk is unknown, also to a second sync. It is noted
                // here because the caller that waits for the sync may be gone by now.
                state.lock().broken |= done.is_err();
                done
            };
            let done = tokio::task::spawn_blocking(sync).await;
            done.map_err(io::Error::other).flatten().map_err(self.io("sync"))?;
            *synced = written;
            Ok(())
        }
        .boxed()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        let places = self.state.lock().runs.get(run).cloned().unwrap_or_default();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let io = |source| self.io("read")(source);
        let mut reader = BufReader::new(File::open(&self.path).map_err(io)?);
        let (mut line, mut position) = (Vec::new(), 0_u64);
        let record = |Place { n, at, length }: Place| {
            // Neighbouring lines are read from one buffer.
            reader.seek_relative(at.cast_signed() - position.cast_signed()).map_err(io)?;
            line.resize(length, 0);
            reader.read_exact(&mut line).map_err(io)?;
            position = at + length as u64;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let damaged = |why| JournalError::Damaged { path: self.path.clone(), line: n + 2, why };
            read_line(line, n, |_, record| serde_json::from_str(record)).map_err(damaged)
        };
        places.into_iter().map(record).collect()
    }
}

/// Reads the intact part of a journal.
fn read(path: &Path) -> Result<State, JournalError> {
    let io = |source| JournalError::Io { action: "read", path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(io)?);
    let mut state = State { records: 0, bytes: 0, runs: BTreeMap::new(), broken: false };
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(io)?;
        if line.pop() != Some(b'\n') {
            break;
        }
        if number == 1 {
            check_header(path, &line)?;
            state.bytes = length as u64;
        } else {
            let damaged = |why| JournalError::Damaged { path: path.to_owned(), line: number, why };
            let expected = state.records;
            let add = |run: &str, _: &str| {
                state.add(run, length);
                Ok(())
            };
            read_line(&line, expected, add).map_err(damaged)?;
        }
    }
    Ok(state)
}

fn check_header(path: &Path, line: &[u8]) -> Result<(), JournalError> {
    match serde_json::from_slice::<Header>(line) {
        Ok(Header { journal: VERSION }) => Ok(()),
        _ => Err(not_a_journal(path, line)),
    }
}

/// Checks that a file without a line break is empty, or holds the beginning of a journal's first line.
/// Anything else is a foreign file.
fn check_is_torn_header(path: &Path, header: &[u8]) -> Result<(), JournalError> {
    let io = |source| JournalError::Io { action: "read", path: path.to_owned(), source };
    let mut beginning = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(FOUND_BYTES).read_to_end(&mut beginning).map_err(io)?;
    if header.starts_with(&beginning) { Ok(()) } else { Err(not_a_journal(path, &beginning)) }
}

fn not_a_journal(path: &Path, beginning: &[u8]) -> JournalError {
    let found = String::from_utf8_lossy(beginning).chars().take(80).collect();
    JournalError::Version { path: path.to_owned(), expected: VERSION, found }
}

/// Passes the run and the record of a line, as JSON text, to `take`.
fn read_line<T>(
    line: &[u8],
    expected: u64,
    take: impl FnOnce(&str, &str) -> Result<T, serde_json::Error>,
) -> Result<T, String> {
    let words = |error: serde_json::Error| error.to_string();
    let Line { n, check: found, entry } = serde_json::from_slice(line).map_err(words)?;
    if n != expected {
        return Err(format!("it holds record {n} where record {expected} is expected"));
    }
    let computed = check(n, entry.get());
    if found != computed {
        return Err(format!("its checksum is {computed}, and it says {found}"));
    }
    let entry: Entry<'_> = serde_json::from_str(entry.get()).map_err(words)?;
    take(&entry.run, entry.record.get()).map_err(words)
}

/// Returns the checksum of a record: half of a BLAKE3 hash is plenty against accidents.
fn check(n: u64, entry: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&n.to_be_bytes());
    hasher.update(entry.as_bytes());
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(16);
    hex
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
