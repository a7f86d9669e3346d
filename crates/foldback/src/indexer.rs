//! The thread that lets the derived indexes catch up, away from the write route.

use foldback_blockstore::BlockStore;
use foldback_kv::Todo;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Blocks wait this long for others, so that one index commit serves many.
const GATHER: Duration = Duration::from_millis(500);

/// Wakes when blocks have closed, gathers for half a second, and lets the indexes of those todos
/// catch up. Nothing depends on it: what is not indexed yet is searched from the truth.
pub(crate) struct Indexer {
    wake: Option<Sender<Todo>>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// An indexer that does nothing, for read-only and in-memory stores.
    pub(crate) fn idle() -> Self {
        Self { wake: None, thread: None }
    }

    pub(crate) fn start(blocks: Arc<BlockStore>) -> std::io::Result<Self> {
        let (wake, woken) = channel::<Todo>();
        let thread =
            std::thread::Builder::new().name("foldback-indexer".to_owned()).spawn(move || {
                let mut closing = false;
                while !closing {
                    let Ok(first) = woken.recv() else { break };
                    let mut todos = BTreeSet::from([first]);
                    let until = Instant::now() + GATHER;
                    closing = loop {
                        match woken.recv_timeout(until.saturating_duration_since(Instant::now())) {
                            Ok(todo) => drop(todos.insert(todo)),
                            Err(RecvTimeoutError::Timeout) => break false,
                            Err(RecvTimeoutError::Disconnected) => break true,
                        }
                    };
                    for todo in &todos {
                        // An index that fails is behind, never wrong; the next batch and `doctor`
                        // try again.
                        drop(blocks.maintain(todo));
                    }
                }
            })?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Says that blocks of `todo` have closed.
    pub(crate) fn wake(&self, todo: &Todo) {
        if let Some(wake) = &self.wake {
            // The thread ends only with this value.
            drop(wake.send(todo.clone()));
        }
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
