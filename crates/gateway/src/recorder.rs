//! Keeps what was said.

use crate::exchange::{Asked, Exchange};
use crate::recorder_thread::{Keeper, Unkept};
use crate::{Api, GatewayError, Log};
use foldback::Memory;
use foldback_core::TodoId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So many bytes may wait to be recorded. What comes beyond that is not recorded now: the next request of the same
/// conversation holds it again.
const MOST_WAITING: usize = 256 << 20;

/// After so long it is tried again whether the trouble is over, where nothing may pass that is not recorded.
const AGAIN: Duration = Duration::from_secs(5);

/// Keeps what was said, in a thread of its own. Whatever becomes of it, no client waits.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// What the thread is given to do.
enum Task {
    Keep(Exchange),
    Find(Asked, oneshot::Sender<(Asked, Option<TodoId>)>),
}

struct Shared {
    /// `None` where nothing is recorded.
    queue: Mutex<Option<mpsc::Sender<Task>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    state: Arc<State>,
    /// What digests are made with.
    secret: [u8; 32],
}

/// What the thread says of itself.
struct State {
    trouble: Mutex<Option<(Instant, String)>>,
    waiting: AtomicUsize,
    log: Log,
}

impl Recorder {
    /// One that keeps nothing.
    pub(crate) fn off(log: &Log) -> Self {
        Self::of(None, None, State::new(log), [0; 32])
    }

    /// One that should keep what was said, and cannot.
    pub(crate) fn impossible(why: &str, log: &Log) -> Self {
        let recorder = Self::off(log);
        recorder.shared.state.set_trouble(why.to_owned());
        recorder
    }

    /// One that writes into this store.
    pub(crate) fn start(
        memory: Memory,
        folder: Option<String>,
        log: &Log,
    ) -> Result<Self, GatewayError> {
        let secret = blake3::derive_key("foldback 2026-11-23 gateway digests", &memory.secret());
        let (queue, tasks) = mpsc::channel();
        let state = State::new(log);
        let (mut keeper, seen) = (Keeper::new(memory, secret, folder), Arc::clone(&state));
        let thread =
            std::thread::Builder::new().name("gateway-recorder".to_owned()).spawn(move || {
                for task in tasks {
                    match task {
                        Task::Keep(exchange) => seen.keep(&mut keeper, &exchange),
                        Task::Find(asked, found) => {
                            let todo = seen.find(&mut keeper, &asked);
                            // The client may be gone.
                            let _ = found.send((asked, todo));
                        }
                    }
                }
            })?;
        Ok(Self::of(Some(queue), Some(thread), state, secret))
    }

    fn of(
        queue: Option<mpsc::Sender<Task>>,
        thread: Option<JoinHandle<()>>,
        state: Arc<State>,
        secret: [u8; 32],
    ) -> Self {
        let (queue, thread) = (Mutex::new(queue), Mutex::new(thread));
        Self { shared: Arc::new(Shared { queue, thread, state, secret }) }
    }

    /// Why conversations are not recorded; `None` where they are, or where nobody asked for it.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.state.trouble.lock().as_ref().map(|(_, why)| why.clone())
    }

    /// As [`trouble`](Self::trouble), as long as it is so new that trying again would hardly help.
    pub(crate) fn fresh_trouble(&self) -> Option<String> {
        let is_off = self.shared.queue.lock().is_none();
        let trouble = self.shared.state.trouble.lock();
        let is_fresh = |at: &Instant| is_off || at.elapsed() < AGAIN;
        trouble.as_ref().filter(|(at, _)| is_fresh(at)).map(|(_, why)| why.clone())
    }

    /// Says a line to the log.
    pub(crate) fn log(&self, line: &str) {
        (self.shared.state.log)(line);
    }

    /// What the digests of keys are made with.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.shared.secret
    }

    /// Whether it keeps requests of this kind.
    pub(crate) fn keeps(&self, api: Api) -> bool {
        api.has_conversation() && self.shared.queue.lock().is_some()
    }

    /// Takes an exchange, and returns at once.
    pub(crate) fn take(&self, exchange: Exchange) {
        let state = &self.shared.state;
        let bytes = exchange.bytes();
        if state.waiting.load(Ordering::Relaxed) + bytes > MOST_WAITING {
            state.set_trouble("more is said than can be recorded".to_owned());
            return;
        }
        if let Some(queue) = &*self.shared.queue.lock() {
            state.waiting.fetch_add(bytes, Ordering::Relaxed);
            if queue.send(Task::Keep(exchange)).is_err() {
                state.set_trouble("the recorder has ended".to_owned());
            }
        }
    }

    /// The todo in which a model of this conversation may look things up; `None` where there is none. Gives the request
    /// back.
    pub(crate) async fn find(&self, asked: Asked) -> (Option<Asked>, Option<TodoId>) {
        let (found, finding) = oneshot::channel();
        let sent = match &*self.shared.queue.lock() {
            Some(queue) => queue.send(Task::Find(asked, found)).map_err(|unsent| unsent.0),
            None => Err(Task::Find(asked, found)),
        };
        if let Err(Task::Find(asked, _)) = sent {
            return (Some(asked), None);
        }
        finding.await.map_or((None, None), |(asked, todo)| (Some(asked), todo))
    }

    /// Waits until everything that was taken is recorded, and takes no more.
    pub async fn finish(&self) {
        drop(self.shared.queue.lock().take());
        let thread = self.shared.thread.lock().take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join().is_ok()).await;
            if !joined.unwrap_or_default() {
                self.shared.state.set_trouble("the recorder has ended".to_owned());
            }
        }
    }
}

impl State {
    fn new(log: &Log) -> Arc<Self> {
        Arc::new(Self { trouble: Mutex::default(), waiting: AtomicUsize::new(0), log: log.clone() })
    }

    /// Records an exchange. Neither an error nor a bug ends the recorder.
    fn keep(&self, keeper: &mut Keeper, exchange: &Exchange) {
        let kept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| keeper.keep(exchange)));
        self.waiting.fetch_sub(exchange.bytes(), Ordering::Relaxed);
        match kept {
            Ok(Ok(())) => *self.trouble.lock() = None,
            Ok(Err(Unkept::Unreadable(why))) => {
                (self.log)(&format!("a request is not recorded: {why}"));
            }
            Ok(Err(Unkept::Store(why))) => self.set_trouble(why),
            Err(_) => {
                keeper.forget_all();
                self.set_trouble("recording failed by a fault of its own".to_owned());
            }
        }
    }

    /// Finds the todo of a conversation. A bug leaves it unfound.
    fn find(&self, keeper: &mut Keeper, asked: &Asked) -> Option<TodoId> {
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| keeper.find(asked)));
        found.unwrap_or_else(|_| {
            keeper.forget_all();
            self.set_trouble("finding a conversation failed by a fault of its own".to_owned());
            None
        })
    }

    fn set_trouble(&self, why: String) {
        let why = format!("not recorded: {why}");
        // The same again is not said again.
        let before = self.trouble.lock().replace((Instant::now(), why.clone()));
        if before.is_none_or(|(_, before)| before != why) {
            (self.log)(&why);
        }
    }
}
