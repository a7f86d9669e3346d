//! The threads that bring the derived indexes up to date, off the write path.

use foldback_blockstore::{AllTodos, BlockStore};
use foldback_kv::Todo;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long to wait before the indexes of forgotten todos are looked for again.
const SWEPT_AFTER: Duration = Duration::from_secs(600);

/// Blocks wait this long for others, so that one index commit covers many.
const GATHER: Duration = Duration::from_millis(500);

/// Wakes when blocks have closed, gathers for half a second, and brings the indexes of those todos
/// up to date. Nothing depends on it: what is not indexed yet is searched in the records.
///
/// A graph over vectors takes minutes, so it is built by a thread of its own, and abandoned when the
/// memory closes. An index is then abandoned after its next commit: closing waits for one batch of up
/// to some thousands of blocks for each todo that had gathered.
pub(crate) struct Indexer {
    stores: Option<(Arc<BlockStore>, Arc<AllTodos>)>,
    wake: Option<Sender<Todo>>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Returns an indexer that does nothing, for read-only and in-memory stores.
    pub(crate) fn idle() -> Self {
        Self { stores: None, wake: None, thread: None }
    }

    pub(crate) fn start(
        blocks: Arc<BlockStore>,
        all_todos: Arc<AllTodos>,
    ) -> std::io::Result<Self> {
        let (wake, woken) = channel::<Todo>();
        let keeper = Keeper { blocks: blocks.clone(), all_todos: all_todos.clone(), graph: None };
        let thread = Builder::new().name("foldback-indexer".to_owned());
        let thread = thread.spawn(move || keeper.run(&woken))?;
        Ok(Self { stores: Some((blocks, all_todos)), wake: Some(wake), thread: Some(thread) })
    }

    /// Reports that blocks of `todo` have closed.
    pub(crate) fn wake(&self, todo: &Todo) {
        if let Some(wake) = &self.wake {
            // The thread ends only with this value.
            drop(wake.send(todo.clone()));
        }
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        if let Some((blocks, all_todos)) = &self.stores {
            blocks.stop_building();
            all_todos.stop();
        }
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What the indexer's thread works with. An index that fails is behind, never wrong; the next batch
/// and `doctor` try again.
struct Keeper {
    blocks: Arc<BlockStore>,
    all_todos: Arc<AllTodos>,
    /// The thread that builds a graph, or has built the last one.
    graph: Option<JoinHandle<()>>,
}

impl Keeper {
    fn run(mut self, woken: &Receiver<Todo>) {
        let mut swept: Option<Instant> = None;
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
            // Without delaying a short-lived process. Another machine may have forgotten a todo since.
            if !closing && swept.is_none_or(|at| at.elapsed() >= SWEPT_AFTER) {
                swept = self.blocks.sweep_forgotten().is_ok().then(Instant::now);
            }
            for todo in &todos {
                if self.blocks.maintain(todo).is_ok_and(|done| done.graph_due) {
                    self.build_graph(todo);
                }
            }
            drop(self.all_todos.catch_up(false, |_, _| {}));
        }
        if let Some(graph) = self.graph {
            drop(graph.join());
        }
    }

    /// Builds the todo's graph on another thread, unless that thread is building one; a due graph is
    /// noticed again with the next batch.
    fn build_graph(&mut self, todo: &Todo) {
        if self.graph.as_ref().is_some_and(|graph| !graph.is_finished()) {
            return;
        }
        let (blocks, todo) = (self.blocks.clone(), todo.clone());
        let thread = Builder::new().name("foldback-grapher".to_owned());
        self.graph = thread.spawn(move || drop(blocks.build_graph(&todo))).ok();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Close, Memory, Options};
    use foldback_core::{Message, TodoId};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    /// Options under which a graph is due at once.
    fn open(dir: &Path) -> Memory {
        let mut options = Options::default();
        options.index.index_after_blocks = 4;
        options.index.batch_blocks = 1;
        options.index.hnsw_after_vectors = 8;
        Memory::open(dir, options).unwrap()
    }

    fn message(n: usize) -> Message {
        let text =
            format!("Entry {n} of the harbor log: 第{n}艘船 came in with {} barrels.", n * 7);
        if n.is_multiple_of(2) { Message::user(&text) } else { Message::assistant(&text) }
    }

    /// A memory that closes abandons the graph that is being built, but not the index: the next one
    /// finds each as far as it is complete.
    #[test]
    fn r11_closing_beside_a_graph_leaves_whole_indexes() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("log").unwrap();
        for round in 0..3 {
            let memory = open(dir.path());
            let mut session = memory.session(&id).unwrap();
            session.record_all((round * 200..round * 200 + 200).map(message).collect()).unwrap();
            session.close(Close::End).unwrap();
            drop(session);
            drop(memory);
            let folder = dir.path().join("index/1");
            assert!(folder.join("tantivy/meta.json").exists(), "closing waits for the index");
            let memory = open(dir.path());
            let checkup = memory.maintenance().doctor().unwrap();
            assert_eq!((checkup.findings, checkup.index_lag), (vec![], 0));
        }
        let memory = open(dir.path());
        memory.maintenance().index().unwrap();
        assert!(dir.path().join("index/1/graph.json").exists());
        assert!(memory.maintenance().doctor().unwrap().is_clean());
    }

    /// Background work needs none of the threads of the caller's pool: they may all be waiting for the end of
    /// a memory, which waits for that work.
    #[test]
    fn volumes_are_written_while_all_threads_of_the_pool_wait() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open(dir.path());
        let (free, waiting) = (AtomicBool::new(false), AtomicUsize::new(0));
        let until = Instant::now() + Duration::from_secs(60);
        let is_written = std::thread::scope(|scope| {
            let hold = |_: rayon::BroadcastContext<'_>| {
                waiting.fetch_add(1, Ordering::Relaxed);
                // A failure below releases nobody.
                while !free.load(Ordering::Relaxed) && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            scope.spawn(move || rayon::broadcast(hold));
            let in_time = |done: &dyn Fn() -> bool| {
                while !done() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                done()
            };
            let all = rayon::current_num_threads();
            let is_held = in_time(&|| waiting.load(Ordering::Relaxed) == all);
            let mut session = memory.session(&TodoId::new("log").unwrap()).unwrap();
            (0..40).for_each(|n| drop(session.record(message(n)).unwrap()));
            session.close(Close::End).unwrap();
            let is_written = in_time(&|| memory.shared.all_todos.lag().unwrap() == 0);
            free.store(true, Ordering::Relaxed);
            is_held && is_written
        });
        assert!(is_written);
    }

    /// S9: what was left of a forgotten todo's index by a killed process goes with the next repair.
    #[test]
    fn s9_a_repair_sweeps_the_index_of_a_forgotten_todo() {
        let dir = tempfile::tempdir().unwrap();
        let ids = ["kept", "gone"].map(|id| TodoId::new(id).unwrap());
        let memory = open(dir.path());
        for id in &ids {
            let mut session = memory.session(id).unwrap();
            session.record_all((0..40).map(message).collect()).unwrap();
            session.close(Close::End).unwrap();
        }
        memory.maintenance().index().unwrap();
        let (kept, gone) = (dir.path().join("index/1"), dir.path().join("index/2"));
        assert!(kept.exists() && gone.exists());
        memory.maintenance().forget(&ids[1]).unwrap();
        assert!(kept.exists() && !gone.exists());
        // Nothing is left to do in the background, which would sweep as well.
        memory.maintenance().index().unwrap();
        drop(memory);
        let memory = open(dir.path());
        // As left by a process that was killed while indexing.
        std::fs::create_dir(&gone).unwrap();
        std::fs::write(gone.join("vectors.i8"), b"words").unwrap();
        assert!(memory.maintenance().doctor().unwrap().is_clean());
        assert!(gone.exists(), "it only looks");
        memory.maintenance().repair().unwrap();
        assert!(kept.exists() && !gone.exists());
    }
}
