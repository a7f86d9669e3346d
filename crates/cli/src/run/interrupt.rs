//! Stopping a run from outside: first cleanly, then at once.

use super::screen::Screen;
use foldback_core::TodoId;
use foldback_tool::CancellationToken;
use std::convert::Infallible;

/// What a process ends with that an interrupt has ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// Waits for interrupts: the first cancels the run, which then ends by itself; a second ends the
/// process.
pub(super) async fn watch(
    run: &TodoId,
    cancelled: &CancellationToken,
    screen: &Screen,
) -> Infallible {
    loop {
        interrupt().await;
        if cancelled.is_cancelled() {
            screen.end();
            std::process::exit(INTERRUPTED);
        }
        cancelled.cancel();
        // Nobody waits for an answer any more.
        screen.resume(false);
        screen.note(&format!(
            "stopping; `foldback run --resume {run}` will go on. Once more stops at once"
        ));
    }
}

/// The next Ctrl-C, or another request to end.
async fn interrupt() {
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
        heard = interrupted => if heard.is_err() {
            // Where signals cannot be heard, a run is ended by its limits or by being killed.
            std::future::pending::<()>().await;
        },
        () = asked => {}
    }
}
