//! Single requests to the object store.

use super::object_name::{payload_name, text};
use super::outage::Outage;
use super::request_thread::{RequestThread, Sent};
use super::trouble::trouble;
use crate::Error;
use crate::payload_files::{CopyId, FileName};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
    PutResult,
};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// An object store that takes uploads in parts, which can be ended by their id.
pub(crate) trait Store: ObjectStore + MultipartStore {}

impl<S: ObjectStore + MultipartStore> Store for S {}

/// An object store, and where in it payloads are kept.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) store: Arc<dyn Store>,
    /// The part of every object's name before the store's id; it may be empty.
    pub(crate) prefix: String,
    /// How the bucket is shown to people: `s3://bucket`.
    pub(crate) shown: String,
}

/// Single requests to the object store, each of which is waited for.
pub(super) struct Client {
    service: Service,
    /// The part of every name before the todo's number.
    base: String,
    requests: RequestThread,
    outage: Outage,
    /// Whether the service was found to know no condition for a put.
    pub(super) knows_no_condition: AtomicBool,
}

impl Client {
    pub(super) fn new(service: Service, id: &CopyId) -> Result<Self, Error> {
        let parts = [service.prefix.as_str(), &text(id)];
        let base = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let requests = RequestThread::start();
        let requests = requests.map_err(|error| Error::io("reach", &service.shown, error))?;
        let (outage, knows_no_condition) = (Outage::default(), AtomicBool::default());
        Ok(Self { service, base, requests, outage, knows_no_condition })
    }

    /// Returns the prefix of a todo.
    pub(super) fn todo(&self, todo: u32) -> Path {
        Path::from(format!("{}/{todo}", self.base))
    }

    /// Returns the path of an object of a todo.
    pub(super) fn below(&self, todo: u32, name: &str) -> Path {
        Path::from(format!("{}/{todo}/{name}", self.base))
    }

    pub(super) fn path(&self, name: &FileName) -> Path {
        self.below(name.todo, &payload_name(name))
    }

    /// Returns the address of an object, for people.
    pub(super) fn address(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("{}/{path}", self.service.shown))
    }

    /// Returns the store.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.service.store.clone()
    }

    /// Writes an object, whether there is one or not.
    pub(super) fn put_over(&self, path: &Path, bytes: Bytes) -> Result<(), Error> {
        let put = self.put(path, PutPayload::from_bytes(bytes), PutMode::Overwrite);
        self.finish("write", path, put).map(drop)
    }

    pub(super) fn put(
        &self,
        path: &Path,
        bytes: PutPayload,
        mode: PutMode,
    ) -> Sent<Result<PutResult, StoreError>> {
        let (store, path) = (self.store(), path.clone());
        self.send(async move { store.put_opts(&path, bytes, mode.into()).await })
    }

    /// Returns what is known of an object, if there is one.
    pub(super) fn head(&self, path: &Path) -> Result<Option<ObjectMeta>, Error> {
        let (store, at) = (self.store(), path.clone());
        self.found("look at", path, self.send(async move { store.head(&at).await }))
    }

    /// Returns a range of an object's bytes, if there is one.
    pub(super) fn part(&self, path: &Path, range: Range<u64>) -> Result<Option<Bytes>, Error> {
        let (store, at) = (self.store(), path.clone());
        self.found("read", path, self.send(async move { store.get_range(&at, range).await }))
    }

    /// Returns a range of the bytes of an object that was there.
    pub(super) fn range(&self, path: &Path, range: Range<u64>) -> io::Result<Bytes> {
        let (store, path) = (self.store(), path.clone());
        let found = self.send(async move { store.get_range(&path, range).await }).wait()?;
        found.map_err(|error| self.told(&error))
    }

    /// Returns all bytes of a small object, if there is one.
    pub(super) fn whole(&self, path: &Path) -> Result<Option<Bytes>, Error> {
        let (store, at) = (self.store(), path.clone());
        let sent = self.send(async move { store.get(&at).await?.bytes().await });
        self.found("read", path, sent)
    }

    /// Returns the objects of a todo.
    pub(super) fn list(&self, todo: u32) -> Result<Vec<ObjectMeta>, Error> {
        let (store, prefix) = (self.store(), self.todo(todo));
        let at = prefix.clone();
        let sent = self.send(async move { store.list(Some(&at)).try_collect().await });
        Ok(self.found("list", &prefix, sent)?.unwrap_or_default())
    }

    /// Returns the numbers of the todos that have objects, ascending.
    pub(super) fn todos(&self) -> Result<Vec<u32>, Error> {
        let (store, base) = (self.store(), Path::from(self.base.as_str()));
        let at = base.clone();
        let sent = self.send(async move { store.list_with_delimiter(Some(&at)).await });
        let found = self.found("list", &base, sent)?;
        let prefixes = found.map(|found| found.common_prefixes).unwrap_or_default();
        let numbers = prefixes.iter().filter_map(|prefix| {
            let name = prefix.filename()?;
            name.parse().ok().filter(|no: &u32| no.to_string() == name)
        });
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes objects. One that is already gone is not an error.
    pub(super) fn delete(&self, paths: Vec<Path>) -> Result<(), Error> {
        let Some(first) = paths.first().cloned() else { return Ok(()) };
        let store = self.store();
        let sent = self.send(async move {
            let mut gone = store.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
            while let Some(one) = gone.next().await {
                match one {
                    Ok(_) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        self.finish("remove", &first, sent)
    }

    /// Returns our time `now` by the clock of the service.
    pub(super) fn time_there(&self, now: SystemTime) -> Result<SystemTime, Error> {
        let path = Path::from(format!("{}/clock", self.base));
        self.put_over(&path, Bytes::new())?;
        let Some(found) = self.head(&path)? else {
            let missing = io::Error::new(io::ErrorKind::NotFound, "it was written a moment ago");
            return Err(self.failed("look at", &path, missing));
        };
        // Our time is taken last: if the requests were slow, the service's time seems earlier, and more is kept.
        let here = SystemTime::now();
        let there = SystemTime::from(found.last_modified);
        Ok(match there.duration_since(here) {
            Ok(ahead) => now.checked_add(ahead).unwrap_or(now),
            Err(behind) => now.checked_sub(behind.duration()).unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }

    /// Marks the place as that of a store.
    pub(super) fn put_mark(&self) -> Result<(), Error> {
        self.put_over(&self.mark(), Bytes::from_static(MARK))
    }

    /// Returns whether the place is marked.
    pub(super) fn has_mark(&self) -> Result<bool, Error> {
        Ok(self.head(&self.mark())?.is_some())
    }

    fn mark(&self) -> Path {
        Path::from(format!("{}/STORE", self.base))
    }

    /// Begins a request.
    pub(super) fn send<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Sent<T> {
        match self.outage.check() {
            Ok(()) => self.requests.send(request),
            Err(error) => Sent::refused(error),
        }
    }

    /// Turns what the object store answered into an error of the system.
    pub(super) fn told(&self, error: &StoreError) -> io::Error {
        let error = trouble(error);
        self.outage.note(&error);
        error
    }

    /// Waits for a request, and returns what it found; `None` if there is no such thing.
    fn found<T>(
        &self,
        doing: &'static str,
        path: &Path,
        sent: Sent<Result<T, StoreError>>,
    ) -> Result<Option<T>, Error> {
        match self.wait(doing, path, sent)? {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(doing, path, self.told(&error))),
        }
    }

    /// Waits for a request that has to succeed.
    pub(super) fn finish<T>(
        &self,
        doing: &'static str,
        path: &Path,
        sent: Sent<Result<T, StoreError>>,
    ) -> Result<T, Error> {
        let done = self.wait(doing, path, sent)?;
        done.map_err(|error| self.failed(doing, path, self.told(&error)))
    }

    pub(super) fn wait<T>(
        &self,
        doing: &'static str,
        path: &Path,
        sent: Sent<T>,
    ) -> Result<T, Error> {
        sent.wait().map_err(|error| self.failed(doing, path, error))
    }

    pub(super) fn failed(&self, doing: &'static str, path: &Path, error: io::Error) -> Error {
        Error::io(doing, self.address(path), error)
    }
}

/// What the mark of a store says, to a person who comes upon it.
const MARK: &[u8] = b"Payloads of a foldback store. The folders beside this are its todos.\n";
