//! The window of a model: how large a request may be, by the counts of its server.

use foldback_core::Budget;
use foldback_llm::Usage;
use parking_lot::Mutex;
use std::sync::Arc;

/// The window of a model, for request and answer together, and how its server counts tokens.
///
/// Requests are estimated before they are sent, and counted by the server afterwards. If the server counts
/// more, requests become smaller; if one is refused as too long, the next is smaller still. Clones share one
/// window.
#[derive(Clone, Debug, Default)]
pub struct ContextWindow {
    tokens: Option<usize>,
    answer: usize,
    counted: Arc<Mutex<Counted>>,
}

/// What was learned about a server.
#[derive(Debug)]
struct Counted {
    /// The server's tokens for each estimated one.
    ratio: f64,
    /// The largest estimate of a request; a larger one was refused.
    most: Option<usize>,
    /// Whether it was reported that tools do not arrive.
    told: bool,
}

impl Default for Counted {
    fn default() -> Self {
        Self { ratio: 1.0, most: None, told: false }
    }
}

/// The estimated tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimated {
    /// All of them.
    pub(crate) all: usize,
    /// Those of its tools.
    pub(crate) tools: usize,
}

/// A request that a server counted too low for all of it to have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolsDropped {
    pub(crate) counted: u64,
    pub(crate) estimated: usize,
}

/// At most one part in this many of the window is kept for the answer, if the answer's own limit is larger.
const ANSWER_PART: usize = 4;

/// One part in this many is kept free, since no estimate is exact.
const SPARE_PART: usize = 32;

/// The factor by which the next request is smaller than one that was too long.
const SMALLER: f64 = 0.7;

/// A server's count is trusted within these limits.
const LEAST_RATIO: f64 = 0.5;
const GREATEST_RATIO: f64 = 4.0;

/// The fewest tokens that show how a server counts.
const TELLING: usize = 200;

impl ContextWindow {
    /// Creates a window of `tokens` tokens, if that is known, of which an answer takes up to `answer`.
    #[must_use]
    pub fn new(tokens: Option<usize>, answer: Option<u32>) -> Self {
        let answer = answer.map_or(usize::MAX, |answer| answer as usize);
        Self { tokens, answer, counted: Arc::default() }
    }

    /// Returns the tokens of the window, if they are known.
    #[must_use]
    pub fn tokens(&self) -> Option<usize> {
        self.tokens
    }

    /// Returns how large a request may be, as an estimate.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let counted = self.counted.lock();
        let of_window = self.tokens.map(|tokens| {
            let room = tokens - self.answer.min(tokens / ANSWER_PART) - tokens / SPARE_PART;
            (room as f64 / counted.ratio) as usize
        });
        Budget { tokens: of_window.into_iter().chain(counted.most).min() }
    }

    /// Learns from a server's count of a request, and reports, the first time, that the tools cannot have
    /// arrived. If the model has `called` one, they did arrive, and the server counts something else.
    pub(crate) fn counted(
        &self,
        estimated: Estimated,
        usage: Usage,
        called: bool,
    ) -> Option<ToolsDropped> {
        if usage.input == 0 || estimated.all < TELLING {
            return None;
        }
        let mut counted = self.counted.lock();
        let Estimated { all, tools } = estimated;
        let lacking = (all as f64) - (usage.input as f64);
        if tools >= TELLING
            && lacking > 0.8 * tools as f64
            && (usage.input as f64) < 0.75 * all as f64
        {
            let is_news = !std::mem::replace(&mut counted.told, true) && !called;
            return is_news.then_some(ToolsDropped { counted: usage.input, estimated: all });
        }
        let ratio = (usage.input as f64 / all as f64).clamp(LEAST_RATIO, GREATEST_RATIO);
        // The ratio rises at once and falls slowly: requests shrink at once and grow back slowly.
        counted.ratio =
            if ratio > counted.ratio { ratio } else { 0.8 * counted.ratio + 0.2 * ratio };
        None
    }

    /// Learns that the server refused a request as too long.
    pub(crate) fn exceeded(&self, estimated: Estimated) {
        let mut counted = self.counted.lock();
        let smaller = (estimated.all as f64 * SMALLER) as usize;
        counted.most = Some(counted.most.map_or(smaller, |most| most.min(smaller)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64) -> Usage {
        Usage { input, ..Usage::default() }
    }

    fn of(all: usize, tools: usize) -> Estimated {
        Estimated { all, tools }
    }

    #[test]
    fn a_request_leaves_room_for_the_answer() {
        let bound = |tokens, answer| ContextWindow::new(tokens, answer).budget().tokens;
        assert_eq!(bound(None, Some(4_096)), None);
        assert_eq!(bound(Some(32_768), Some(4_096)), Some(27_648));
        assert_eq!(
            bound(Some(2_048), Some(4_096)),
            Some(1_472),
            "a quarter is the answer's at most"
        );
        assert_eq!(bound(Some(8_192), None), Some(5_888));
    }

    #[test]
    fn it_learns_how_the_server_counts() {
        let window = ContextWindow::new(Some(8_192), Some(1_024));
        let before = window.budget().tokens.unwrap();
        assert_eq!(window.counted(of(1_000, 300), usage(1_120), false), None);
        let after = window.budget().tokens.unwrap();
        assert_eq!(after, (before as f64 / 1.12) as usize);
        // A server that reports nothing, and a request that is too short to be conclusive.
        assert_eq!(window.counted(of(1_000, 300), usage(0), false), None);
        assert_eq!(window.counted(of(50, 0), usage(500), false), None);
        assert_eq!(window.budget().tokens, Some(after));
    }

    #[test]
    fn what_was_too_long_is_followed_by_less() {
        let window = ContextWindow::default();
        window.exceeded(of(1_000, 0));
        assert_eq!(window.budget().tokens, Some(700));
        window.exceeded(of(3_000, 0));
        assert_eq!(window.budget().tokens, Some(700), "it stays the least");
    }

    #[test]
    fn tools_that_do_not_arrive_are_told_once() {
        let window = ContextWindow::default();
        let dropped = ToolsDropped { counted: 480, estimated: 3_200 };
        assert_eq!(window.counted(of(3_200, 2_700), usage(480), false), Some(dropped));
        assert_eq!(window.counted(of(3_300, 2_700), usage(500), false), None);
        assert_eq!(window.budget().tokens, None, "nothing is learned from it");
        // A server that counts something else.
        let odd = ContextWindow::default();
        assert_eq!(odd.counted(of(3_200, 2_700), usage(24), true), None);
        assert_eq!(odd.counted(of(3_200, 2_700), usage(480), false), None);
        // Few tools, and a tokenizer that needs fewer tokens than was estimated.
        assert_eq!(ContextWindow::default().counted(of(3_200, 400), usage(2_600), false), None);
        assert_eq!(ContextWindow::default().counted(of(3_200, 2_700), usage(2_400), false), None);
    }
}
