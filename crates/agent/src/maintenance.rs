//! Background work of a context's policy: started when it comes up, and not waited for while there is
//! something else to do.

use foldback_core::{BackgroundJobDone, ContextError, ContextManager};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

/// The most pieces of work that are in progress at once.
const MOST: usize = 16;

/// How often work may break off before the policy is asked for no more; it hands out lost work again.
const MOST_LOST: usize = 16;

/// How long the end of a run waits for work in progress.
const MOMENT: Duration = Duration::from_secs(1);

/// A policy's background work. It is checked with each message that is recorded: work that a call's message
/// brings up runs beside the call, and if it is done by the time of the results, it is in the next prompt.
/// Otherwise it is in a later one; the policy shows what it has.
///
/// The end of a run waits for it for a moment. Work that takes longer is lost, with its cost; the policy
/// hands it out again when the context is used again.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    running: JoinSet<BackgroundJobDone>,
    /// How often it broke off.
    lost: usize,
}

impl Upkeep {
    /// Hands over finished work, and starts new work.
    pub(crate) fn tend(&mut self, context: &mut dyn ContextManager) -> Result<(), ContextError> {
        while let Some(done) = self.running.try_join_next() {
            self.take(context, done)?;
        }
        while self.running.len() < MOST && self.lost < MOST_LOST {
            let work = context.background_work().and_then(|policy| policy.next_job());
            let Some(work) = work else { break };
            self.running.spawn_blocking(work.0);
        }
        Ok(())
    }

    /// Waits a moment for work in progress, and hands it over.
    pub(crate) async fn settle(
        &mut self,
        context: &mut dyn ContextManager,
    ) -> Result<(), ContextError> {
        let end = Instant::now() + MOMENT;
        while let Ok(Some(done)) = timeout_at(end, self.running.join_next()).await {
            self.take(context, done)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        context: &mut dyn ContextManager,
        done: Result<BackgroundJobDone, JoinError>,
    ) -> Result<(), ContextError> {
        match done {
            Ok(done) => context.background_work().map_or(Ok(()), |policy| policy.absorb(done)),
            Err(error) => {
                self.lost += 1;
                tracing::warn!(%error, lost = self.lost, "a context's maintenance broke off");
                Ok(())
            }
        }
    }
}
