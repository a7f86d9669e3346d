//! An object store in memory whose requests fail.

use bytes::Bytes;
use futures::stream::BoxStream;
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

/// An object store in memory of which, after some requests, every one fails, until it works again.
#[derive(Debug)]
pub(super) struct Failing {
    inner: InMemory,
    /// How many requests still work.
    left: AtomicI64,
    /// The uploads that are neither complete nor ended, each with the number of its parts.
    under_way: Mutex<BTreeMap<MultipartId, usize>>,
}

impl Failing {
    pub(super) fn new() -> Self {
        Self { inner: InMemory::new(), left: AtomicI64::new(i64::MAX), under_way: Mutex::default() }
    }

    pub(super) fn fail_after(&self, requests: i64) {
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

    fn request(&self, path: &Path) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        Err(Error::PermissionDenied { path: path.to_string(), source: "on purpose".into() })
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.request(at)?;
        self.inner.put_opts(at, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.request(at)?;
        self.inner.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.request(at)?;
        self.inner.get_opts(at, how).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.request(at)?;
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.request(from)?;
        self.inner.copy_opts(from, to, how).await
    }
}

#[async_trait::async_trait]
impl MultipartStore for Failing {
    async fn create_multipart(&self, path: &Path) -> Result<MultipartId> {
        self.request(path)?;
        let id = self.inner.create_multipart(path).await?;
        self.under_way.lock().unwrap().insert(id.clone(), 0);
        Ok(id)
    }

    async fn put_part(
        &self,
        path: &Path,
        id: &MultipartId,
        number: usize,
        bytes: PutPayload,
    ) -> Result<PartId> {
        self.request(path)?;
        let part = self.inner.put_part(path, id, number, bytes).await?;
        if let Some(parts) = self.under_way.lock().unwrap().get_mut(id) {
            *parts += 1;
        }
        Ok(part)
    }

    async fn complete_multipart(
        &self,
        path: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Result<PutResult> {
        self.request(path)?;
        let done = self.inner.complete_multipart(path, id, parts).await?;
        self.under_way.lock().unwrap().remove(id);
        Ok(done)
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Result<()> {
        self.request(path)?;
        self.under_way.lock().unwrap().remove(id);
        self.inner.abort_multipart(path, id).await
    }
}
