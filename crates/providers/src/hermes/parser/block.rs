//! The block between the tags of a call.

use super::HermesCall;
use super::strings::{Placed, Strings};
use crate::hermes::{CALL_BEGIN, CALL_END, TURN_END};

/// How far a block has been read. It begins with the tag.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// How many bytes after the tag have been read.
    at: usize,
    place: Place,
    calls: Vec<HermesCall>,
}

#[derive(Clone, Debug, Default)]
enum Place {
    /// Before an object, which must follow.
    #[default]
    Before,
    /// In an object that begins here.
    Object { from: usize, depth: usize, strings: Strings },
    /// After an object.
    Behind,
    /// In a block that is not a valid call. Its strings contain no call either, so its end is
    /// searched for outside them.
    Broken { reason: String, strings: Strings },
    /// In a block that is not a valid call, and whose strings have no certain end: the rest of the
    /// answer belongs to it.
    Lost { reason: String },
}

/// What is known about a block.
pub(super) enum Progress {
    /// More of it must follow.
    Open,
    /// It is this long, its tags included, and holds these calls.
    Calls { calls: Vec<HermesCall>, length: usize },
    /// It is this long, and is not a valid call.
    Problem { reason: String, length: usize },
}

const CUT: &str = "it is cut off";
const CUT_STRING: &str = "it is cut off inside a string";
const UNQUOTED: &str = "a quote in one of its strings is not escaped";

impl Block {
    /// Continues reading a text that begins with the block.
    pub(super) fn read(&mut self, text: &str, is_end: bool) -> Progress {
        let inside = text.get(CALL_BEGIN.len()..).unwrap_or_default();
        while let Some(byte) = inside.as_bytes().get(self.at).copied() {
            match &mut self.place {
                Place::Before | Place::Behind if byte.is_ascii_whitespace() => self.at += 1,
                Place::Before | Place::Behind if byte == b'{' => {
                    let strings = Strings::default();
                    self.place = Place::Object { from: self.at, depth: 0, strings };
                }
                Place::Before => self.fail("it does not begin with a JSON object"),
                Place::Object { strings, .. } if byte == b'<' && !strings.is_open() => {
                    self.fail("it has fewer closing brackets than opening ones");
                }
                Place::Object { from, depth, strings } => match strings.take(byte) {
                    Placed::Inside => self.at += 1,
                    Placed::Misplaced => self.lose(UNQUOTED),
                    Placed::Outside => match scan(byte, depth) {
                        None => self.fail("it has text outside its strings that is not JSON"),
                        Some(false) => self.at += 1,
                        Some(true) => {
                            self.at += 1;
                            match HermesCall::read(inside.get(*from..self.at).unwrap_or_default()) {
                                Ok(call) => {
                                    self.calls.push(call);
                                    self.place = Place::Behind;
                                }
                                Err(reason) => self.fail(&reason),
                            }
                        }
                    },
                },
                Place::Behind => {
                    let rest = inside.get(self.at..).unwrap_or_default();
                    match tag(rest, &[CALL_END, CALL_BEGIN, TURN_END], is_end) {
                        Tag::Open => return Progress::Open,
                        Tag::Cut => return self.done(rest.len()),
                        Tag::Whole(CALL_END) => return self.done(CALL_END.len()),
                        // A new call or the end of the turn, if the end tag of this one was forgotten.
                        Tag::Whole(_) => return self.done(0),
                        Tag::None => self.fail("text follows its object"),
                    }
                }
                Place::Broken { reason, strings } => {
                    if byte == b'<' && !strings.is_open() {
                        let rest = inside.get(self.at..).unwrap_or_default();
                        let length = match tag(rest, &[CALL_END, TURN_END], is_end) {
                            Tag::Open => return Progress::Open,
                            Tag::Whole(CALL_END) => Some(CALL_END.len()),
                            Tag::Whole(_) => Some(0),
                            Tag::Cut | Tag::None => None,
                        };
                        if let Some(more) = length {
                            let length = CALL_BEGIN.len() + self.at + more;
                            return Progress::Problem { reason: std::mem::take(reason), length };
                        }
                    }
                    match strings.take(byte) {
                        Placed::Inside | Placed::Outside => self.at += 1,
                        Placed::Misplaced => {
                            let reason = std::mem::take(reason);
                            self.lose(&reason);
                        }
                    }
                }
                Place::Lost { .. } => self.at = inside.len(),
            }
        }
        if is_end { self.end(text.len()) } else { Progress::Open }
    }

    /// Returns the result at the end of the answer.
    fn end(&mut self, length: usize) -> Progress {
        let reason = match &mut self.place {
            Place::Behind => return self.done(0),
            Place::Broken { reason, .. } | Place::Lost { reason } => std::mem::take(reason),
            Place::Object { strings, .. } if strings.is_open() => CUT_STRING.to_owned(),
            Place::Before | Place::Object { .. } => CUT.to_owned(),
        };
        Progress::Problem { reason, length }
    }

    fn done(&mut self, more: usize) -> Progress {
        let length = CALL_BEGIN.len() + self.at + more;
        Progress::Calls { calls: std::mem::take(&mut self.calls), length }
    }

    /// Marks the block as invalid from here on.
    fn fail(&mut self, reason: &str) {
        let strings = Strings::default();
        self.place = Place::Broken { reason: reason.to_owned(), strings };
    }

    /// Marks the block as invalid and endless.
    fn lose(&mut self, reason: &str) {
        self.place = Place::Lost { reason: reason.to_owned() };
    }
}

/// Which of several tags a text begins with.
enum Tag {
    Whole(&'static str),
    /// More input is needed to decide.
    Open,
    /// The beginning of one, at the end of the answer.
    Cut,
    None,
}

fn tag(text: &str, tags: &[&'static str], is_end: bool) -> Tag {
    if let Some(tag) = tags.iter().find(|tag| text.starts_with(**tag)) {
        return Tag::Whole(tag);
    }
    match tags.iter().any(|tag| tag.starts_with(text)) {
        true if is_end => Tag::Cut,
        true => Tag::Open,
        false => Tag::None,
    }
}

/// Reads a byte of an object, outside its strings: returns whether it is the last, or `None` if it
/// cannot be part of JSON or Python.
fn scan(byte: u8, depth: &mut usize) -> Option<bool> {
    match byte {
        b'{' | b'[' | b'(' => *depth += 1,
        b'}' | b']' | b')' => {
            *depth = depth.checked_sub(1)?;
            return Some(*depth == 0);
        }
        b',' | b':' | b'+' | b'-' | b'.' => {}
        _ if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => {}
        _ => return None,
    }
    Some(false)
}
