//! The queue of calls, which decides which may run at the same time.

use super::call::Call;
use foldback_planner::StepId;
use foldback_tool::Concurrency;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// A call that waits for its turn.
pub(super) enum Turn {
    /// A call that has not been made.
    First(Call),
    /// A call that is retried.
    Again(Again),
}

/// A call that waits for its next attempt, and the way to start that.
pub(super) struct Again {
    pub(super) step: StepId,
    pub(super) concurrency: Concurrency,
    pub(super) go: oneshot::Sender<()>,
}

/// A call that occupies no place between two attempts.
pub(super) enum Rest {
    Began(StepId),
    Over(Again),
}

/// The calls that wait for their turn, in the order in which they became ready.
///
/// The order is kept: an exclusive call waits until nothing runs, and later calls wait for it. So neither
/// kind starves, and calls that must not overlap run in the order of their numbers when they become ready
/// together. Waiting calls take no place from those that run.
#[derive(Default)]
pub(super) struct Lanes {
    waiting: VecDeque<Turn>,
    running: usize,
    exclusive: bool,
}

impl Lanes {
    pub(super) fn push(&mut self, call: Call) {
        self.waiting.push_back(Turn::First(call));
    }

    pub(super) fn push_again(&mut self, again: Again) {
        self.waiting.push_back(Turn::Again(again));
    }

    /// Returns the next call that may start, with at most `most` running; it counts as running from now on.
    pub(super) fn start_next(&mut self, most: usize) -> Option<Turn> {
        let concurrency = match self.waiting.front()? {
            Turn::First(call) => call.tool.spec().concurrency,
            Turn::Again(again) => again.concurrency,
        };
        let is_free = match concurrency {
            Concurrency::Parallel => !self.exclusive && self.running < most.max(1),
            Concurrency::Exclusive => self.running == 0,
        };
        if !is_free {
            return None;
        }
        self.running += 1;
        self.exclusive = concurrency == Concurrency::Exclusive;
        self.waiting.pop_front()
    }

    /// Notes that a running call has ended, or rests.
    pub(super) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
        self.exclusive = false;
    }

    /// Forgets the calls that have not been made.
    pub(super) fn clear(&mut self) {
        self.waiting.retain(|turn| matches!(turn, Turn::Again(_)));
    }
}
