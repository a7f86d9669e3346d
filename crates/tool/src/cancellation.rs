//! A token that asks work to stop.

use std::fmt;
use std::future::poll_fn;
use std::iter::successors;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

/// A token that asks work to stop. Clones share one token; a [child](Self::child_token) is cancelled with its
/// parent, and may be cancelled alone.
///
/// Cancelling is only a request: the work stops by itself when it checks the token or waits for it.
#[derive(Clone)]
pub struct CancellationToken(Arc<Node>);

struct Node {
    cancelled: watch::Sender<bool>,
    parent: Option<CancellationToken>,
}

impl CancellationToken {
    /// Creates a token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::below(None)
    }

    /// Creates a token that is cancelled with this one.
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self::below(Some(self.clone()))
    }

    fn below(parent: Option<Self>) -> Self {
        Self(Arc::new(Node { cancelled: watch::Sender::new(false), parent }))
    }

    /// Asks everything that holds this token, or a child of it, to stop.
    pub fn cancel(&self) {
        self.0.cancelled.send_replace(true);
    }

    /// Returns whether this token, or one above it, is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.line().any(|node| *node.cancelled.borrow())
    }

    /// Waits until the token is cancelled.
    pub async fn cancelled(&self) {
        let told = |node: &Node| {
            let mut cancelled = node.cancelled.subscribe();
            // The sender is in the node, which `self` keeps alive, so the wait ends only by a cancellation.
            Box::pin(async move { cancelled.wait_for(|is_cancelled| *is_cancelled).await.is_ok() })
        };
        let mut line: Vec<_> = self.line().map(told).collect();
        poll_fn(|cx| {
            let is_over = line.iter_mut().any(|told| told.as_mut().poll(cx).is_ready());
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Returns the result of `work`, or `None` when the token is cancelled first: `work` is then dropped, and
    /// does not begin if the token was cancelled before.
    pub async fn run_until_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if self.is_cancelled() {
            return None;
        }
        let (mut work, mut cancelled) = (pin!(work), pin!(self.cancelled()));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => cancelled.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    /// Iterates over this token and those above it.
    fn line(&self) -> impl Iterator<Item = &Node> {
        successors(Some(self), |token| token.0.parent.as_ref()).map(|token| &*token.0)
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
