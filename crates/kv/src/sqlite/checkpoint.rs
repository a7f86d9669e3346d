//! Copies the log into the file, separately from the commits.
//!
//! A separate thread copies pages after about 4 MiB of commits, and empties the log when nothing
//! was committed for a while: a flipped byte in the log silently drops every commit after it, while
//! one in the file is noticed. The thread starts with the first commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::connection::{self, Access};
use super::room;
use crate::Batch;

/// How long emptying the log waits for readers of old pages. Writers wait meanwhile, so it is short.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The store is idle after this long without a commit.
const IDLE: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to empty a log that others keep in use.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// Pages of commits after which the log is copied (4 MiB).
const PAGES: u64 = 1024;

/// Copies the log into the file and empties it. Returns whether that was possible: a reader of old
/// pages prevents it.
pub(super) fn truncate(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    Ok(busy == 0)
}

/// The thread's handle.
pub(super) struct Checkpointer {
    file: PathBuf,
    /// Set after a failed write; from then on no page is copied.
    poisoned: Arc<AtomicBool>,
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    commits: SyncSender<u64>,
    handle: JoinHandle<()>,
}

impl Checkpointer {
    pub(super) fn new(file: PathBuf, poisoned: Arc<AtomicBool>) -> Self {
        Self { file, poisoned, thread: Mutex::new(None) }
    }

    /// Tells the thread that a batch was committed. Never waits for it.
    pub(super) fn committed(&self, batch: &Batch) {
        let pages = room::pages_of(batch) + 2 * batch.delete.len() as u64 + 1;
        let mut slot = self.thread.lock();
        if slot.is_none() {
            let (commits, heard) = sync_channel(256);
            let (file, poisoned) = (self.file.clone(), self.poisoned.clone());
            let spawned = thread::Builder::new()
                .name("kv-checkpoint".to_owned())
                .spawn(move || run(&file, &poisoned, &heard));
            // Without a thread the log is still bounded by SQLite's own checkpoints.
            *slot = spawned.ok().map(|handle| Thread { commits, handle });
        }
        if let Some(thread) = &*slot {
            match thread.commits.try_send(pages) {
                // A full queue means that the thread is at work and receives the other messages.
                Ok(()) | Err(TrySendError::Full(_)) => {}
                // The thread stopped after a failed write; the commits will get that error themselves.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }

    /// Ends the thread and waits until its connection is closed.
    pub(super) fn stop(&mut self) {
        if let Some(Thread { commits, handle }) = self.thread.get_mut().take() {
            drop(commits);
            let _ = handle.join();
        }
    }
}

fn run(file: &Path, poisoned: &AtomicBool, heard: &Receiver<u64>) {
    let mut pages = 0;
    let mut pause = IDLE;
    let mut clean = true;
    let mut connection = None;
    loop {
        let message = if clean {
            heard.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            heard.recv_timeout(pause)
        };
        let work = match message {
            Ok(more) => {
                clean = false;
                pause = IDLE;
                pages += more;
                if pages < PAGES {
                    continue;
                }
                pages = 0;
                Work::Copy
            }
            Err(RecvTimeoutError::Timeout) => Work::Empty,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if poisoned.load(Ordering::Acquire) {
            return;
        }
        let opened = match connection.take() {
            Some(open) => open,
            None => match connection::open(file, Access::Write, PATIENCE) {
                Ok(open) => open,
                // The disk may be full, or another process busy: for now.
                Err(_) => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            },
        };
        let emptied = match work {
            Work::Copy => {
                if room::copy(&opened).is_ok() {
                    connection = Some(opened);
                }
                continue;
            }
            // An idle store keeps one connection fewer.
            Work::Empty => truncate(&opened),
        };
        match emptied {
            Ok(true) => {
                clean = true;
                pages = 0;
            }
            Ok(false) | Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

enum Work {
    Copy,
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R3: the thread goes on after a failure, which may have been that of a moment.
    #[test]
    fn r3_a_failed_checkpoint_is_not_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("store");
        let file = folder.join("kv.sqlite");
        let (commits, heard) = sync_channel(0);
        let at = file.clone();
        let thread = thread::spawn(move || run(&at, &AtomicBool::new(false), &heard));
        commits.send(PAGES).unwrap();
        // Received only once the failed attempt is over: the folder was missing.
        commits.send(0).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let store = Connection::open(&file).unwrap();
        store.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        store.execute("INSERT INTO t VALUES (zeroblob(100000))", ()).unwrap();
        commits.send(PAGES).unwrap();
        drop(commits);
        thread.join().unwrap();
        assert!(std::fs::metadata(&file).unwrap().len() > 100_000, "nothing was copied");
    }
}
