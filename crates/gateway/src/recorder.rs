//! Records what was said.

use crate::config::Reach;
use crate::exchange::{Asked, Exchange};
use crate::fold::Rewritten;
use crate::reader::Reader;
use crate::recorder_thread::{Folded, Keeper};
use crate::refusal::Refused;
use crate::unkept::Unkept;
use crate::{Api, GatewayError, Ledger, Log, SessionTodos, WhyWhole};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use foldback::Memory;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// The interval at which the recorder checks whether its threads have ended.
const FINISHED_YET: Duration = Duration::from_millis(10);

/// How many bytes may wait to be recorded. What exceeds this comes again with the next request of its conversation.
const MOST_WAITING: usize = 256 << 20;

/// How many threads record. A conversation that has to wait delays only those that share its thread.
const THREADS: usize = 4;

/// How long a request waits for what is sent in its place.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits until it is recorded, if only recorded requests are passed on.
const RECORDED: Duration = Duration::from_secs(10);

/// How long the end of the gateway waits for the copies of answers in progress.
const LAST_COPIES: Duration = Duration::from_millis(500);

/// How long after a failure recording is tried again, if only recorded requests are passed on.
const AGAIN: Duration = Duration::from_secs(5);

/// Records what was said, in threads of its own: all of one conversation in the same thread, in order. Whatever
/// happens there, a client waits only for what is sent in place of its request.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    /// The jobs of each thread; empty if nothing is recorded.
    queues: Mutex<Vec<mpsc::Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    state: Arc<State>,
    session: Arc<SessionTodos>,
    ledger: Ledger,
    /// `None` if nothing is recorded.
    memory: Option<Memory>,
    reach: Reach,
    /// Whether what was said so far is recorded, because the gateway ends. Each answer in progress watches it.
    ending: watch::Sender<bool>,
    /// The key of digests.
    secret: [u8; 32],
}

/// A job for a thread.
enum Job {
    Keep(Box<Exchange>),
    /// Responds with whether what is asked is recorded; if not, why.
    Record(Asked, oneshot::Sender<Result<(), Unkept>>),
    /// Responds with what is sent.
    Fold(Asked, oneshot::Sender<Folded>),
    /// Responds with what would be sent.
    Foresee(Asked, oneshot::Sender<Folded>),
    LeaveAlone(Asked),
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Keep(exchange) => exchange.bytes(),
            _ => self.asked().bytes(),
        }
    }

    fn asked(&self) -> &Asked {
        match self {
            Self::Keep(exchange) => &exchange.asked,
            Self::Record(asked, _) => asked,
            Self::Fold(asked, _) | Self::Foresee(asked, _) | Self::LeaveAlone(asked) => asked,
        }
    }
}

/// The status that the threads report.
struct State {
    trouble: Mutex<Option<(Instant, String)>>,
    waiting: AtomicUsize,
    log: Log,
}

impl Recorder {
    /// Creates a recorder that records nothing.
    pub(crate) fn off(log: &Log) -> Self {
        let shared = Shared {
            queues: Mutex::default(),
            threads: Mutex::default(),
            state: State::new(log),
            session: Arc::default(),
            ledger: Ledger::new(None, log),
            memory: None,
            reach: Reach::default(),
            ending: watch::Sender::default(),
            secret: [0; 32],
        };
        Self { shared: Arc::new(shared) }
    }

    /// Creates a recorder that should record, and cannot.
    pub(crate) fn impossible(why: &str, log: &Log) -> Self {
        let recorder = Self::off(log);
        recorder.shared.state.set_trouble(why.to_owned());
        recorder
    }

    /// Creates a recorder that writes into this store.
    pub(crate) fn start(
        memory: Memory,
        folder: Option<String>,
        reach: Reach,
        ledger: Ledger,
        log: &Log,
    ) -> Result<Self, GatewayError> {
        let secret = blake3::derive_key("foldback 2026-11-23 gateway digests", &memory.secret());
        let (state, session) = (State::new(log), Arc::<SessionTodos>::default());
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for n in 0..THREADS {
            let (queue, jobs) = mpsc::channel();
            let mut keeper = Keeper::new(
                memory.clone(),
                secret,
                folder.clone(),
                reach.clone(),
                Arc::clone(&session),
                ledger.clone(),
            );
            let seen = Arc::clone(&state);
            let thread = std::thread::Builder::new().name(format!("gateway-recorder-{n}"));
            threads.push(thread.spawn(move || {
                for job in jobs {
                    seen.carry_out(&mut keeper, job);
                }
            })?);
            queues.push(queue);
        }
        let (queues, threads) = (Mutex::new(queues), Mutex::new(threads));
        let (memory, ending) = (Some(memory), watch::Sender::default());
        let shared =
            Shared { queues, threads, state, session, ledger, memory, reach, ending, secret };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the todos of what was recorded since it began.
    #[must_use]
    pub fn session_todos(&self) -> Arc<SessionTodos> {
        Arc::clone(&self.shared.session)
    }

    /// Returns why conversations are not recorded; `None` if they are, or need not be.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.state.trouble.lock().as_ref().map(|(_, why)| why.clone())
    }

    /// As [`trouble`](Self::trouble), while it is so recent that another try would hardly help.
    pub(crate) fn fresh_trouble(&self) -> Option<String> {
        let is_off = self.shared.queues.lock().is_empty();
        let trouble = self.shared.state.trouble.lock();
        let is_fresh = |at: &Instant| is_off || at.elapsed() < AGAIN;
        trouble.as_ref().filter(|(at, _)| is_fresh(at)).map(|(_, why)| why.clone())
    }

    /// Writes a line to the log.
    pub(crate) fn log(&self, line: &str) {
        (self.shared.state.log)(line);
    }

    /// Returns the ledger of what requests cost.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// Returns the key for the digests of API keys.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.shared.secret
    }

    /// Returns a request as it is asked now; `None` if it is not to be recorded.
    pub(crate) fn asked(
        &self,
        api: Api,
        path: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Option<Asked> {
        let is_open = api.has_conversation() && !self.shared.queues.lock().is_empty();
        let memory = self.shared.memory.as_ref().filter(|_| is_open)?;
        Some(Asked::new(memory.now(), api, path, headers, body, self.secret()))
    }

    /// Takes an exchange, and returns at once.
    pub(crate) fn take(&self, exchange: Exchange) {
        self.give(Job::Keep(Box::new(exchange)));
    }

    /// Returns a flag that becomes true when what was said so far must be recorded, because the gateway is ending.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.shared.ending.subscribe()
    }

    /// Waits until the gateway ends, and records what was said so far.
    pub(crate) async fn ended(&self) {
        // The recorder holds the other side.
        let _ = self.ending().wait_for(|is_ending| *is_ending).await;
    }

    /// Records what is asked.
    ///
    /// # Errors
    /// When that is impossible, or takes too long: a status, and a sentence without its full stop.
    pub(crate) async fn record(&self, asked: &Asked) -> Result<(), Refused> {
        let (answer, recorded) = oneshot::channel();
        self.give(Job::Record(asked.clone(), answer));
        const AWAY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        let (status, why) = match tokio::time::timeout(RECORDED, recorded).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            // The same bytes will not be recorded later, either.
            Ok(Ok(Err(Unkept::Unreadable(why)))) => (StatusCode::BAD_REQUEST, why),
            Ok(Ok(Err(unkept))) => (AWAY, unkept.to_string()),
            Ok(Err(_)) => {
                let trouble = self.trouble();
                return Err((AWAY, trouble.unwrap_or_else(|| "the gateway is ending".to_owned())));
            }
            Err(_) => {
                let why = format!("the store did not answer for {} seconds", RECORDED.as_secs());
                self.shared.state.set_trouble(why.clone());
                (AWAY, why)
            }
        };
        Err((status, format!("not recorded: {why}")))
    }

    /// Records what is asked, and returns what is sent in its place: the client's own body, if determining it takes
    /// too long.
    pub(crate) async fn folded(&self, asked: &Asked) -> Folded {
        self.said(|answer| Job::Fold(asked.clone(), answer)).await
    }

    /// Returns what would be sent in place of a request whose tokens are counted. Nothing is recorded.
    pub(crate) async fn foreseen(&self, asked: &Asked) -> Folded {
        self.said(|answer| Job::Foresee(asked.clone(), answer)).await
    }

    /// Returns a request, which was not read yet, without the model's thinking, except what its turn must begin with; `None`
    /// if it has none. That does not need the store, which may be away.
    pub(crate) async fn without_thoughts(&self, asked: Asked) -> Option<Rewritten> {
        let Shared { memory, secret, reach, .. } = &*self.shared;
        let reader = Reader::new(*secret).redacting(memory.as_ref()?.is_redacting());
        let (mut reader, reach) = (reader, reach.clone());
        let unthought = tokio::task::spawn_blocking(move || {
            let mut conversation = reader.read(&asked).ok()?;
            conversation.terms.reached_by(&reach);
            conversation.without_thoughts()
        });
        unthought.await.ok().flatten()
    }

    /// Returns the response to a job, or the client's own body if it takes too long or cannot be done.
    async fn said(&self, job: impl FnOnce(oneshot::Sender<Folded>) -> Job) -> Folded {
        let (answer, answered) = oneshot::channel();
        self.give(job(answer));
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(answered) => answered.unwrap_or_default(),
            Err(_) => {
                self.log("the store is slow: a request is sent unchanged");
                Folded { why: Some(WhyWhole::SlowStore), ..Folded::default() }
            }
        }
    }

    /// Sends a conversation whole from now on: its provider has refused a shortened request with this status.
    pub(crate) fn leave_alone(&self, asked: &Asked, status: u16) {
        self.log(&format!(
            "a conversation is sent whole from now on: its provider refused a part of it with status {status}"
        ));
        self.give(Job::LeaveAlone(asked.clone()));
    }

    fn give(&self, job: Job) {
        let state = &self.shared.state;
        let bytes = job.bytes();
        if state.waiting.load(Ordering::Relaxed) + bytes > MOST_WAITING {
            state.set_trouble("more arrives than can be recorded".to_owned());
            return;
        }
        let number = job.asked().sender.number();
        let queues = self.shared.queues.lock();
        let queue = usize::try_from(number % THREADS as u64).ok().and_then(|n| queues.get(n));
        let Some(queue) = queue else {
            if self.shared.memory.is_some() {
                self.log("a request is not recorded: it took longer than the gateway");
            }
            return;
        };
        state.waiting.fetch_add(bytes, Ordering::Relaxed);
        if queue.send(job).is_err() {
            state.waiting.fetch_sub(bytes, Ordering::Relaxed);
            state.set_trouble("the recorder has ended".to_owned());
        }
    }

    /// Waits until everything that was said is recorded, and takes no more. Of an answer in progress, its question is
    /// recorded. If nobody waits for that any longer, it may be called again.
    pub async fn finish(&self) {
        if self.shared.memory.is_none() {
            // What it answers is not recorded, and goes on.
            return;
        }
        self.shared.ending.send_replace(true);
        // A client that does not read does not let its answer end.
        let _ = tokio::time::timeout(LAST_COPIES, self.shared.ending.closed()).await;
        self.shared.queues.lock().clear();
        while !self.shared.threads.lock().iter().all(|thread| thread.is_finished()) {
            tokio::time::sleep(FINISHED_YET).await;
        }
        for thread in std::mem::take(&mut *self.shared.threads.lock()) {
            if thread.join().is_err() {
                self.shared.state.set_trouble("the recorder has ended".to_owned());
            }
        }
    }
}

impl State {
    fn new(log: &Log) -> Arc<Self> {
        Arc::new(Self { trouble: Mutex::default(), waiting: AtomicUsize::new(0), log: log.clone() })
    }

    /// Carries out a job. Neither an error nor a bug ends the recorder.
    fn carry_out(&self, keeper: &mut Keeper, job: Job) {
        let bytes = job.bytes();
        let foresees = matches!(job, Job::Foresee(..));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match job {
            Job::Keep(exchange) => keeper.keep(&exchange),
            Job::Record(_, to) if to.is_closed() => Ok(()),
            Job::Record(asked, to) => {
                let recorded = keeper.record(&asked);
                drop(to.send(recorded.clone()));
                recorded
            }
            // A request that waited too long has been sent already, or its client is gone.
            Job::Fold(_, to) if to.is_closed() => Ok(()),
            Job::Fold(asked, to) => keeper.fold(&asked).map(|folded| drop(to.send(folded))),
            Job::Foresee(asked, to) => keeper.foresee(&asked).map(|folded| drop(to.send(folded))),
            Job::LeaveAlone(asked) => keeper.leave_alone(&asked),
        }));
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        // Without a commit, the result does not show whether anything can be recorded.
        if keeper.has_recorded() {
            *self.trouble.lock() = None;
        }
        match done {
            Ok(_) if foresees => {}
            Ok(Ok(())) => {}
            Ok(Err(Unkept::Unreadable(why))) => {
                (self.log)(&format!("a request is not recorded: {why}"));
            }
            Ok(Err(Unkept::Answer(why))) => {
                (self.log)(&format!("an answer is not recorded: {why}"));
            }
            Ok(Err(Unkept::Store(why))) => self.set_trouble(why),
            Err(_) => {
                keeper.forget_all();
                self.set_trouble("recording failed because of an internal error".to_owned());
            }
        }
    }

    fn set_trouble(&self, why: String) {
        let why = format!("not recorded: {why}");
        // The same reason is not reported twice in a row.
        let before = self.trouble.lock().replace((Instant::now(), why.clone()));
        if before.is_none_or(|(_, before)| before != why) {
            (self.log)(&why);
        }
    }
}
