//! Telling the others that something was committed.
//!
//! The counter in the database is the truth. A notice (`NOTIFY`) only wakes those who wait for it to change, so that
//! they need not ask often. It is sent beside the commits, at most a hundred times a second: within them it would make
//! all transactions of the database wait for each other. A server without notices is asked more often instead.

use super::address::Address;
use super::connect::{Session, connect};
use super::pool::Pool;
use super::token;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

const CHANNEL: &str = "foldback_commit";
/// The least time between two notices of one process.
const APART: Duration = Duration::from_millis(10);
/// How often the counter is read while notices come, and while none do.
const SELDOM: Duration = Duration::from_secs(2);
const OFTEN: Duration = Duration::from_millis(100);
/// How long after a lost connection another one is made.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct Notices {
    /// Whether a notice is about to be sent.
    is_due: Arc<AtomicBool>,
    /// Whether the server does not support notices.
    are_unknown: Arc<AtomicBool>,
    /// Whether old tokens are being removed.
    is_forgetting: Arc<AtomicBool>,
    /// The connection that tells, apart from those on which transactions are made.
    teller: Arc<tokio::sync::Mutex<Option<Session>>>,
    heard: Arc<Heard>,
    is_listening: AtomicBool,
}

#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many notices there were.
    count: u64,
    /// Whether the server is listened to now.
    is_on: bool,
}

impl Notices {
    /// Tells the others soon.
    pub(super) fn tell(&self, pool: &Pool) {
        if self.are_unknown.load(Ordering::Acquire) || self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_due, are_unknown) = (self.is_due.clone(), self.are_unknown.clone());
        let (teller, address) = (self.teller.clone(), pool.address.clone());
        pool.io.begin(async move {
            tokio::time::sleep(APART).await;
            // A waiting reader reads the counter without a notice, too, so a notice that fails is not repeated.
            let mut teller = teller.lock().await;
            // Cleared only once the last notice is sent, so that no more than one waits.
            is_due.store(false, Ordering::Release);
            let Some(session) = connected(&mut teller, &address).await else { return };
            // Nobody waits until this is on a disk.
            let sql = format!(
                "BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_notify('{CHANNEL}', ''); COMMIT"
            );
            let sent = session.client.batch_execute(&sql);
            match tokio::time::timeout(address.limit, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    *teller = None;
                    let is_known = error.code() != Some(&SqlState::UNDEFINED_FUNCTION);
                    are_unknown.store(!is_known, Ordering::Release);
                }
                Err(_) => *teller = None,
            }
        });
    }

    /// Removes the tokens of a slot's old commits soon, so that no commit and no notice waits for it. While it is being
    /// done, nothing else is begun: what stays is removed another time.
    pub(super) fn forget_tokens(&self, pool: &Pool, slot: i32) {
        if self.is_forgetting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_forgetting, address) = (self.is_forgetting.clone(), pool.address.clone());
        // A process that ends now waits for it for a moment.
        let counted = pool.io.count();
        pool.io.begin(async move {
            let _counted = counted;
            // A connection of its own, which ends with it, and with its transaction.
            if let Some(session) = connected(&mut None, &address).await {
                let forgotten = token::forget_old(session.client.clone(), slot..=slot);
                let _ = tokio::time::timeout(address.limit, forgotten).await;
            }
            is_forgetting.store(false, Ordering::Release);
        });
    }

    /// Waits until `has_changed`, which reads the counter, or until the time is over. Returns its last answer.
    pub(super) fn wait<E>(
        &self,
        pool: &Pool,
        most: Duration,
        has_changed: impl Fn() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let until = Instant::now() + most;
        if !self.is_listening.swap(true, Ordering::AcqRel) {
            self.listen(pool);
        }
        loop {
            // Before the counter is read, so that a notice between the two is not missed.
            let (count, is_on) = {
                let state = self.heard.state.lock();
                (state.count, state.is_on)
            };
            if has_changed()? {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(false);
            }
            let next = (now + if is_on { SELDOM } else { OFTEN }).min(until);
            let mut state = self.heard.state.lock();
            while state.count == count && state.is_on == is_on {
                if self.heard.changed.wait_until(&mut state, next).timed_out() {
                    break;
                }
            }
        }
    }

    /// Listens from now on, with a connection of its own.
    fn listen(&self, pool: &Pool) {
        let (heard, address) = (self.heard.clone(), pool.address.clone());
        pool.io.begin(async move {
            loop {
                // A connection that ends, or cannot be made, is made again; meanwhile the counter is read more often.
                listen(&address, &heard).await;
                heard.set(|state| state.is_on = false);
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

/// Returns the connection that tells, which is made if there is none.
async fn connected<'t>(teller: &'t mut Option<Session>, address: &Address) -> Option<&'t Session> {
    if teller.as_ref().is_none_or(|session| session.client.is_closed()) {
        *teller = connect(address, || {}).await.ok();
    }
    teller.as_ref()
}

/// Listens until the connection ends, or none can be made.
async fn listen(address: &Address, heard: &Arc<Heard>) {
    let told = heard.clone();
    let connected = connect(address, move || told.set(|state| state.count += 1)).await;
    let Ok(mut session) = connected else { return };
    let sql = format!("LISTEN {CHANNEL}");
    let listening = session.client.batch_execute(&sql);
    if let Ok(Ok(())) = tokio::time::timeout(address.limit, listening).await {
        heard.set(|state| state.is_on = true);
        session.ended().await;
    }
}

impl Heard {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}
