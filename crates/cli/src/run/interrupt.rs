//! Stopping a run from outside: first cleanly, then at once.

use super::desk::{Desk, Ends};
use super::screen::Screen;
use foldback_core::TodoId;
use foldback_tool::CancellationToken;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// The exit code of a process that an interrupt has ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// The exit code of a process that was asked to end.
pub(crate) const TERMINATED: i32 = 143;

/// Whether the command ends after its current run, because it was asked to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving(Arc<AtomicBool>);

impl Leaving {
    pub(crate) fn is_meant(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A signal from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Ctrl-C.
    Interrupt,
    /// A request to end the process.
    Terminate,
}

impl Heard {
    /// The exit code of a process that this has ended.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Interrupt => INTERRUPTED,
            Self::Terminate => TERMINATED,
        }
    }
}

/// Listens while a run is prepared, worked on and closed.
pub(super) struct Listener {
    /// The token that the first signal cancels: the run ends by itself.
    pub(super) cancelled: CancellationToken,
    /// The token that the second one cancels, in a chat: the turn is left as it is.
    pub(super) left: CancellationToken,
    is_at_work: Arc<AtomicBool>,
    listening: JoinHandle<()>,
}

impl Listener {
    /// Starts listening. Needs a runtime.
    pub(super) fn open(run: &TodoId, desk: &Desk<'_>, screen: &Arc<Screen>) -> Self {
        let (cancelled, left) = (CancellationToken::new(), CancellationToken::new());
        let is_at_work = Arc::clone(&desk.is_at_work);
        let watch = Watch {
            signals: Signals::open(),
            run: run.clone(),
            ends: desk.ends,
            leaving: desk.leaving.clone(),
            cancelled: cancelled.clone(),
            left: left.clone(),
            screen: Arc::clone(screen),
        };
        is_at_work.store(true, Ordering::Relaxed);
        Self { cancelled, left, is_at_work, listening: tokio::spawn(watch.listen()) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_at_work.store(false, Ordering::Relaxed);
        self.listening.abort();
    }
}

/// The listener's reaction to signals.
struct Watch {
    signals: Signals,
    run: TodoId,
    ends: Ends,
    leaving: Leaving,
    cancelled: CancellationToken,
    left: CancellationToken,
    screen: Arc<Screen>,
}

impl Watch {
    async fn listen(mut self) {
        loop {
            let heard = self.signals.next().await;
            if heard == Heard::Terminate {
                self.leaving.0.store(true, Ordering::Relaxed);
            }
            if !self.cancelled.is_cancelled() {
                self.cancel();
            } else if self.ends == Ends::Turn && !self.left.is_cancelled() {
                self.left.cancel();
            } else {
                self.screen.end();
                std::process::exit(heard.code());
            }
        }
    }

    fn cancel(&self) {
        // Nobody waits for an answer any more.
        self.screen.resume(false);
        self.screen.note(&match self.ends {
            Ends::Command => format!(
                "stopping; `foldback run --resume {}` continues it. Interrupt again to stop at once",
                self.run
            ),
            Ends::Turn => "stopping this turn. Interrupt again to leave it at once".to_owned(),
        });
        // Afterwards, because the run may end at once.
        self.cancelled.cancel();
    }
}

/// The signals from outside, from the moment of its creation on.
#[derive(Debug)]
pub(crate) struct Signals {
    /// `None` if such signals cannot be heard: a run then ends by its limits or by being killed.
    #[cfg(unix)]
    interrupt: Option<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Starts listening. Needs a runtime.
    #[cfg(unix)]
    pub(crate) fn open() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let signal = |kind| signal(kind).ok();
        Self {
            interrupt: signal(SignalKind::interrupt()),
            terminate: signal(SignalKind::terminate()),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn open() -> Self {
        Self {}
    }

    /// Waits for the next Ctrl-C, or another request to end.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Heard {
        async fn came(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = came(&mut self.interrupt) => Heard::Interrupt,
            () = came(&mut self.terminate) => Heard::Terminate,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Heard {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Heard::Interrupt
    }
}
