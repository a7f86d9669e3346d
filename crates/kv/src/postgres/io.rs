//! The thread that talks to the server.
//!
//! The client is asynchronous. The crate's callers are not, and some of them run inside a runtime of their own, where
//! no other may be waited for. So one thread drives all connections of a store, and a caller waits for its answer as
//! for any other thread.

use super::connect::FAREWELL;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub(super) struct Io {
    handle: Handle,
    open: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Io {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, open) = (runtime.handle().clone(), Arc::new(AtomicUsize::new(0)));
        let (stop, stopped) = oneshot::channel();
        let counted = open.clone();
        let thread = std::thread::Builder::new().name("foldback-postgres".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                let _ = stopped.await;
                let closing = async {
                    while counted.load(Ordering::Acquire) > 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                let _ = tokio::time::timeout(FAREWELL, closing).await;
            });
            // Without waiting for names that the system is still looking up.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, open, stop: Some(stop), thread: Some(thread) })
    }

    /// Does something on the thread, and waits for it. `None` if it did not end, which only a panic brings about.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = tell.send(work.await);
        });
        told.recv().ok()
    }

    /// Does something on the thread, beside everything else.
    pub(super) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Counts a connection as open until what is returned is dropped.
    pub(super) fn count(&self) -> Counted {
        self.open.fetch_add(1, Ordering::AcqRel);
        Counted(self.open.clone())
    }
}

pub(super) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
