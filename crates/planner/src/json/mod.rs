//! JSON as models write it: comments and trailing commas are tolerated, the order of keys, keys that
//! stand twice and the exact text of numbers are kept.
//!
//! The reader takes one character at a time, so what it gives does not depend on how the text was cut.

mod lexer;
mod number;
mod tree;

pub(crate) use lexer::is_number;
pub(crate) use number::same_number;
pub(crate) use tree::{Done, Tree};

use crate::{ParseError, Position};

/// Deeper nesting is refused, so that no recursion over what was read can overflow the stack.
pub(crate) const DEPTH_MOST: usize = 128;

/// A value, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, a truth value or null, as it was written.
    Scalar(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A key with its value; a key that stands twice is there twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Where the key begins.
    pub(crate) at: Position,
    pub(crate) key: String,
    pub(crate) node: Node,
}

impl Value {
    /// What it is, with an article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(text) => match text.as_str() {
                "null" => "null",
                "true" | "false" => "a truth value",
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

/// Reads a text that is one value and nothing else.
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
