//! Stopping a run from outside: first cleanly, then at once.

use super::desk::Ends;
use super::screen::Screen;
use foldback_core::TodoId;
use foldback_tool::CancellationToken;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a process ends with that an interrupt has ended, as shells know it.
pub(crate) const INTERRUPTED: i32 = 130;

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

/// Waits for interrupts: the first cancels the run, which then ends by itself. Returns at the second.
pub(super) async fn watch(
    run: &TodoId,
    ends: Ends,
    leaving: &Leaving,
    cancelled: &CancellationToken,
    screen: &Screen,
) {
    let mut signals = Signals::open();
    loop {
        if signals.next().await == Heard::Terminate {
            leaving.0.store(true, Ordering::Relaxed);
        }
        if cancelled.is_cancelled() {
            return;
        }
        cancelled.cancel();
        // Nobody waits for an answer any more.
        screen.resume(false);
        screen.note(&match ends {
            Ends::Command => format!(
                "stopping; `foldback run --resume {run}` will go on. Once more stops at once"
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
