//! The work that a context's policy has done beside the loop: started as it comes up, and not waited for
//! while there is something else to do.

use foldback_core::{BackgroundJobDone, ContextError, ContextManager};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

/// How much of it is under way at once at most.
const MOST: usize = 16;

/// How often work may break off before the policy is asked for no more: it gives lost work out again.
const MOST_LOST: usize = 16;

/// How long the end of a run waits for what is under way.
const MOMENT: Duration = Duration::from_secs(1);

/// A policy's work beside the loop. It is looked after with each message that is recorded: what the
/// message of a call brings up runs while the call does, and what is done by the time of the results is
/// in the next prompt. What is not done by then is in a later one; the policy shows what it has.
///
/// At the end of a run it is waited for, a moment long. What takes longer is lost, with what it cost; the
/// policy gives it out again when the context is gone on with.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    running: JoinSet<BackgroundJobDone>,
    /// How often it broke off.
    lost: usize,
}

impl Upkeep {
    /// Hands over what is done, and starts what came up.
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

    /// Waits a moment for what is under way, and hands it over.
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
