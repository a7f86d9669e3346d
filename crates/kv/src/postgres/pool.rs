//! The connections of a store, which its threads share.

use super::address::Address;
use super::connect::{Session, connect};
use super::fault::{Fault, Kind};
use super::io::Io;
use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// How long the server may take for the answer to a question, which may be long.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a server may work on one commit.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// How long a store goes on trying after a first try has failed, while the server is away or others are in the way.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The pauses between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Pool {
    pub(super) address: Arc<Address>,
    pub(super) io: Io,
    lent: Mutex<Lent>,
    returned: Condvar,
}

#[derive(Default)]
struct Lent {
    idle: Vec<Session>,
    /// How many connections there are, idle or in use.
    count: usize,
}

/// A connection that one thread uses.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    session: Option<Session>,
}

/// Something that is asked on a connection.
pub(super) type Asked<T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send>>;

/// The answer to a question that has no error.
pub(super) type Found = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Pool {
    pub(super) fn new(address: Address, io: Io) -> Self {
        Self { address: Arc::new(address), io, lent: Mutex::default(), returned: Condvar::new() }
    }

    /// Asks until there is an answer, as long as patience lasts. What is asked must do no harm when it is done twice.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        what: impl Fn(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Error> {
        self.ask_for(PATIENCE, what)
    }

    /// Like [`ask`](Self::ask), with another patience.
    pub(super) fn ask_for<T: Send + 'static>(
        &self,
        patience: Duration,
        what: impl Fn(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Error> {
        let mut pauses = Pauses::of(patience);
        loop {
            match self.once(&what) {
                Ok(answer) => return Ok(answer),
                Err(fault) if fault.kind() == Kind::Lasting || !pauses.pause() => {
                    return Err(fault.into_error(&self.address.name));
                }
                Err(_) => {}
            }
        }
    }

    /// Asks once.
    pub(super) fn once<T: Send + 'static>(
        &self,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        self.once_while(ANSWER, is_taken_for_lost, what)
    }

    /// Asks once for what may take the server long.
    pub(super) fn once_at_length<T: Send + 'static>(
        &self,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        self.once_while(LONGEST, is_taken_for_lost, what)
    }

    /// Asks once. If the limit passes without an answer, the caller waits again for as long as `is_at_it` says that
    /// the server is still working on it, up to [`LONGEST`].
    pub(super) fn once_while<T: Send + 'static>(
        &self,
        limit: Duration,
        is_at_it: impl Fn() -> Found + Send + 'static,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        self.lease()?.ask_while(limit, is_at_it, what)
    }

    fn drop_idle(&self) {
        let mut lent = self.lent.lock();
        lent.count -= lent.idle.len();
        lent.idle.clear();
        self.returned.notify_all();
    }

    /// Waits for a connection, or makes one.
    pub(super) fn lease(&self) -> Result<Lease<'_>, Fault> {
        let until = Instant::now() + PATIENCE;
        let mut lent = self.lent.lock();
        loop {
            while let Some(session) = lent.idle.pop() {
                if !session.client.is_closed() {
                    return Ok(Lease { pool: self, session: Some(session) });
                }
                lent.count -= 1;
            }
            if lent.count < self.address.connections {
                lent.count += 1;
                break;
            }
            if self.returned.wait_until(&mut lent, until).timed_out() {
                return Err(Fault::NoConnection);
            }
        }
        drop(lent);
        // If this fails, the lease gives the place back.
        let mut lease = Lease { pool: self, session: None };
        lease.session = Some(self.connect()?);
        Ok(lease)
    }

    fn connect(&self) -> Result<Session, Fault> {
        let (address, counted) = (self.address.clone(), Arc::new(self.io.count()));
        let connected = self.io.ask(async move {
            connect(&address, move || {
                // The connection holds what counts it.
                let _counted = &counted;
            })
            .await
        });
        connected.unwrap_or(Err(Fault::Unconnected(None)))
    }
}

impl Lease<'_> {
    /// Asks on this connection.
    pub(super) fn ask<T: Send + 'static>(
        &mut self,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        self.ask_while(ANSWER, is_taken_for_lost, what)
    }

    fn ask_while<T: Send + 'static>(
        &mut self,
        limit: Duration,
        is_at_it: impl Fn() -> Found + Send + 'static,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        let Some(session) = &self.session else { return Err(Fault::Unconnected(None)) };
        let mut asked = what(session.client.clone());
        let answer = self.pool.io.ask(async move {
            let begin = Instant::now();
            loop {
                if let Ok(answer) = tokio::time::timeout(limit, &mut asked).await {
                    return answer.map_err(Fault::Client);
                }
                if begin.elapsed() > LONGEST || !is_at_it().await {
                    return Err(Fault::Silence);
                }
            }
        });
        let answer = answer.unwrap_or(Err(Fault::Silence));
        if let Err(fault) = &answer
            && !fault.leaves_connection()
        {
            self.give_up();
            if matches!(fault, Fault::Silence) {
                self.pool.address.move_on();
            }
            // The others were made to the same server, so they are gone, too, or soon will be.
            self.pool.drop_idle();
        }
        answer
    }

    /// Closes the connection, which may be in the middle of something.
    pub(super) fn give_up(&mut self) {
        self.session = None;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Before the thread is stopped, so that the server learns of it.
        self.lent.get_mut().idle.clear();
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut lent = self.pool.lent.lock();
        match self.session.take() {
            Some(session) => lent.idle.push(session),
            None => lent.count -= 1,
        }
        self.pool.returned.notify_one();
    }
}

/// What is taken for lost when its limit is over.
fn is_taken_for_lost() -> Found {
    Box::pin(async { false })
}

/// Pauses that grow, and end with patience, which begins with the first of them. No two processes make the same ones.
pub(super) struct Pauses {
    patience: Duration,
    until: Option<Instant>,
    next: Duration,
}

impl Pauses {
    pub(super) fn of(patience: Duration) -> Self {
        Self { patience, until: None, next: FIRST_PAUSE }
    }

    /// Pauses. Returns whether there is any patience left.
    pub(super) fn pause(&mut self) -> bool {
        let now = Instant::now();
        let until = *self.until.get_or_insert(now + self.patience);
        if now >= until {
            return false;
        }
        let part = f64::from(super::token::random_u32() >> 8) / f64::from(1 << 24);
        std::thread::sleep(self.next.mul_f64(0.5 + part / 2.0).min(until - now));
        self.next = (self.next * 2).min(LAST_PAUSE);
        true
    }
}
