//! Making the vectors of recorded messages again with another embedder.
//!
//! Todo by todo, in batches that are durable each; killed at any point it goes on from the last
//! batch. One process at a time does it, under a lock of the store's folder.

use crate::Error;
use crate::embedding::{EmbeddingProgress, remembered};
use crate::record::vectors_of;
use crate::texts::{self, Texts};
use foldback_backend_store::BackendStore;
use foldback_blockstore::{BlockStore, Error as BlockError};
use foldback_core::{Embedder, SeqNo, Vectors};
use foldback_embedder::WordsOnly;
use foldback_kv::{Kv, Registry, Todo};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A batch ends after this many messages, or this many vectors: about a second of a larger model.
const BATCH_MESSAGES: u64 = 64;
const BATCH_VECTORS: usize = 64;

/// Todos are walked in steps of this many.
const STEP: usize = 512;

/// How often is looked how far another process has come.
const LOOK: Duration = Duration::from_millis(100);

/// The thread that makes vectors again, while a memory is open.
#[derive(Default)]
pub(crate) struct Reembedder {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reembedder {
    /// Begins the work, unless it is under way already.
    pub(crate) fn start(&self, work: Work) -> Result<(), Error> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let Some(path) = work.lock.clone() else { return Ok(()) };
        let stop = self.stop.clone();
        let run = move || {
            // What fails here is left for the next time, and for `reembed`, which tells of it.
            drop(work.run(&stop, &mut |_| {}));
        };
        let started = Builder::new().name("foldback-reembedder".to_owned()).spawn(run);
        *thread = Some(started.map_err(|source| Error::Io { path, source })?);
        Ok(())
    }
}

impl Drop for Reembedder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            drop(thread.join());
        }
    }
}

/// What the work is done with.
pub(crate) struct Work {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) registry: Registry,
    pub(crate) blocks: Arc<BlockStore>,
    pub(crate) payloads: Arc<BackendStore>,
    pub(crate) embedder: Arc<dyn Embedder>,
    /// The model whose vectors are wanted: the embedder's, or where that stands in for the store's
    /// own, which cannot be loaded, that one's.
    pub(crate) model_id: String,
    /// The file whose lock lets one process do it; `None` for a store that is this process's alone.
    pub(crate) lock: Option<PathBuf>,
}

/// How a turn at the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    /// Another process, or another thread, is at it.
    Busy,
    /// It was told to stop, or another embedder is the store's.
    Stopped,
}

impl Texts for Work {
    fn blocks(&self) -> &BlockStore {
        &self.blocks
    }

    fn payloads(&self) -> &BackendStore {
        &self.payloads
    }
}

impl Work {
    /// How many messages have the vectors that are wanted.
    pub(crate) fn progress(&self) -> Result<EmbeddingProgress, Error> {
        let mut progress = EmbeddingProgress::default();
        self.for_each_todo(|todo| {
            let messages = self.blocks.head(todo)?.messages;
            progress.messages += messages;
            let done = self.done(todo)?.min(messages);
            progress.done += done;
            for seq in done..messages {
                progress.done += u64::from(self.has_vectors(todo, seq)?);
            }
            Ok(true)
        })?;
        Ok(progress)
    }

    /// Works, or waits for whoever does, until nothing is left or another embedder is chosen.
    pub(crate) fn run_to_the_end(
        &self,
        mut report: impl FnMut(EmbeddingProgress),
    ) -> Result<EmbeddingProgress, Error> {
        let goes_on = AtomicBool::new(false);
        while self.run(&goes_on, &mut report)? == Turn::Busy {
            report(self.progress()?);
            std::thread::sleep(LOOK);
        }
        self.progress()
    }

    /// One turn at all todos.
    pub(crate) fn run(
        &self,
        stop: &AtomicBool,
        report: &mut dyn FnMut(EmbeddingProgress),
    ) -> Result<Turn, Error> {
        if !self.is_chosen()? {
            return Ok(Turn::Stopped);
        }
        let Some(_lock) = self.take_lock()? else { return Ok(Turn::Busy) };
        let mut progress = self.progress()?;
        report(progress);
        let mut turn = Turn::Done;
        self.for_each_todo(|todo| {
            turn = match self.reembed(todo, stop, &mut progress, report) {
                // A todo that was forgotten meanwhile is no reason to stop.
                Err(_) if self.registry.find(todo.id())?.as_ref() != Some(todo) => Turn::Done,
                other => other?,
            };
            Ok(turn == Turn::Done)
        })?;
        Ok(turn)
    }

    fn reembed(
        &self,
        todo: &Todo,
        stop: &AtomicBool,
        progress: &mut EmbeddingProgress,
        report: &mut dyn FnMut(EmbeddingProgress),
    ) -> Result<Turn, Error> {
        let messages = self.blocks.head(todo)?.messages;
        let mut until = self.done(todo)?;
        while until < messages {
            let from = until;
            let mut vectors: Vec<(SeqNo, Vectors)> = Vec::new();
            let mut stopped = false;
            while until < messages.min(from + BATCH_MESSAGES) {
                stopped = stop.load(Ordering::Relaxed);
                let rows: usize = vectors.iter().map(|(_, vectors)| vectors.len()).sum();
                if stopped || rows >= BATCH_VECTORS {
                    break;
                }
                if !self.has_vectors(todo, until)? {
                    progress.done += 1;
                    let made = self.vectors(todo, until)?;
                    vectors.extend(made.map(|made| (SeqNo(until), made)));
                }
                until += 1;
            }
            // Between this look and the commit nobody else is at it: the lock is held.
            if !self.is_chosen()? {
                return Ok(Turn::Stopped);
            }
            if until > from {
                self.blocks.replace_vectors(todo, &self.model_id, &vectors, until)?;
            }
            report(*progress);
            if stopped {
                return Ok(Turn::Stopped);
            }
        }
        if self.blocks.vector_state(todo)?.indexes_stale {
            self.blocks.finish_vectors(todo)?;
            // An index that cannot be made now is behind, and no more.
            drop(self.blocks.maintain(todo));
        }
        Ok(Turn::Done)
    }

    /// The messages below this number are done.
    fn done(&self, todo: &Todo) -> Result<u64, Error> {
        let state = self.blocks.vector_state(todo)?;
        Ok(if state.model_id == self.model_id { state.until } else { 0 })
    }

    /// Whether a message has the vectors that are wanted.
    fn has_vectors(&self, todo: &Todo, seq: u64) -> Result<bool, Error> {
        match self.blocks.vectors(todo, SeqNo(seq)) {
            Ok(vectors) => Ok(vectors.is_some_and(|v| v.model_id == self.model_id)),
            // They are made again.
            Err(BlockError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The vectors of a message; `None` where it has nothing to embed or cannot be rebuilt.
    fn vectors(&self, todo: &Todo, seq: u64) -> Result<Option<Vectors>, Error> {
        let stored = match self.blocks.messages(todo, seq..seq + 1) {
            Ok(stored) => stored,
            Err(BlockError::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(stored) = stored.first().filter(|stored| !stored.recall) else { return Ok(None) };
        // `verify` names what is damaged.
        let Ok(message) = texts::fill(self, todo, SeqNo(seq), stored, 0) else { return Ok(None) };
        let vectors = vectors_of(self.embedder.as_ref(), &message)?;
        Ok(Some(vectors).filter(|vectors| !vectors.is_empty()))
    }

    /// Whether the embedder is the store's own, and one that makes vectors.
    fn is_chosen(&self) -> Result<bool, Error> {
        let model = self.embedder.model_id();
        let own = remembered(self.kv.as_ref())?;
        Ok(model != WordsOnly::MODEL_ID && own.is_some_and(|own| own.model_id == model))
    }

    /// The lock, open for as long as it is held; `None` when somebody else has it.
    fn take_lock(&self) -> Result<Option<Option<File>>, Error> {
        let Some(path) = &self.lock else { return Ok(Some(None)) };
        let failed = |source| Error::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Some(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Visits todos in the order of their making, as long as `visit` says to go on.
    fn for_each_todo(
        &self,
        mut visit: impl FnMut(&Todo) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let todos = self.registry.list(after, STEP)?;
            let Some(last) = todos.last() else { return Ok(()) };
            after = last.no();
            for todo in &todos {
                if !visit(todo)? {
                    return Ok(());
                }
            }
        }
    }
}
