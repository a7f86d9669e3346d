//! The ends of the cached prefixes of a request.

use foldback_llm::{CACHE_BREAKPOINT, Capabilities, ChatRequest, MarkLimits, place_cache_marks};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Marks that serve every provider: as many as the strictest accepts, with each end of a prefix marked,
/// whether or not the provider finds it by itself.
const MARKS: MarkLimits = MarkLimits::OPENAI;

/// Returns the request with its cache marks: first those of its author, then as many others as the provider
/// accepts. If it accepts none, the marks stay as they are.
pub(super) fn marked(request: &ChatRequest, offered: Capabilities) -> ChatRequest {
    let unmarked = request.clone().with_cache_marks(Vec::new());
    let mut placed = place_cache_marks(unmarked, MARKS);
    let given = moved(request);
    if !offered.cache_marks {
        placed.cache_marks = given;
        return placed;
    }
    let standing = placed.messages.iter().take_while(|m| m.role().is_instruction()).count();
    let at_head = |mark: &&usize| **mark + 1 == standing;
    let own = &placed.cache_marks;
    let wished = given.iter().rev().chain(own.iter().filter(at_head)).chain(own.iter().rev());
    let mut marks = BTreeSet::new();
    for mark in wished {
        if marks.len() < MARKS.most {
            marks.insert(*mark);
        }
    }
    placed.cache_marks = marks.into_iter().collect();
    placed
}

/// Returns the request's own marks, at the positions of its messages after the instructions were cut at the
/// marks in their text.
fn moved(request: &ChatRequest) -> Vec<usize> {
    let mut ends = Vec::with_capacity(request.messages.len());
    let mut end: usize = 0;
    for message in &request.messages {
        end += if message.role().is_instruction() && message.text().contains(CACHE_BREAKPOINT) {
            let messages = vec![Arc::clone(message)];
            place_cache_marks(ChatRequest::new(messages), MARKS).messages.len()
        } else {
            1
        };
        ends.push(end);
    }
    let mark = |at: &usize| ends.get(*at).and_then(|end| end.checked_sub(1));
    request.cache_marks.iter().filter_map(mark).collect()
}
