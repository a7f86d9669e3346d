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
    loop {
        if heard().await == Heard::Terminate {
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

/// The next Ctrl-C, or another request to end.
pub(crate) async fn heard() -> Heard {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    let asked = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let asked = std::future::pending::<()>();
    tokio::select! {
        heard = interrupted => {
            if heard.is_err() {
                // Where signals cannot be heard, a run is ended by its limits or by being killed.
                std::future::pending::<()>().await;
            }
            Heard::Interrupt
        }
        () = asked => Heard::Terminate,
    }
}
