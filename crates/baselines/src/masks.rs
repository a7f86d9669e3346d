//! Old results of tools give way to a line in their place.

use crate::log::Log;
use foldback_core::{Content, Message, Role};
use std::collections::VecDeque;

/// Which results of a history that nothing leaves are still shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks {
    /// Where the shown results stand.
    shown: VecDeque<usize>,
    /// Where the model spoke last: it has seen the results before.
    spoken: usize,
}

impl Masks {
    /// Looks at the newest message. To be called behind each.
    pub(crate) fn see(&mut self, log: &Log) {
        let Some(at) = log.history().len().checked_sub(1) else { return };
        match log.history().back().map(|entry| entry.recorded().role()) {
            Some(Role::Tool) => self.shown.push_back(at),
            Some(Role::Assistant) => self.spoken = at,
            _ => {}
        }
    }

    /// Puts what `line` says in the place of all results but the last `keep`. A result that the
    /// model has not seen yet stays.
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
