//! Payload files in an object store: S3 and what speaks its language, Google Cloud Storage, Azure Blob Storage.
//!
//! ```text
//! <prefix>/<id of the store>/STORE                    marks the place
//! <prefix>/<id of the store>/clock                    whose time is compared with ours before a sweep
//! <prefix>/<id of the store>/<todo number>/<hash>-<copy>  a payload: its hash, and which writing it is
//! <prefix>/<id of the store>/<todo number>/upload-<id>    a note of an upload in parts that is under way
//! ```
//!
//! The format of a payload's file is that of a folder (see the `file` module), so what is read is checked in the same
//! way.
//!
//! # Why a sweep never races a writer
//!
//! There is no lock that all machines share, and no service deletes an object on the condition that nobody has touched it
//! since. So the rule below does without either:
//!
//! 1. **A name is written once.** Its second part is random and drawn by the writer, who puts the object on the
//!    condition that there is none. Nobody else ever writes that name, not even a writer of the same bytes. A repeated
//!    attempt of the same writer uses the object that it put, and only for [`REUSED_FOR`] from the beginning of its
//!    upload; after that it draws another name.
//! 2. **A commit follows in time.** An upload takes at most [`UPLOAD_LIMIT`], or it is given up. So a record names an
//!    object at most [`REUSED_FOR`] or [`UPLOAD_LIMIT`] after its upload began, and the time of a transaction: well
//!    before [`GRACE`] has passed.
//! 3. **A sweep takes the time first, reads the records next, and then removes** what is at least [`GRACE`] old by that
//!    time and named by no record. An object's time is at the earliest that of the beginning of its upload. So by (2)
//!    every record that will ever name it was committed before the records were read.
//! 4. **The time is the service's own**: a small object is written, and its time compared with ours.
//!
//! Since no name is used again, an object that was once found to be an orphan stays one, and the deletion may arrive
//! as late as it likes. What is put after its todo was forgotten belongs to a number that no todo has again, and
//! [`sweep_forgotten`](crate::BackendStore::sweep_forgotten) removes it.
//!
//! An upload in parts is noted before its first part. A note that is older than [`GRACE`] is that of a dead writer, by
//! (2); its parts are removed with it. Forgetting a todo does not wait for that: the writer's commit fails anyway.

mod client;
mod draft;
mod object_file;
mod object_name;
mod outage;
mod put;
mod request_thread;
mod time_limit;
mod trouble;
mod upload;

use crate::Error;
use crate::payload_files::{CopyId, Draft, FileName, PayloadFile, PayloadFiles, Stored};
use client::Client;
use draft::ObjectDraft;
use object_file::ObjectFile;
use object_name::ObjectName;
use object_store::ObjectMeta;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub(crate) use client::{Service, Store};
pub(crate) use time_limit::TimeLimit;

/// The age at which an object that no record names is removed, at the earliest.
pub(crate) const GRACE: Duration = Duration::from_secs(24 * 3600);

/// How long one upload may take.
const UPLOAD_LIMIT: Duration = Duration::from_secs(12 * 3600);

/// How long the object of a commit that failed is used again, counted from the beginning of its upload.
const REUSED_FOR: Duration = Duration::from_secs(600);

/// How many objects are remembered, to be used again.
const REMEMBERED: usize = 1024;

/// How often a todo's objects are listed and removed before somebody is found to be writing new ones.
const ROUNDS: usize = 5;

/// The objects of one store.
pub(crate) struct Objects {
    client: Arc<Client>,
    /// Where large files wait until they are put, without a name; `None` for the system's place.
    scratch: Option<PathBuf>,
    /// What this process has put lately, by todo and hash.
    put_lately: Mutex<HashMap<(u32, [u8; 32]), PutLately>>,
}

/// An object that this process has put.
#[derive(Clone)]
struct PutLately {
    stored: Stored,
    /// What the service called these bytes, if it did.
    tag: Option<String>,
    begun: Instant,
}

impl Objects {
    /// Opens the objects of the store with this id.
    pub(crate) fn open(
        service: Service,
        id: &CopyId,
        scratch: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let client = Arc::new(Client::new(service, id)?);
        Ok(Self { client, scratch, put_lately: Mutex::default() })
    }

    /// Returns the object of these bytes that this process has put lately, if it is still there as it was put.
    fn put_lately(&self, todo: u32, hash: &[u8; 32]) -> Result<Option<Stored>, Error> {
        let known = self.lately().get(&(todo, *hash)).cloned();
        let Some(known) = known.filter(|known| known.begun.elapsed() < REUSED_FOR) else {
            return Ok(None);
        };
        let name = FileName { todo, hash: *hash, copy: known.stored.copy };
        let Some(found) = self.client.head(&self.client.path(&name))? else { return Ok(None) };
        let is_same = found.size == known.stored.sealed.stored && found.e_tag == known.tag;
        Ok((is_same && known.tag.is_some()).then_some(known.stored))
    }

    fn remember(&self, todo: u32, hash: &[u8; 32], put: PutLately) {
        let mut lately = self.lately();
        if lately.len() >= REMEMBERED {
            lately.retain(|_, put| put.begun.elapsed() < REUSED_FOR);
        }
        if lately.len() < REMEMBERED {
            lately.insert((todo, *hash), put);
        }
    }

    fn lately(&self) -> std::sync::MutexGuard<'_, HashMap<(u32, [u8; 32]), PutLately>> {
        self.put_lately.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PayloadFiles for Objects {
    fn address(&self, name: &FileName) -> PathBuf {
        self.client.address(&self.client.path(name))
    }

    fn draft(&self, todo: u32) -> Result<Box<dyn Draft + '_>, Error> {
        Ok(Box::new(ObjectDraft::new(self, todo)))
    }

    fn open(&self, name: &FileName) -> Result<Option<Box<dyn PayloadFile>>, Error> {
        // A name without its second part is that of a file in a folder.
        if name.copy.is_none() {
            return Ok(None);
        }
        let file = ObjectFile::open(&self.client, self.client.path(name))?;
        Ok(file.map(|file| Box::new(file) as Box<dyn PayloadFile>))
    }

    fn list(&self, todo: u32) -> Result<Vec<FileName>, Error> {
        let found = self.client.list(todo)?;
        let names = found.iter().filter_map(|object| match ObjectName::of(todo, object) {
            Some(ObjectName::Payload(name)) => Some(name),
            _ => None,
        });
        let mut names: Vec<FileName> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    fn sweep(
        &self,
        todo: u32,
        age: Duration,
        now: SystemTime,
        wanted: &dyn Fn(&FileName) -> bool,
    ) -> Result<u64, Error> {
        let (mut orphans, mut notes) = (Vec::new(), Vec::new());
        for object in self.client.list(todo)? {
            match ObjectName::of(todo, &object) {
                Some(ObjectName::Payload(name)) if !wanted(&name) => orphans.push(object),
                Some(ObjectName::UploadNote) => notes.push(object),
                _ => {}
            }
        }
        if orphans.is_empty() && notes.is_empty() {
            return Ok(0);
        }
        let before = self.client.time_there(now)?.checked_sub(age.max(GRACE));
        let is_old = |object: &ObjectMeta| before.is_some_and(|before| is_before(object, before));
        orphans.retain(is_old);
        notes.retain(is_old);
        for note in &notes {
            self.client.end_upload(todo, &note.location)?;
        }
        let gone = orphans.len() + notes.len();
        let paths = orphans.into_iter().chain(notes).map(|object| object.location);
        self.client.delete(paths.collect())?;
        Ok(gone as u64)
    }

    fn forget(&self, todo: u32) -> Result<(), Error> {
        self.lately().retain(|(of, _), _| *of != todo);
        for _ in 0..ROUNDS {
            let found = self.client.list(todo)?;
            if found.is_empty() {
                return Ok(());
            }
            for object in &found {
                if let Some(ObjectName::UploadNote) = ObjectName::of(todo, object) {
                    self.client.end_upload(todo, &object.location)?;
                }
            }
            self.client.delete(found.into_iter().map(|object| object.location).collect())?;
        }
        let what = "new objects came while they were removed; forget the todo again";
        Err(Error::io(
            "remove everything at",
            self.client.address(&self.client.todo(todo)),
            std::io::Error::other(what),
        ))
    }

    fn todos(&self) -> Result<Vec<u32>, Error> {
        self.client.todos()
    }

    fn claim(&self) -> Result<(), Error> {
        self.client.put_mark()
    }

    fn is_claimed(&self) -> Result<bool, Error> {
        self.client.has_mark()
    }
}

fn is_before(object: &ObjectMeta, time: SystemTime) -> bool {
    SystemTime::from(object.last_modified) <= time
}

#[cfg(test)]
mod tests;
