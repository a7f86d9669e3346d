//! The thread on which requests run, for callers that wait for them.

use std::io;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A thread with an async runtime of its own. A caller only blocks, so it may itself be part of another runtime.
pub(super) struct RequestThread {
    requests: Option<UnboundedSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request that was sent. Dropping it does not end the request.
pub(super) struct Sent<T>(io::Result<Receiver<T>>);

impl RequestThread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (requests, mut queue) = unbounded_channel::<Request>();
        let thread =
            thread::Builder::new().name("foldback-objects".to_owned()).spawn(move || {
                runtime.block_on(async {
                    while let Some(request) = queue.recv().await {
                        tokio::spawn(request);
                    }
                });
                // A look-up of a name may take long, and nobody waits for its result any more.
                runtime.shutdown_background();
            })?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Begins a request.
    pub(super) fn send<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Sent<T> {
        let (done, result) = sync_channel(1);
        if let Some(requests) = &self.requests {
            let request = Box::pin(async move {
                // Nobody waits any more if this fails.
                drop(done.send(request.await));
            });
            // If the thread is gone, so is `done`, and `wait` says so.
            drop(requests.send(request));
        }
        Sent(Ok(result))
    }
}

impl<T> Sent<T> {
    /// A request that is not sent, for this reason.
    pub(super) fn refused(error: io::Error) -> Self {
        Self(Err(error))
    }

    /// Waits for the result.
    pub(super) fn wait(self) -> io::Result<T> {
        self.0?.recv().map_err(|_| io::Error::other("the request ended without an answer"))
    }
}

impl Drop for RequestThread {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_carried_out_from_within_another_runtime() {
        let thread = RequestThread::start().unwrap();
        let outer = Builder::new_current_thread().build().unwrap();
        let found = outer.block_on(async {
            let sent = thread.send(async {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                7
            });
            sent.wait()
        });
        assert_eq!(found.unwrap(), 7);
    }

    #[test]
    fn a_request_that_panics_is_an_error_and_the_next_one_works() {
        let thread = RequestThread::start().unwrap();
        assert!(thread.send::<()>(async { panic!("on purpose") }).wait().is_err());
        assert_eq!(thread.send(async { 1 }).wait().unwrap(), 1);
    }
}
