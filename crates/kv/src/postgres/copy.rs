//! A copy of a database in a folder: a store of the default engine, which needs no server.
//!
//! It is read in one transaction, so it is of one moment, while others write.

use super::check::key_of;
use super::pool::{Asked, Lease};
use super::{Postgres, head, walk};
use crate::error::{reading, writing};
use crate::{Batch, Engine, Error, Expect, FORGOTTEN_HEAD, FORMAT_VERSION, Key, Kv, Mode};
use crate::{folder, open, sealed};
use parking_lot::Mutex;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::Client;

/// How many bytes are committed at once.
const STEP_BYTES: usize = 4 << 20;
/// How many threads set heads: the engine makes the commits of several threads durable together.
const THREADS: usize = 16;

impl Postgres {
    pub(super) fn copy_to(&self, dir: &Path) -> Result<(), Error> {
        if dir.exists() {
            let mut entries = fs::read_dir(dir).map_err(reading("list", dir))?;
            if entries.next().is_some() {
                return Err(Error::NotEmpty { path: dir.to_owned() });
            }
        }
        let copy = open::open_engine(dir, Engine::Sqlite, Mode::ReadWrite)?;
        // An incomplete copy is not a store: its format file comes last.
        let format = dir.join("FORMAT");
        fs::remove_file(&format).map_err(writing("remove", &format))?;
        let fault = |fault: super::fault::Fault| fault.into_error(&self.pool.address.name);
        let mut lease = self.pool.lease().map_err(fault)?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        lease.ask(move |client| run(client, begin)).map_err(fault)?;
        let copied = self.fill(&mut lease, copy.as_ref());
        match &copied {
            Ok(()) => lease.ask(|client| run(client, "COMMIT")).map_err(fault)?,
            Err(_) => lease.give_up(),
        }
        copied?;
        let is_sealed = sealed::is_sealed(copy.as_ref());
        drop(copy);
        folder::restore(dir, Engine::Sqlite, FORMAT_VERSION)?;
        if is_sealed { folder::mark_encrypted(dir) } else { Ok(()) }
    }

    fn fill(&self, lease: &mut Lease<'_>, copy: &dyn Kv) -> Result<(), Error> {
        let name = &self.pool.address.name;
        let (mut put, mut bytes): (Vec<(Key, Vec<u8>)>, _) = (Vec::new(), 0);
        walk::records(
            self.slots,
            |step| lease.ask(step).map_err(|fault| fault.into_error(name)),
            |(place, stored)| {
                // A row that is not a record is a finding of a check, and is not copied.
                let Some(key) = key_of(self.slots, place) else { return Ok(()) };
                let value = crate::record::open(key, &stored);
                let value = value.map_err(|detail| Error::Corrupt { key, detail })?;
                bytes += value.len();
                put.push((key, value));
                if bytes >= STEP_BYTES {
                    bytes = 0;
                    copy.commit(Batch { put: std::mem::take(&mut put), ..Batch::default() })?;
                }
                Ok(())
            },
        )?;
        copy.commit(Batch { put, ..Batch::default() })?;
        let mut heads = Vec::new();
        walk::heads(
            self.slots,
            |step| lease.ask(step).map_err(|fault| fault.into_error(name)),
            |[_, todo, value, checksum]| {
                let todo = u32::try_from(todo).unwrap_or(u32::MAX);
                let head = head::open(todo, value, checksum);
                let head = head.map_err(|detail| Error::CorruptHead { todo, detail })?;
                // A forgotten todo is known by the record that it lacks.
                if !matches!(head, 0 | FORGOTTEN_HEAD) {
                    heads.push((todo, head));
                }
                Ok(())
            },
        )?;
        set(copy, heads)
    }
}

/// Sets the heads of a copy. That of the registry comes last: it makes todos that are not registered forgotten ones.
fn set(copy: &dyn Kv, mut heads: Vec<(u32, u64)>) -> Result<(), Error> {
    let registry: Vec<_> = heads.extract_if(.., |(todo, _)| *todo == 0).collect();
    let left = Mutex::new(heads);
    let set = |(todo, head)| {
        let expect = Some(Expect { todo, head: 0, next: head });
        copy.commit(Batch { expect, ..Batch::default() })
    };
    let all = || {
        while let Some(next) = { left.lock().pop() } {
            set(next)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(all)).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Result<Vec<()>, Error>>()
    })?;
    registry.into_iter().try_for_each(set)
}

fn run(client: Arc<Client>, sql: &'static str) -> Asked<()> {
    Box::pin(async move { client.batch_execute(sql).await })
}
