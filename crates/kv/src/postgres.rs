//! The engine on PostgreSQL: one database for any number of processes on any number of machines.
//!
//! The SQL is what other servers of this language take, too: no extension, no function, no lock beyond those of rows. A
//! commit is one transaction and one round trip ([`commit`]). If the server goes away or says nothing meanwhile, it
//! is sent again until a server answers or half a minute is over; a token keeps it from being made twice.
//!
//! The client is `tokio-postgres`, which sends the statements of a transaction without waiting in between. Its
//! synchronous sister `postgres` cannot, and it panics where its caller runs in a runtime. TLS is rustls, as everywhere
//! else in the workspace.
//!
//! What the other engines need a folder for is different here. There is no lock file, because the server orders its
//! writers. `FORMAT` ties the folder to the database ([`folder::tie`]). `WITNESS` remembers what was acknowledged to this
//! folder ([`known`]). Pages and logs are the server's: a check here reads every row, and space that is no longer used is
//! for the server to return.

mod address;
mod check;
mod commit;
mod connect;
mod console;
#[cfg(feature = "sqlite")]
mod copy;
mod fault;
mod head;
mod io;
mod known;
mod notice;
mod params;
mod passfile;
mod pool;
mod read;
mod rows;
mod schema;
mod slot;
pub(crate) mod tenant;
mod tls;
mod token;
mod walk;

pub use self::console::Console;

use self::address::Address;
use self::commit::{Draft, Outcome};
use self::fault::{Fault, Kind};
use self::io::Io;
use self::known::Known;
use self::notice::Notices;
use self::pool::{PATIENCE, Pauses, Pool};
use self::slot::Slots;
use crate::witness::Link;
use crate::{
    Batch, DAMAGED_HEAD, Error, FORGOTTEN_HEAD, Finding, Key, Kv, Lost, Mode, Scans, Server, Space,
    folder, record,
};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::types::Type;

pub(crate) struct Postgres {
    pool: Pool,
    mode: Mode,
    /// Where its rows are.
    slots: Slots,
    known: Known,
    notices: Notices,
    /// Whether the database was found to have lost commits.
    is_behind: AtomicBool,
}

impl Postgres {
    /// Opens the store in a database. `dir` is the folder of this machine that goes with it.
    pub(crate) fn open(dir: &Path, server: &Server, mode: Mode) -> Result<Self, Error> {
        let address = Address::of(server, mode)?;
        let started = Io::start();
        let io = started.map_err(crate::error::reading("start a thread for", &address.name))?;
        let pool = Pool::new(address, io);
        let (id, slots) = schema::open(&pool, mode)?;
        let is_tied = folder::tie(dir, &id, mode)?;
        let known = Known::open(is_tied.then_some(dir), mode == Mode::ReadWrite)?;
        let (notices, is_behind) = (Notices::default(), AtomicBool::new(false));
        let store = Self { pool, mode, slots, known, notices, is_behind };
        let is_behind = store.lost()?.is_some();
        store.is_behind.store(is_behind, Ordering::Release);
        Ok(store)
    }

    /// Returns [`Error::Lost`] if acknowledged commits are gone.
    fn refuse_loss(&self) -> Result<(), Error> {
        let Some(lost) = self.lost()? else {
            // Another process may have accepted it.
            self.is_behind.store(false, Ordering::Release);
            return Ok(());
        };
        self.is_behind.store(true, Ordering::Release);
        Err(Error::Lost { path: self.pool.address.name.clone(), lost })
    }

    /// Commits a batch, if the head and the record that it depends on are as they were.
    fn write(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: self.pool.address.name.clone() });
        }
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        if self.is_behind.load(Ordering::Acquire) {
            self.refuse_loss()?;
        }
        let (expect, key) = (batch.expect, held.as_ref().map(|(key, _)| *key));
        let position = |slot| self.slots.position(slot);
        let draft = Draft::of(self.slots, &batch, held, |slot| self.known.of(position(slot)))?;
        let draft = Arc::new(draft);
        drop(batch);
        match self.send(&draft)? {
            Outcome::Made(link) => {
                foldback_core::failpoint!("kv.commit.durable");
                self.known.note(position(draft.slot()), link);
                self.notices.tell(&self.pool);
                foldback_core::failpoint!("kv.commit.witnessed");
                if token::is_time() {
                    self.notices.forget_tokens(&self.pool, draft.slot());
                }
                Ok(())
            }
            Outcome::Moved => {
                let (todo, expected) = expect.map_or((0, 0), |expect| (expect.todo, expect.head));
                Err(Error::Conflict { todo, expected, found: self.head(todo)? })
            }
            Outcome::Changed => Err(key.map_or_else(|| self.busy(), |key| Error::Changed { key })),
            // If another process has accepted the loss, the next try goes through.
            Outcome::Lost => self.refuse_loss().and(Err(self.busy())),
            Outcome::NotCounted => {
                let detail = "the row that makes its commits one transaction each is not stored; no trigger, rule or \
                              policy may change what is written to its tables";
                let path = self.pool.address.name.clone();
                Err(Error::Unfit { path, detail: detail.to_owned() })
            }
        }
    }

    /// Sends a commit until its outcome is known, as long as patience lasts.
    fn send(&self, draft: &Arc<Draft>) -> Result<Outcome, Error> {
        let mut pauses = Pauses::of(PATIENCE);
        let mut may_be_made = false;
        loop {
            let (address, same) = (self.pool.address.clone(), draft.clone());
            let is_at_it = move || same.is_being_made(address.clone());
            let sent = self.pool.once_while(draft.limit(), is_at_it, |client| draft.send(client));
            let fault = match sent {
                Ok(outcome) => return Ok(outcome),
                Err(fault) => fault,
            };
            may_be_made |= fault.may_be_done();
            if fault.kind() == Kind::Lasting || !pauses.pause() {
                let error = fault.into_error(&self.pool.address.name);
                return Err(if may_be_made { self.unknown(&error) } else { error });
            }
        }
    }

    fn forget_tokens(&self, slots: RangeInclusive<i32>) -> Result<(), Error> {
        let fault = |fault: Fault| fault.into_error(&self.pool.address.name);
        let mut lease = self.pool.lease().map_err(fault)?;
        let forgotten = lease.ask(|client| token::forget_old(client, slots));
        if forgotten.is_err() {
            // Its transaction may be open.
            lease.give_up();
        }
        forgotten.map_err(fault)
    }

    fn unknown(&self, error: &Error) -> Error {
        let detail = match error {
            Error::Unreachable { detail, .. } | Error::Refused { detail, .. } => detail.clone(),
            error => error.to_string(),
        };
        Error::Unknown { path: self.pool.address.name.clone(), detail }
    }

    fn busy(&self) -> Error {
        Error::Busy { path: self.pool.address.name.clone(), doing: "others wrote" }
    }

    /// Returns the last commit of each slot.
    fn links(&self) -> Result<Vec<(usize, Link)>, Error> {
        let sql = "SELECT CAST(slot AS INTEGER), number, digest FROM foldback_slot WHERE slot BETWEEN $1 AND $2";
        let links = self.rows(sql, self.span(), |row| {
            let (number, digest): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            Ok((row.try_get::<_, i32>(0)?, number, Link::new(number as u64, digest as u64)))
        })?;
        if let Some(tenant) = &self.pool.address.tenant
            && links.iter().any(|(_, number, _)| *number == tenant::FORGOTTEN)
        {
            return Err(Error::NoTenant { name: tenant.to_string(), was_forgotten: true });
        }
        Ok(links.into_iter().map(|(slot, _, link)| (self.slots.position(slot), link)).collect())
    }

    /// Returns whether the server only follows another one, and may be behind it.
    fn is_standby(&self) -> Result<bool, Error> {
        let sql = "SELECT current_setting('transaction_read_only') = 'on'";
        let found = self.rows(sql, Vec::new(), |row| row.try_get::<_, bool>(0))?;
        Ok(found.first() == Some(&true))
    }
}

impl Kv for Postgres {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.write(batch, None)
    }

    fn commit_if(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        self.write(batch, held)
    }

    fn erase_if(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        self.write(batch, held)
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        let head = self.pool.ask(|client| head::read(client, self.slots, todo))?;
        head.map_err(|detail| Error::CorruptHead { todo, detail })
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        let (first, end) = (todos.start, todos.end.min(Key::TODO_END));
        if first >= end {
            return Ok(Vec::new());
        }
        let sql = "SELECT todo, head, checksum FROM foldback_head \
                   WHERE slot BETWEEN $1 AND $2 AND todo BETWEEN $3 AND $4 AND head NOT IN (0, $5) ORDER BY todo";
        let mut params = self.span();
        params.extend([
            (first.into(), Type::INT4),
            ((end - 1).into(), Type::INT4),
            (FORGOTTEN_HEAD as i64, Type::INT8),
        ]);
        let rows = self.rows(sql, params, |row| {
            Ok((row.try_get::<_, i32>(0)?, row.try_get(1)?, row.try_get(2)?))
        })?;
        let open = |(todo, head, checksum): (i32, i64, i64)| {
            let todo = u32::try_from(todo).unwrap_or_default();
            (todo, head::open(todo, head, checksum).unwrap_or(DAMAGED_HEAD))
        };
        Ok(rows.into_iter().map(open).collect())
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        let sql = "SELECT record FROM foldback_record \
                   WHERE slot = $1 AND todo = $2 AND space = $3 AND n = $4";
        let mut params = self.place(key.space, key.todo);
        params.push((key.n as i64, Type::INT8));
        let found = self.rows(sql, params, |row| row.try_get::<_, Vec<u8>>(0))?.pop();
        let value = found.map(|stored| record::open(key, &stored)).transpose();
        value.map_err(|detail| Error::Corrupt { key, detail })
    }

    fn get_each(
        &self,
        space: Space,
        todo: u32,
        numbers: &[u64],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        numbers.iter().try_for_each(|n| Key { space, todo, n: *n }.check().map(drop))?;
        self.select_each(space, todo, numbers)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &range)? else { return Ok(Vec::new()) };
        let range = (i64::from(*span.start()), i64::from(*span.end()));
        self.select(read::SCAN, (space, todo), range, limit)
    }

    fn scan_each(
        &self,
        todo: u32,
        ranges: &[(Space, Range<u64>)],
        limit: usize,
    ) -> Result<Scans, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        self.scan_with_head(todo, ranges, limit)
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &(0..Key::N_END))? else { return Ok(None) };
        let sql = "SELECT n, record FROM foldback_record WHERE slot = $1 AND todo = $2 AND space = $3 \
                   AND n BETWEEN $4 AND $5 ORDER BY slot DESC, todo DESC, space DESC, n DESC LIMIT $6";
        let range = (i64::from(*span.start()), i64::from(*span.end()));
        Ok(self.select(sql, (space, todo), range, 1)?.pop())
    }

    fn changed(&self) -> Result<u64, Error> {
        self.commits()
    }

    fn changed_in(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        self.last_commit(todo)
    }

    fn wait_for_change(&self, seen: u64, most: Duration) -> Result<bool, Error> {
        self.notices.wait(&self.pool, most, || Ok(self.changed()? != seen))
    }

    fn lost(&self) -> Result<Option<Lost>, Error> {
        if self.mode == Mode::ReadOnly && self.is_standby()? {
            return Ok(None);
        }
        self.known.loss(|| self.links())
    }

    fn accept_loss(&self) -> Result<(), Error> {
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: self.pool.address.name.clone() });
        }
        self.known.accept(&self.links()?)
    }

    /// Removes the tokens of old commits. The rest is the server's.
    fn compact(&self) -> Result<(), Error> {
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: self.pool.address.name.clone() });
        }
        self.refuse_loss()?;
        self.forget_tokens(self.slots.range())
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        #[cfg(feature = "sqlite")]
        return self.copy_to(dir);
        #[cfg(not(feature = "sqlite"))]
        {
            let _ = dir;
            let what = "copies into a store of SQLite, which was left out of this build";
            Err(Error::Unsupported { engine: crate::Engine::Postgres.name(), what })
        }
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.find_damage()
    }

    fn shares_derived(&self) -> bool {
        self.mode == Mode::ReadWrite
    }

    fn is_remote(&self) -> bool {
        true
    }
}
