//! JSON as models write it. Comments and trailing commas are tolerated; the order of keys, duplicate
//! keys and the exact text of numbers are kept.
//!
//! The reader takes one character at a time, so its output does not depend on how the text was split.

mod lexer;
mod number;
mod tree;

pub(crate) use lexer::is_number;
pub(crate) use number::same_number;
pub(crate) use tree::{Done, Tree};

use crate::{ParseError, Position};

/// Deeper nesting is refused, so that recursion over a parsed value cannot overflow the stack.
pub(crate) const DEPTH_MOST: usize = 128;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, a Boolean or null, as it was written.
    Scalar(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A key with its value; a key that occurs twice is kept twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// The position of the key.
    pub(crate) at: Position,
    pub(crate) key: String,
    pub(crate) node: Node,
}

impl Value {
    /// Returns the kind of value, with an article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(text) => match text.as_str() {
                "null" => "null",
                "true" | "false" => "a Boolean",
                _ => "a number",
            },
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(text) if text == "null")
    }
}

/// Parses a text that is one value and nothing else.
pub(crate) fn read(text: &str) -> Result<Node, ParseError> {
    let mut tree = Tree::new(Position::START, None);
    let mut root = None;
    let mut take = |done: Vec<Done>| root = done.into_iter().find_map(Done::root).or(root.take());
    for c in text.chars() {
        take(tree.push(c)?);
    }
    take(tree.end()?);
    root.ok_or_else(|| tree.truncated())
}
