//! Re-embeds recorded messages with another embedder.
//!
//! This is done todo by todo, in batches that are each durable; killed at any point, it resumes
//! after the last batch. One process at a time does it, under a lock in the store's folder.

use super::EmbeddingProgress;
use super::due::PART;
use super::stored::{failures, own_model, set_failures};
use crate::Error;
use crate::error::Failure;
use crate::message_vectors::{vectors_of_each, windows_of};
use crate::texts::Texts;
use foldback_backend_store::BackendStore;
use foldback_blockstore::{AllTodos, BlockStore};
use foldback_core::{EmbedError, Embedder, Message, SeqNo, Vectors};
use foldback_embedder::WordsOnly;
use foldback_kv::{Kv, Registry, Todo};
use std::fs::{File, OpenOptions, TryLockError};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A batch ends after this many messages, or this many vectors: about one second of work for a larger model.
const BATCH_MESSAGES: usize = 64;
const BATCH_VECTORS: usize = 64;

/// A run of this many messages that need nothing is noted, so that they are not examined again.
pub(super) const NOTED: u64 = 256;

/// A process that ends before examining this many messages waits for them while closing, so that
/// many short processes also finish the work.
pub(super) const LOOKS: u64 = 4_096;

/// A model that refuses this many texts in a row is assumed to refuse all.
const REFUSED: u32 = 32;

/// Todos are walked in steps of this many.
const STEP: usize = 512;

/// The interval for checking how far another process has come.
const LOOK: Duration = Duration::from_millis(100);

/// The number of rounds in which messages recorded meanwhile are embedded too, before they are left to others.
const ROUNDS: usize = 8;

/// What re-embedding works with.
pub(crate) struct Work {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) registry: Registry,
    pub(crate) blocks: Arc<BlockStore>,
    /// The index over all todos, which is rebuilt too.
    pub(crate) all_todos: Arc<AllTodos>,
    pub(crate) payloads: Arc<BackendStore>,
    pub(crate) embedder: Arc<dyn Embedder>,
    /// The model whose vectors are wanted: the embedder's or, if it replaces the store's own
    /// because that cannot be loaded, the store's own.
    pub(crate) model_id: String,
    /// The file whose lock lets one process do it; `None` for a store that is this process's alone.
    pub(crate) lock: Option<PathBuf>,
}

/// The function that is called with the progress.
pub(crate) type Report<'a> = &'a mut dyn FnMut(EmbeddingProgress);

/// A turn at the work in progress.
struct Course<'a, 'r> {
    stop: &'a AtomicBool,
    report: Option<Report<'r>>,
    progress: EmbeddingProgress,
    /// How many messages were examined.
    looked: u64,
    /// How many batches were written.
    batches: u64,
    /// How many texts the model has refused since the last one that it accepted.
    refused_in_a_row: u32,
    /// The refused messages, each with its error.
    refused: Vec<String>,
}

impl Course<'_, '_> {
    /// Returns whether it is to stop, and has done enough to be worth having started.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) && (self.batches > 0 || self.looked >= LOOKS)
    }

    fn report(&mut self) {
        if let Some(report) = &mut self.report {
            report(self.progress);
        }
    }
}

/// Some messages of a todo, embedded.
#[derive(Default)]
struct Made {
    vectors: Vec<(SeqNo, Vectors)>,
    /// All messages below are done.
    until: u64,
    /// Whether it was stopped.
    stopped: bool,
}

/// How a turn at the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    /// Another process, or another thread, is doing it.
    Busy,
    /// It was stopped, or the store has a different embedder now.
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
    /// Works, or waits for another process that does, until nothing is left or another embedder is chosen. What others
    /// record meanwhile with another embedder is embedded too, as far as they allow it.
    pub(crate) fn run_to_the_end(
        &self,
        mut report: impl FnMut(EmbeddingProgress),
    ) -> Result<EmbeddingProgress, Error> {
        let goes_on = AtomicBool::new(false);
        let mut rounds = 0;
        let mut before = None;
        loop {
            let turn = self.run(&goes_on, Some(&mut report))?;
            let now = self.progress()?;
            if turn == Turn::Busy {
                report(now);
                std::thread::sleep(LOOK);
                continue;
            }
            rounds += 1;
            let stands = before.is_some_and(|before| now.done <= before);
            if turn == Turn::Stopped || now.is_done() || stands || rounds == ROUNDS {
                return Ok(now);
            }
            before = Some(now.done);
        }
    }

    /// Makes one turn over all todos. An error is also noted in the store, for later callers.
    pub(crate) fn run(&self, stop: &AtomicBool, report: Option<Report<'_>>) -> Result<Turn, Error> {
        let Some(own) = own_model(self.kv.as_ref())? else { return Ok(Turn::Stopped) };
        if own != self.embedder.model_id() || own == WordsOnly::MODEL_ID {
            self.abandon()?;
            return Ok(Turn::Stopped);
        }
        if report.is_none() && !self.is_due(stop)? {
            return Ok(Turn::Done);
        }
        let Some(lock) = self.take_lock()? else { return Ok(Turn::Busy) };
        let mut course = Course {
            stop,
            progress: if report.is_some() { self.progress()? } else { <_>::default() },
            report,
            looked: 0,
            batches: 0,
            refused_in_a_row: 0,
            refused: Vec::new(),
        };
        course.report();
        let turn = self.take_turn(&mut course);
        self.note(&course, &turn)?;
        if matches!(turn, Ok(Turn::Stopped))
            && own_model(self.kv.as_ref())?.as_deref() == Some(WordsOnly::MODEL_ID)
        {
            drop(lock);
            self.abandon()?;
        }
        turn
    }

    fn take_turn(&self, course: &mut Course<'_, '_>) -> Result<Turn, Error> {
        let mut turn = Turn::Done;
        self.for_each_todo(|todo| {
            turn = match self.reembed(todo, course) {
                // A todo that was forgotten meanwhile is no reason to stop.
                Err(_) if self.registry.find(todo.id())?.as_ref() != Some(todo) => Turn::Done,
                other => other?,
            };
            Ok(turn == Turn::Done)
        })?;
        if turn == Turn::Done && course.batches > 0 && !course.stop.load(Ordering::Relaxed) {
            // An index that cannot be built now is merely behind.
            drop(self.all_todos.drop_outdated());
            drop(self.all_todos.catch_up(false, |_, _| {}));
        }
        Ok(turn)
    }

    fn reembed(&self, todo: &Todo, course: &mut Course<'_, '_>) -> Result<Turn, Error> {
        let messages = self.blocks.head(todo)?.messages;
        let mut from = self.done(todo)?;
        while from < messages {
            let made = self.make(todo, from..messages, course)?;
            // Between this check and the commit nobody else writes here: the lock is held.
            if own_model(self.kv.as_ref())?.as_ref() != Some(&self.model_id) {
                return Ok(Turn::Stopped);
            }
            if !made.vectors.is_empty() || made.until - from >= NOTED {
                self.blocks.replace_vectors(todo, &self.model_id, &made.vectors, made.until)?;
                course.batches += u64::from(!made.vectors.is_empty());
            }
            course.report();
            if made.stopped {
                return Ok(Turn::Stopped);
            }
            from = made.until;
        }
        if self.blocks.vector_state(todo)?.indexes_stale {
            if !self.blocks.finish_vectors(todo, &|| course.stop.load(Ordering::Relaxed))? {
                return Ok(Turn::Stopped);
            }
            // An index that cannot be built now is merely behind.
            drop(self.blocks.maintain(todo));
        }
        Ok(Turn::Done)
    }

    /// Embeds up to one batch of messages from the beginning of a range.
    fn make(
        &self,
        todo: &Todo,
        range: Range<u64>,
        course: &mut Course<'_, '_>,
    ) -> Result<Made, Error> {
        let mut made = Made { until: range.start, ..Made::default() };
        let mut due: Vec<(SeqNo, Message)> = Vec::new();
        let mut rows = 0;
        let (mut lacking, mut looked) = (Vec::new(), range.start);
        while made.until < range.end.min(range.start + LOOKS)
            && due.len() < BATCH_MESSAGES
            && rows < BATCH_VECTORS
        {
            made.stopped = course.is_over();
            if made.stopped {
                break;
            }
            if made.until == looked {
                let part = looked..range.end.min(looked + PART);
                looked = part.end;
                lacking = self.blocks.without_vectors(todo, &self.model_id, part)?;
            }
            course.looked += 1;
            let seq = SeqNo(made.until);
            if lacking.binary_search(&seq).is_ok()
                && let Some(message) = self.due(todo, seq)?
            {
                rows += windows_of(self.embedder.as_ref(), &message);
                due.push((seq, message));
            }
            made.until += 1;
        }
        let messages: Vec<&Message> = due.iter().map(|(_, message)| message).collect();
        let embedded = vectors_of_each(self.embedder.as_ref(), &messages);
        for ((seq, _), vectors) in due.iter().zip(embedded) {
            match vectors.and_then(|vectors| self.checked(vectors)) {
                Ok(vectors) => {
                    course.refused_in_a_row = 0;
                    if !vectors.is_empty() {
                        made.vectors.push((*seq, vectors));
                    }
                }
                Err(error) => {
                    course.refused_in_a_row += 1;
                    if course.refused_in_a_row >= REFUSED {
                        return Err(error.into());
                    }
                    course.refused.push(format!("message {seq} of todo {}: {error}", todo.id()));
                }
            }
            course.progress.done += 1;
        }
        Ok(made)
    }

    /// Checks the vectors that a model gave; returns an error if they are not valid.
    fn checked(&self, vectors: Vectors) -> Result<Vectors, EmbedError> {
        if vectors.rows().flatten().all(|value| value.is_finite()) {
            return Ok(vectors);
        }
        let message = "it returned a vector with values that are not numbers".to_owned();
        Err(EmbedError { model: self.model_id.clone(), message })
    }

    /// Stores what went wrong in a turn, and drops an error that did not recur.
    fn note(&self, course: &Course<'_, '_>, turn: &Result<Turn, Error>) -> Result<(), Error> {
        let kv = self.kv.as_ref();
        let known = failures(kv)?;
        let mut noted = known.clone().unwrap_or_default();
        noted.model_id.clone_from(&self.model_id);
        noted.messages += course.refused.len() as u64;
        match (turn, course.refused.last()) {
            (Err(error), _) => noted.last = error.to_string(),
            (Ok(_), Some(refused)) => noted.last.clone_from(refused),
            (Ok(Turn::Done), None) if noted.messages == 0 => noted.last.clear(),
            (Ok(_), None) => {}
        }
        if known.as_ref() == Some(&noted) || known.is_none() && noted.last.is_empty() {
            return Ok(());
        }
        set_failures(kv, &noted)
    }

    /// Takes the lock, which is held while the file is open; `None` if another process has it.
    pub(super) fn take_lock(&self) -> Result<Option<Option<File>>, Error> {
        let Some(path) = &self.lock else { return Ok(Some(None)) };
        let failed = |source| Failure::Io { path: path.clone(), source }.into();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Some(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Visits todos in order of creation, as long as `visit` returns `true`.
    pub(super) fn for_each_todo(
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
