//! Where the cached prefixes of a request end.

use crate::ChatRequest;
use foldback_core::{Content, Message, Part, Role};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The text that marks the end of a cached prefix in standing instructions. It is not sent.
pub const CACHE_BREAKPOINT: &str = "<!-- CACHE_BREAKPOINT -->";

/// How many marks a provider accepts, and how it searches for a cached prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLimits {
    /// The greatest number of marks that are set in one request.
    pub most: usize,
    /// How many content blocks before a mark are searched for the end of a cached prefix; 0 if a
    /// prefix is found only when a mark is at its end again.
    pub reach: usize,
}

impl MarkLimits {
    /// Anthropic's limits: four marks, each of which looks back over 20 content blocks.
    pub const ANTHROPIC: Self = Self { most: 4, reach: 20 };
    /// OpenAI's limits, for models that accept marks: four marks, and a prefix is found only at a
    /// mark.
    pub const OPENAI: Self = Self { most: 4, reach: 0 };
}

/// Sets the cache marks of a request: at the end of the standing instructions (and of the tools,
/// which precede them); at the end of the stable part, before the volatile suffix, which moves with
/// each call; where that mark was at the previous call, if it is out of reach (after a turn of many
/// results, say); at each [`CACHE_BREAKPOINT`] in the instructions; and where the request already
/// had marks.
///
/// If these are too many, the first in this order are set, and within one kind the later ones come
/// first. An instruction that holds [`CACHE_BREAKPOINT`] becomes several messages; in any other
/// message the text has no special meaning.
///
/// ```
/// use foldback_core::Message;
/// use foldback_llm::{ChatRequest, MarkLimits, place_cache_marks};
///
/// let system = "Rules.\n<!-- CACHE_BREAKPOINT -->\nThe task of today.";
/// let request = ChatRequest::new([Message::system(system), Message::user("go")]);
/// let placed = place_cache_marks(request, MarkLimits::ANTHROPIC);
/// let texts: Vec<_> = placed.messages.iter().map(|message| message.text()).collect();
/// assert_eq!(texts, ["Rules.", "The task of today.", "go"]);
/// assert_eq!(placed.cache_marks, [0, 1, 2]);
/// ```
#[must_use]
pub fn place_cache_marks(request: ChatRequest, limits: MarkLimits) -> ChatRequest {
    let volatile = request.volatile.min(request.messages.len());
    let stays = request.messages.len() - volatile;
    let mut messages = Vec::with_capacity(request.messages.len());
    let (mut asked, mut given) = (Vec::new(), Vec::new());
    let mut stable = 0;
    for (at, message) in request.messages.into_iter().enumerate() {
        let is_given = request.cache_marks.contains(&at);
        let split = if message.role().is_instruction() { split(&message) } else { None };
        let first = messages.len();
        if let Some(Split { leading, pieces }) = split {
            asked.extend(leading.then(|| first.checked_sub(1)).flatten());
            for (content, is_marked) in pieces {
                asked.extend(is_marked.then_some(messages.len()));
                messages.push(Arc::new(message.with_body(content, Vec::new())));
            }
        } else {
            messages.push(message);
        }
        let added = messages.len() - first;
        given.extend((is_given && added > 0).then(|| messages.len() - 1));
        if at < stays {
            stable += added;
        }
    }
    let volatile = messages.len() - stable;
    let system = messages.iter().take_while(|message| message.role().is_instruction()).count();
    let system = system.min(stable).checked_sub(1);
    let tail = stable.checked_sub(1);
    let wished = system.into_iter().chain(tail);
    let wished = wished.chain(tail_before(&messages, stable, limits));
    let wished = wished.chain(asked.into_iter().rev()).chain(given.into_iter().rev());
    let mut marks = BTreeSet::new();
    for mark in wished {
        if marks.len() < limits.most && mark < stable {
            marks.insert(mark);
        }
    }
    let cache_marks = marks.into_iter().collect();
    ChatRequest { messages, cache_marks, volatile, ..request }
}

/// Finds the end of the stable part of the previous call, which is what precedes the model's last
/// answer, if it is out of reach of the end of this one.
fn tail_before(messages: &[Arc<Message>], stable: usize, limits: MarkLimits) -> Option<usize> {
    let stable = messages.get(..stable)?;
    let answer = stable.iter().rposition(|message| *message.role() == Role::Assistant)?;
    let blocks: usize = stable.get(answer..)?.iter().map(|message| content_blocks(message)).sum();
    if blocks < limits.reach { None } else { answer.checked_sub(1) }
}

/// Counts the content blocks that a provider sees in a message.
pub(super) fn content_blocks(message: &Message) -> usize {
    let content = match message.content() {
        Content::Empty => 0,
        Content::Text(_) => 1,
        Content::Parts(parts) => parts.len(),
    };
    (content + message.tool_calls().len()).max(1)
}

/// An instruction cut at its marks.
struct Split {
    /// Whether a mark precedes all text.
    leading: bool,
    /// The pieces of text, each with whether a mark follows it.
    pieces: Vec<(Content, bool)>,
}

/// Returns `None` if there is no mark.
fn split(message: &Message) -> Option<Split> {
    if !message.content().texts().any(|text| text.contains(CACHE_BREAKPOINT)) {
        return None;
    }
    let parts = match message.content() {
        Content::Parts(parts) => parts.clone(),
        _ => vec![Part::Text(message.text().into_owned())],
    };
    let mut split = Split { leading: false, pieces: Vec::new() };
    let mut piece = Vec::new();
    for part in parts {
        let Part::Text(text) = part else {
            piece.push(part);
            continue;
        };
        let (mut texts, mut n) = (text.split(CACHE_BREAKPOINT).peekable(), 0);
        while let Some(text) = texts.next() {
            let is_last = texts.peek().is_none();
            // The rest of the line that held the mark is blank.
            let text = if n > 0 { behind_line(text) } else { text };
            let text = if is_last { text } else { text.trim_end() };
            if !text.is_empty() {
                piece.push(Part::Text(text.to_owned()));
            }
            if !is_last {
                split.close(&mut piece, true);
            }
            n += 1;
        }
    }
    split.close(&mut piece, false);
    Some(split)
}

/// Strips the blank lines at the beginning of a text; the first line with content keeps its
/// indentation.
fn behind_line(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    let (space, said) = text.split_at(blank);
    space.rfind('\n').map_or(said, |at| text.split_at(at + 1).1)
}

impl Split {
    fn close(&mut self, piece: &mut Vec<Part>, is_marked: bool) {
        let content = match std::mem::take(piece).as_slice() {
            [] => {
                match self.pieces.last_mut() {
                    Some(before) => before.1 |= is_marked,
                    None => self.leading |= is_marked,
                }
                return;
            }
            [Part::Text(text)] => Content::Text(text.clone()),
            parts => Content::Parts(parts.to_vec()),
        };
        self.pieces.push((content, is_marked));
    }
}
