//! An object store in memory of which some requests fail.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartId, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// An object store in memory of which some requests fail.
#[derive(Debug)]
pub(super) struct Failing {
    inner: InMemory,
    /// How many requests still work.
    left: AtomicI64,
    /// What becomes of those after them.
    then: Mutex<Then>,
    /// The uploads that are neither complete nor ended, each with the number of its parts.
    under_way: Mutex<BTreeMap<MultipartId, usize>>,
}

/// What becomes of requests.
#[derive(Clone, Copy, Debug)]
enum Then {
    AreRefused,
    /// The next one is done, and its answer is lost; the others work.
    OneAnswerIsLost,
    FindNothing,
}

/// What becomes of a request.
enum Fate {
    Works,
    Fails(Error),
    LosesAnswer,
}

impl Failing {
    pub(super) fn new() -> Self {
        Self {
            inner: InMemory::new(),
            left: AtomicI64::new(i64::MAX),
            then: Mutex::new(Then::AreRefused),
            under_way: Mutex::default(),
        }
    }

    /// After these requests, every one fails.
    pub(super) fn fail_after(&self, requests: i64) {
        self.then(requests, Then::AreRefused);
    }

    /// After these requests, the answer of one is lost.
    pub(super) fn lose_answer_after(&self, requests: i64) {
        self.then(requests, Then::OneAnswerIsLost);
    }

    /// After these requests, all objects have vanished.
    pub(super) fn vanish_after(&self, requests: i64) {
        self.then(requests, Then::FindNothing);
    }

    fn then(&self, requests: i64, then: Then) {
        *self.then.lock().unwrap() = then;
        self.left.store(requests, Ordering::SeqCst);
    }

    pub(super) fn work_again(&self) {
        self.fail_after(i64::MAX);
    }

    pub(super) fn was_hit(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    /// How many parts there are of uploads that are neither complete nor ended.
    pub(super) fn parts(&self) -> usize {
        self.under_way.lock().unwrap().values().sum()
    }

    fn fate(&self, path: &Path) -> Fate {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let (path, source) = (path.to_string(), "on purpose".into());
        match *self.then.lock().unwrap() {
            Then::OneAnswerIsLost if left == 0 => Fate::LosesAnswer,
            Then::AreRefused if left <= 0 => Fate::Fails(Error::PermissionDenied { path, source }),
            Then::FindNothing if left <= 0 => Fate::Fails(Error::NotFound { path, source }),
            _ => Fate::Works,
        }
    }

    async fn request<T>(&self, at: &Path, done: impl Future<Output = Result<T>>) -> Result<T> {
        match self.fate(at) {
            Fate::Works => done.await,
            Fate::Fails(error) => Err(error),
            Fate::LosesAnswer => done.await.and(Err(lost())),
        }
    }

    fn answers<T: Send + 'static>(
        &self,
        at: &Path,
        done: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let error = |error| stream::once(async { Err(error) });
        match self.fate(at) {
            Fate::Works => done,
            Fate::Fails(refused) => error(refused).boxed(),
            Fate::LosesAnswer => done.chain(error(lost())).boxed(),
        }
    }
}

/// What a client says whose connection broke while it waited for an answer.
fn lost() -> Error {
    let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let source = Box::new(HttpError::new(HttpErrorKind::Interrupted, reset));
    Error::Generic { store: "Failing", source }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.request(at, self.inner.put_opts(at, bytes, how)).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.request(at, self.inner.put_multipart_opts(at, how)).await
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.request(at, self.inner.get_opts(at, how)).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.request(at, self.inner.get_ranges(at, ranges)).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.answers(&Path::default(), self.inner.delete_stream(paths))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.answers(&Path::default(), self.inner.list(prefix))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.request(&Path::default(), self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.request(from, self.inner.copy_opts(from, to, how)).await
    }
}

#[async_trait::async_trait]
impl MultipartStore for Failing {
    async fn create_multipart(&self, path: &Path) -> Result<MultipartId> {
        let done = async {
            let id = self.inner.create_multipart(path).await?;
            self.under_way.lock().unwrap().insert(id.clone(), 0);
            Ok(id)
        };
        self.request(path, done).await
    }

    async fn put_part(
        &self,
        path: &Path,
        id: &MultipartId,
        number: usize,
        bytes: PutPayload,
    ) -> Result<PartId> {
        let done = async {
            let part = self.inner.put_part(path, id, number, bytes).await?;
            if let Some(parts) = self.under_way.lock().unwrap().get_mut(id) {
                *parts += 1;
            }
            Ok(part)
        };
        self.request(path, done).await
    }

    async fn complete_multipart(
        &self,
        path: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Result<PutResult> {
        let done = async {
            let done = self.inner.complete_multipart(path, id, parts).await?;
            self.under_way.lock().unwrap().remove(id);
            Ok(done)
        };
        self.request(path, done).await
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Result<()> {
        let done = async {
            if self.under_way.lock().unwrap().remove(id).is_none() {
                // What a service says, and the store in memory does not.
                return Err(Error::NotFound { path: path.to_string(), source: id.clone().into() });
            }
            self.inner.abort_multipart(path, id).await
        };
        self.request(path, done).await
    }
}
