//! Reads an answer, whole or piece by piece.

mod block;
mod call;
mod strings;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use call::HermesCall;

use super::{CALL_BEGIN, TURN_END};
use block::{Block, Progress};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HermesPart {
    /// Text around calls, unchanged.
    Text(String),
    /// A call.
    Call(HermesCall),
    /// A block that is not a valid call. It is not run; the model may be shown why.
    Problem(HermesProblem),
}

/// A block that begins like a call and is not a valid one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool call {excerpt:?} cannot be read: {reason}. A call is a JSON object with \"name\" and \
     \"arguments\" between the tags tool_call and /tool_call",
    excerpt = excerpt(text)
)]
pub(crate) struct HermesProblem {
    /// The block itself, its tags included.
    pub(crate) text: String,
    /// Why it is not valid, as part of a sentence.
    pub(crate) reason: String,
}

/// How many characters of a block an excerpt has.
const EXCERPT: usize = 120;

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", text.split_at(end).0),
        None => text.to_owned(),
    }
}

/// Reads an answer as it is being written. However it is cut into pieces, the parts are the same once
/// adjacent texts are joined.
///
/// A call is a JSON object between `<tool_call>` and `</tool_call>`: `name` and `arguments` (or
/// `parameters`), in either order; a Python dict is accepted as well, and several objects may be in one
/// block. A tag inside a string ends nothing, and what a string quotes is never a call: neither in a
/// malformed block, nor in one that is cut off. A block that ends inside a string takes the rest of the
/// answer with it. A call that is complete at the end of the answer needs no end tag, because servers
/// take that tag as the end of the answer.
///
/// The answer ends where the turn does: everything after the token for that is dropped. Thoughts that the answer
/// begins with are text, whatever calls they weigh.
#[derive(Clone, Debug, Default)]
pub(crate) struct HermesParser {
    /// Text that has not become a part yet.
    rest: String,
    /// The block that `rest` begins with.
    block: Option<Block>,
    /// Whether the turn has ended.
    is_over: bool,
    thoughts: Thoughts,
}

/// Whether the answer begins with thoughts, for a server that leaves them in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thoughts {
    /// Its beginning does not show it yet.
    #[default]
    Unknown,
    /// They have not ended.
    Open,
    /// They have ended, or there are none.
    Over,
}

const THOUGHTS_BEGIN: &str = "<think>";
const THOUGHTS_END: &str = "</think>";

impl HermesParser {
    /// Takes more of the answer, and returns the parts that are complete.
    pub(crate) fn push(&mut self, more: &str) -> Vec<HermesPart> {
        self.rest.push_str(more);
        self.read(false)
    }

    /// Takes the end of the answer, and returns the last parts.
    #[must_use]
    pub(crate) fn finish(mut self) -> Vec<HermesPart> {
        self.read(true)
    }

    fn read(&mut self, is_end: bool) -> Vec<HermesPart> {
        let mut parts = Vec::new();
        let mut from = 0;
        self.read_thoughts(is_end, &mut parts);
        while !self.is_over && self.thoughts == Thoughts::Over {
            let rest = self.rest.get(from..).unwrap_or_default();
            let Some(block) = &mut self.block else {
                let (sure, mark) = words(rest, is_end);
                if sure > 0 {
                    push_text(rest.split_at(sure).0, &mut parts);
                }
                from += sure;
                match mark {
                    Some(Mark::Block) => self.block = Some(Block::default()),
                    Some(Mark::End) => self.is_over = true,
                    None => break,
                }
                continue;
            };
            match block.read(rest, is_end) {
                Progress::Open => break,
                Progress::Calls { calls, length } => {
                    parts.extend(calls.into_iter().map(HermesPart::Call));
                    from += length;
                }
                Progress::Problem { reason, length } => {
                    let text = rest.get(..length).unwrap_or_default().to_owned();
                    parts.push(HermesPart::Problem(HermesProblem { text, reason }));
                    from += length;
                }
            }
            self.block = None;
        }
        if self.is_over {
            self.rest.clear();
        } else {
            self.rest.drain(..from);
        }
        parts
    }

    /// Takes thoughts off the beginning, as text.
    fn read_thoughts(&mut self, is_end: bool, parts: &mut Vec<HermesPart>) {
        if self.thoughts == Thoughts::Unknown {
            let begun = self.rest.trim_start();
            self.thoughts = match begun.starts_with(THOUGHTS_BEGIN) {
                true => Thoughts::Open,
                false if !is_end && THOUGHTS_BEGIN.starts_with(begun) => Thoughts::Unknown,
                false => Thoughts::Over,
            };
        }
        if self.thoughts != Thoughts::Open || self.is_over {
            return;
        }
        let marks = [THOUGHTS_END, TURN_END].map(|mark| Some((self.rest.find(mark)?, mark)));
        let end = match marks.into_iter().flatten().min() {
            Some((at, TURN_END)) => {
                self.is_over = true;
                at
            }
            Some((at, mark)) => {
                self.thoughts = Thoughts::Over;
                at + mark.len()
            }
            None if is_end => self.rest.len(),
            // A mark may have begun.
            None => {
                let begun = self.rest.rfind('<').filter(|at| {
                    let rest = self.rest.split_at(*at).1;
                    [THOUGHTS_END, TURN_END].iter().any(|mark| mark.starts_with(rest))
                });
                begun.unwrap_or(self.rest.len())
            }
        };
        if end > 0 {
            push_text(self.rest.split_at(end).0, parts);
            self.rest.drain(..end);
        }
    }
}

/// What ends a text.
enum Mark {
    /// The beginning of a call.
    Block,
    /// The end of the turn.
    End,
}

/// Returns how many bytes are certainly text, and what ends it.
fn words(text: &str, is_end: bool) -> (usize, Option<Mark>) {
    for (at, _) in text.match_indices('<') {
        let rest = text.split_at(at).1;
        if rest.starts_with(CALL_BEGIN) {
            return (at, Some(Mark::Block));
        }
        if rest.starts_with(TURN_END) {
            return (at, Some(Mark::End));
        }
        if !is_end && [CALL_BEGIN, TURN_END].iter().any(|mark| mark.starts_with(rest)) {
            return (at, None);
        }
    }
    (text.len(), None)
}

fn push_text(text: &str, parts: &mut Vec<HermesPart>) {
    match parts.last_mut() {
        Some(HermesPart::Text(before)) => before.push_str(text),
        _ => parts.push(HermesPart::Text(text.to_owned())),
    }
}
