//! Replaces old tool results by a line.

use crate::log::Log;
use foldback_core::{Content, Message, Role};
use std::collections::VecDeque;

/// The results that are still shown of a history that nothing leaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks {
    /// The indexes of the shown results.
    shown: VecDeque<usize>,
    /// The index at which the model last spoke: it has seen the results before it.
    spoken: usize,
}

impl Masks {
    /// Examines the newest message. Must be called after each message.
    pub(crate) fn see(&mut self, log: &Log) {
        let Some(at) = log.history().len().checked_sub(1) else { return };
        match log.history().back().map(|entry| entry.recorded().role()) {
            Some(Role::Tool) => self.shown.push_back(at),
            Some(Role::Assistant) => self.spoken = at,
            _ => {}
        }
    }

    /// Replaces all results but the last `keep` by `line`. A result that the model has not seen yet is
    /// kept.
    pub(crate) fn apply(&mut self, log: &mut Log, keep: usize, line: impl Fn(&Message) -> String) {
        while self.shown.len() > keep {
            let Some(at) = self.shown.front().copied().filter(|at| *at < self.spoken) else {
                return;
            };
            self.shown.pop_front();
            let masked = log.history().get(at).map(|entry| {
                let result = entry.recorded();
                result.with_body(Content::Text(line(result)), Vec::new())
            });
            if let Some(masked) = masked {
                log.stand_in(at, masked);
            }
        }
    }
}
