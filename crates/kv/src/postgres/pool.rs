//! The connections of a store, which its threads share.

use super::address::Address;
use super::fault::{Fault, Kind};
use super::io::Io;
use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls};

/// How long the server may take for one answer. It is longer than it waits for a lock.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a server may take to greet one that it has accepted.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long a store goes on trying while the server is away, or others are in the way.
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
    idle: Vec<Arc<Client>>,
    /// How many connections there are, idle or in use.
    count: usize,
}

/// A connection that one thread uses.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    client: Option<Arc<Client>>,
}

/// Something that is asked on a connection.
pub(super) type Asked<T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send>>;

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
        let mut pauses = Pauses::until(Instant::now() + patience);
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
        self.lease()?.ask(what)
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
            while let Some(client) = lent.idle.pop() {
                if !client.is_closed() {
                    return Ok(Lease { pool: self, client: Some(client) });
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
        let mut lease = Lease { pool: self, client: None };
        lease.client = Some(Arc::new(self.connect()?));
        Ok(lease)
    }

    fn connect(&self) -> Result<Client, Fault> {
        let (address, (open, handle)) = (self.address.clone(), self.io.connections());
        let connected = self.io.ask(async move {
            // The address limits the time until a server accepts; this one, the time until it knows who asks.
            match tokio::time::timeout(HANDSHAKE, connect(&address, &open, &handle)).await {
                Ok(connected) => connected.map_err(|error| Fault::Unconnected(Some(error))),
                Err(_) => Err(Fault::Unconnected(None)),
            }
        });
        connected.unwrap_or(Err(Fault::Unconnected(None)))
    }
}

async fn connect(
    address: &Address,
    open: &Arc<AtomicUsize>,
    handle: &Handle,
) -> Result<Client, tokio_postgres::Error> {
    macro_rules! drive {
        ($tls:expr) => {{
            let (client, connection) = address.config.connect($tls).await?;
            open.fetch_add(1, Ordering::AcqRel);
            let open = open.clone();
            handle.spawn(async move {
                // A request on the connection reports what ended it.
                let _ = connection.await;
                open.fetch_sub(1, Ordering::AcqRel);
            });
            Ok(client)
        }};
    }
    match address.tls.clone() {
        Some(tls) => drive!(tls),
        None => drive!(NoTls),
    }
}

impl Lease<'_> {
    /// Asks on this connection.
    pub(super) fn ask<T: Send + 'static>(
        &mut self,
        what: impl FnOnce(Arc<Client>) -> Asked<T>,
    ) -> Result<T, Fault> {
        let Some(client) = self.client.clone() else { return Err(Fault::Unconnected(None)) };
        let asked = what(client);
        let answer = self.pool.io.ask(async move {
            match tokio::time::timeout(ANSWER, asked).await {
                Ok(answer) => answer.map_err(Fault::Client),
                Err(_) => Err(Fault::Silence),
            }
        });
        let answer = answer.unwrap_or(Err(Fault::Silence));
        if let Err(fault) = &answer
            && !fault.leaves_connection()
        {
            self.give_up();
            // The others were made to the same server, so they are gone, too, or soon will be.
            self.pool.drop_idle();
        }
        answer
    }

    /// Closes the connection, which may be in the middle of something.
    pub(super) fn give_up(&mut self) {
        self.client = None;
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
        match self.client.take() {
            Some(client) => lent.idle.push(client),
            None => lent.count -= 1,
        }
        self.pool.returned.notify_one();
    }
}

/// Pauses that grow, and end with patience. No two processes make the same ones.
pub(super) struct Pauses {
    until: Instant,
    next: Duration,
}

impl Pauses {
    pub(super) fn until(until: Instant) -> Self {
        Self { until, next: FIRST_PAUSE }
    }

    /// Pauses. Returns whether there is any patience left.
    pub(super) fn pause(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.until {
            return false;
        }
        let part = f64::from(super::token::random_u32() >> 8) / f64::from(1 << 24);
        std::thread::sleep(self.next.mul_f64(0.5 + part / 2.0).min(self.until - now));
        self.next = (self.next * 2).min(LAST_PAUSE);
        true
    }
}
