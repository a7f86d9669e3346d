//! Where the kept prefixes of a request end.

use crate::ChatRequest;
use foldback_core::{Content, Message, Part, Role};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The text that stands for a cache mark in standing instructions. It is not sent.
pub const CACHE_BREAKPOINT: &str = "<!-- CACHE_BREAKPOINT -->";

/// How many marks a provider takes, and how it looks for what it kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLimits {
    /// The greatest number of marks that are written for one request.
    pub most: usize,
    /// How many content blocks before a mark are looked along for the end of a kept prefix; 0 where
    /// one is found only if a mark stands at its end again.
    pub reach: usize,
}

impl MarkLimits {
    /// Anthropic's: four marks, each looking back over 20 content blocks.
    pub const ANTHROPIC: Self = Self { most: 4, reach: 20 };
    /// OpenAI's, for models that take marks: four are written, and a prefix is found at a mark.
    pub const OPENAI: Self = Self { most: 4, reach: 0 };
}

/// The request with its cache marks set: at the end of the standing instructions (and of the tools,
/// which stand before them); at the end of what stays, before the volatile suffix, where it moves on
/// with each call; where it stood at the call before, if that is out of reach (behind a turn of many
/// results, say); where [`CACHE_BREAKPOINT`] stands in the instructions; and where the request had
/// marks.
///
/// If these are too many, they are set in the order in which they are named here, the later ones
/// first. An instruction that holds [`CACHE_BREAKPOINT`] becomes several messages; in anybody else's
/// words it is a text like any other.
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

/// The tail of the call before, which is what stands before the model's last answer, where it is out
/// of reach of the end of what stays.
fn tail_before(messages: &[Arc<Message>], stable: usize, limits: MarkLimits) -> Option<usize> {
    let stable = messages.get(..stable)?;
    let answer = stable.iter().rposition(|message| *message.role() == Role::Assistant)?;
    let blocks: usize = stable.get(answer..)?.iter().map(|message| content_blocks(message)).sum();
    if blocks < limits.reach { None } else { answer.checked_sub(1) }
}

/// How many blocks of content a message is to a provider.
pub(super) fn content_blocks(message: &Message) -> usize {
    let content = match message.content() {
        Content::Empty => 0,
        Content::Text(_) => 1,
        Content::Parts(parts) => parts.len(),
    };
    (content + message.tool_calls().len()).max(1)
}

/// An instruction cut where marks stand in it.
struct Split {
    /// Whether a mark stands before everything that is said.
    leading: bool,
    /// What is said, each with whether a mark stands behind it.
    pieces: Vec<(Content, bool)>,
}

/// `None` where no mark stands.
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
            // What is left of the line that the mark stood on says nothing.
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

/// A text without the blank lines that it begins with; the first that says something keeps its
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
