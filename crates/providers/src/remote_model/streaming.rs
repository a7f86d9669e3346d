//! How a server was found to stream.

use foldback_llm::{ChatRequest, Usage};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// This many consecutive lost streams are not an accident.
const LOST: usize = 2;

/// How a server was found to stream: what it does not stream is requested as a whole from then on.
#[derive(Default)]
pub(super) struct Streaming {
    /// It refuses to stream.
    is_refused: AtomicBool,
    with_tools: Kind,
    without_tools: Kind,
    /// A streamed answer has come without a token count.
    is_uncounted: AtomicBool,
    /// A whole one as well: the server counts nothing.
    counts_nothing: AtomicBool,
}

/// Requests with tools, or those without.
#[derive(Default)]
struct Kind {
    /// Nothing comes in pieces, but a whole answer does.
    gives_nothing: AtomicBool,
    /// How many consecutive streams were lost although the whole answer came.
    lost: AtomicUsize,
}

impl Streaming {
    /// Returns whether the answer to a request is requested as a whole.
    pub(super) fn is_given_up(&self, request: &ChatRequest) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let is_lossy = is(&self.is_uncounted) && !is(&self.counts_nothing);
        is(&self.is_refused) || is(&self.kind(request).gives_nothing) || is_lossy
    }

    pub(super) fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Records that an answer was streamed, with this count.
    pub(super) fn streamed(&self, request: &ChatRequest, usage: Usage) {
        self.kind(request).lost.store(0, Ordering::Relaxed);
        if usage.input == 0 {
            self.is_uncounted.store(true, Ordering::Relaxed);
        }
    }

    /// Records that an answer came as a whole, with this count.
    pub(super) fn came_whole(&self, usage: Usage) {
        if usage.input == 0 {
            self.counts_nothing.store(true, Ordering::Relaxed);
        }
    }

    /// Records that a stream ended without an answer, which came as a whole.
    pub(super) fn gave_nothing(&self, request: &ChatRequest) {
        self.kind(request).gives_nothing.store(true, Ordering::Relaxed);
    }

    /// Records that a stream was lost before its first piece, and the answer came as a whole.
    pub(super) fn lost(&self, request: &ChatRequest) {
        let kind = self.kind(request);
        if kind.lost.fetch_add(1, Ordering::Relaxed) + 1 >= LOST {
            kind.gives_nothing.store(true, Ordering::Relaxed);
        }
    }

    fn kind(&self, request: &ChatRequest) -> &Kind {
        if request.tools.is_empty() { &self.without_tools } else { &self.with_tools }
    }
}
