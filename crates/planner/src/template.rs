//! Arguments that contain references.

use crate::json::{Node, Value, same_number};
use crate::reference::{TextPart, cut, would_be_read};
use crate::{FindingKind, Position, Reference, Spelling};
use foldback_core::{Escape, escape_into};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A JSON value that may contain references. The keys of objects keep their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    /// A number, a Boolean or null, as its exact JSON text.
    Literal(String),
    /// Text without references.
    Text(String),
    /// A text that is one reference and nothing else: the referenced value keeps its JSON type.
    Whole(Reference),
    /// A text with references in it: the referenced values become text.
    Mixed(Vec<Piece>),
    /// An array.
    Array(Vec<Self>),
    /// An object, in its written order.
    Object(Vec<(String, Self)>),
}

/// A part of a text with references.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// The value of a reference.
    Reference(Reference),
}

/// How large a template is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// The bytes of its texts, keys, numbers and references.
    pub(crate) bytes: usize,
    /// The nesting depth of objects and arrays.
    pub(crate) depth: usize,
}

/// A fault found while reading a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Flaw {
    /// Text that looks like a reference but is not one.
    Malformed { at: Position, text: String, expected: String },
    /// A key that occurs twice; the first of its values counts.
    Twice { at: Position, key: String },
    /// A key that looks like a reference; only texts can be references.
    InKey { at: Position, key: String },
}

impl Flaw {
    /// Returns what to report, and the position.
    pub(crate) fn finding(self) -> (FindingKind, Position, String) {
        match self {
            Self::Malformed { at, text, expected } => {
                let message = format!(
                    "`{}` looks like a reference but is not one; expected {expected}",
                    crate::excerpt::of(&text)
                );
                (FindingKind::MalformedReference, at, message)
            }
            Self::Twice { at, key } => {
                let key = crate::excerpt::of(&key);
                let message = format!("the key `{key}` occurs twice in one object; expected once");
                (FindingKind::DuplicateKey, at, message)
            }
            Self::InKey { at, key } => {
                let message = format!(
                    "the key `{}` cannot contain a reference; expected it in a value",
                    crate::excerpt::of(&key)
                );
                (FindingKind::MalformedReference, at, message)
            }
        }
    }
}

impl Template {
    /// Returns all references in it, in order.
    #[must_use]
    pub fn references(&self) -> Vec<&Reference> {
        let mut references = Vec::new();
        self.collect(&mut references);
        references
    }

    fn collect<'a>(&'a self, references: &mut Vec<&'a Reference>) {
        match self {
            Self::Literal(_) | Self::Text(_) => {}
            Self::Whole(reference) => references.push(reference),
            Self::Mixed(pieces) => {
                references.extend(pieces.iter().filter_map(|piece| match piece {
                    Piece::Reference(reference) => Some(reference),
                    Piece::Text(_) => None,
                }));
            }
            Self::Array(values) => values.iter().for_each(|value| value.collect(references)),
            Self::Object(members) => {
                members.iter().for_each(|(_, value)| value.collect(references));
            }
        }
    }

    /// Returns the value of a key, if this is an object that has it.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns whether it has the same meaning as another template: the keys of objects in any order,
    /// numbers by value.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(one), Self::Literal(other)) => same_number(one, other),
            (Self::Array(one), Self::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| one.means_the_same(other))
            }
            (Self::Object(one), Self::Object(other)) => {
                let by_key: BTreeMap<&str, &Self> =
                    other.iter().map(|(key, value)| (key.as_str(), value)).collect();
                let is_there = |(key, value): &(String, Self)| {
                    by_key.get(key.as_str()).is_some_and(|other| value.means_the_same(other))
                };
                one.len() == other.len() && one.iter().all(is_there)
            }
            _ => self == other,
        }
    }

    /// Returns its size.
    pub(crate) fn size(&self) -> Size {
        let all = |bytes: usize, inner: &mut dyn Iterator<Item = Size>| {
            inner.fold(Size { bytes, depth: 1 }, |all, one| Size {
                bytes: all.bytes + one.bytes,
                depth: all.depth.max(one.depth + 1),
            })
        };
        let path = |reference: &Reference| reference.to_string().len();
        match self {
            Self::Literal(text) | Self::Text(text) => Size { bytes: text.len(), depth: 0 },
            Self::Whole(reference) => Size { bytes: path(reference), depth: 0 },
            Self::Mixed(pieces) => {
                let bytes = pieces.iter().map(|piece| match piece {
                    Piece::Text(text) => text.len(),
                    Piece::Reference(reference) => path(reference),
                });
                Size { bytes: bytes.sum(), depth: 0 }
            }
            Self::Array(values) => all(0, &mut values.iter().map(Self::size)),
            Self::Object(members) => {
                let keys = members.iter().map(|(key, _)| key.len()).sum();
                all(keys, &mut members.iter().map(|(_, value)| value.size()))
            }
        }
    }

    /// Reads a text, recognising references of a spelling. `at` is the text's position.
    pub(crate) fn of_text(
        text: String,
        at: Position,
        spelling: Option<Spelling>,
        flaws: &mut Vec<Flaw>,
    ) -> Self {
        let Some(spelling) = spelling else { return Self::Text(text) };
        let mut pieces: Vec<Piece> = Vec::new();
        for part in cut(&text, spelling) {
            let plain = match part {
                TextPart::Reference(reference) => {
                    pieces.push(Piece::Reference(reference));
                    continue;
                }
                TextPart::Malformed { text, expected } => {
                    flaws.push(Flaw::Malformed { at, text: text.to_owned(), expected });
                    text
                }
                TextPart::Text(text) => text,
            };
            match pieces.last_mut() {
                Some(Piece::Text(before)) => before.push_str(plain),
                _ => pieces.push(Piece::Text(plain.to_owned())),
            }
        }
        match pieces.as_mut_slice() {
            [] | [Piece::Text(_)] => Self::Text(text),
            [Piece::Reference(reference)] => Self::Whole(reference.clone()),
            _ => Self::Mixed(pieces),
        }
    }

    /// Reads a JSON value, recognising references of a spelling in its texts; without a spelling, none.
    pub(crate) fn of_json(node: Node, spelling: Option<Spelling>, flaws: &mut Vec<Flaw>) -> Self {
        match node.value {
            Value::Scalar(text) => Self::Literal(text),
            Value::Text(text) => Self::of_text(text, node.at, spelling, flaws),
            Value::Array(values) => Self::Array(
                values.into_iter().map(|value| Self::of_json(value, spelling, flaws)).collect(),
            ),
            Value::Object(members) => {
                let mut seen = BTreeSet::new();
                let mut kept = Vec::with_capacity(members.len());
                for member in members {
                    if !seen.insert(member.key.clone()) {
                        flaws.push(Flaw::Twice { at: member.at, key: member.key });
                        continue;
                    }
                    if spelling.is_some_and(|spelling| would_be_read(&member.key, spelling)) {
                        flaws.push(Flaw::InKey { at: member.at, key: member.key.clone() });
                    }
                    kept.push((member.key, Self::of_json(member.node, spelling, flaws)));
                }
                Self::Object(kept)
            }
        }
    }

    /// Returns a text or key that a spelling would read differently, and so cannot express.
    pub(crate) fn misread(&self, spelling: Spelling) -> Option<String> {
        match self {
            Self::Literal(_) | Self::Whole(_) => None,
            Self::Text(text) => would_be_read(text, spelling).then(|| text.clone()),
            Self::Mixed(pieces) => {
                let text = spell(pieces, spelling);
                (Self::of_text(text.clone(), Position::START, Some(spelling), &mut Vec::new())
                    != *self)
                    .then_some(text)
            }
            Self::Array(values) => values.iter().find_map(|value| value.misread(spelling)),
            Self::Object(members) => members.iter().find_map(|(key, value)| {
                let is_misread = would_be_read(key, spelling);
                is_misread.then(|| key.clone()).or_else(|| value.misread(spelling))
            }),
        }
    }

    /// Writes the template as JSON on one line, with references in a spelling.
    pub(crate) fn write(&self, spelling: Spelling, out: &mut String) {
        match self {
            Self::Literal(text) => out.push_str(text),
            Self::Text(text) => quote_into(text, out),
            Self::Whole(reference) => quote_into(&reference.spelled(spelling), out),
            Self::Mixed(pieces) => quote_into(&spell(pieces, spelling), out),
            Self::Array(values) => {
                out.push('[');
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    value.write(spelling, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (place, (key, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    quote_into(key, out);
                    out.push_str(": ");
                    value.write(spelling, out);
                }
                out.push('}');
            }
        }
    }
}

/// Prints JSON on one line, with references in OnePlan's spelling.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(Spelling::OnePlan, &mut text);
        f.write_str(&text)
    }
}

/// Returns pieces as one text, with references in a spelling.
pub(crate) fn spell(pieces: &[Piece], spelling: Spelling) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Reference(reference) => text.push_str(&reference.spelled(spelling)),
        }
    }
    text
}

/// Writes a text as a JSON string.
pub(crate) fn quote_into(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, Escape::Minimal, out);
    out.push('"');
}
