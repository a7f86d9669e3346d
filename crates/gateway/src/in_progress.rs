//! How many answers are in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long after the last answer a gateway that ends waits for its clients' connections.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// The interval at which the answers are counted.
const COUNTED: Duration = Duration::from_millis(50);

/// How many answers are in progress: of requests of which at least the head has arrived.
#[derive(Clone, Default)]
pub(crate) struct InProgress(Arc<AtomicUsize>);

/// One answer in progress, until this is dropped.
pub(crate) struct Mark(InProgress);

impl InProgress {
    pub(crate) fn begin(&self) -> Mark {
        self.0.fetch_add(1, Ordering::Relaxed);
        Mark(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until there has been none for a second.
    pub(crate) async fn over(&self) {
        let mut since = Instant::now();
        while since.elapsed() < LAST_BYTES {
            sleep(COUNTED).await;
            if self.count() > 0 {
                since = Instant::now();
            }
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
