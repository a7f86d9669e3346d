//! Stopping a run from outside: first cleanly, then at once.

use super::desk::{Desk, Ends};
use super::screen::Screen;
use foldback_core::TodoId;
use foldback_tool::CancellationToken;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// What a process ends with that an interrupt has ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// The same for one that was asked to end.
pub(crate) const TERMINATED: i32 = 143;

/// Whether the command is to end once its run has: it was asked to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving(Arc<AtomicBool>);

impl Leaving {
    pub(crate) fn is_meant(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is heard from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Ctrl-C.
    Interrupt,
    /// The process is to end.
    Terminate,
}

impl Heard {
    /// What a process ends with that this has ended.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Interrupt => INTERRUPTED,
            Self::Terminate => TERMINATED,
        }
    }
}

/// Listens while a run is prepared, worked on and closed.
pub(super) struct Listener {
    /// By the first that is heard: the run ends by itself.
    pub(super) cancelled: CancellationToken,
    /// By the second, in a chat: the turn is left as it stands.
    pub(super) left: CancellationToken,
    is_at_work: Arc<AtomicBool>,
    listening: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen. It needs a runtime around it.
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

/// What a listener does about what it hears.
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
        self.cancelled.cancel();
        // Nobody waits for an answer any more.
        self.screen.resume(false);
        self.screen.note(&match self.ends {
            Ends::Command => format!(
                "stopping; `foldback run --resume {}` will go on. Once more stops at once",
                self.run
            ),
            Ends::Turn => "stopping this turn. Once more leaves it at once".to_owned(),
        });
    }
}

/// What is heard from outside, from the moment on at which this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    /// `None` where such signals cannot be heard: a run is then ended by its limits or by being killed.
    #[cfg(unix)]
    interrupt: Option<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Begins to listen. It needs a runtime around it.
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

    /// The next Ctrl-C, or another request to end.
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
