//! Tokens in, values out.

use super::lexer::{Lexer, Token};
use super::{DEPTH_MOST, Member, Node, Value};
use crate::{ParseError, Position};

/// A parser that builds one value, character by character.
#[derive(Debug)]
pub(crate) struct Tree {
    lexer: Lexer,
    open: Vec<Open>,
    next: Next,
    /// The members of the object under this key of the root are emitted one by one.
    handed_out: Option<&'static str>,
}

/// The part of the text that was completed.
#[derive(Debug)]
pub(crate) enum Done {
    /// A key of the root, with its colon; its value follows.
    Key(Position, String),
    /// A member of the object whose members are emitted one by one.
    Member(Member),
    /// The whole value, without the members that were emitted before.
    Root(Node),
}

impl Done {
    pub(crate) fn root(self) -> Option<Node> {
        if let Self::Root(node) = self { Some(node) } else { None }
    }
}

/// An object or array that is not closed yet.
#[derive(Debug)]
struct Open {
    at: Position,
    /// The key whose value is being read.
    key: Option<(Position, String)>,
    value: Value,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Value,
    ValueOrClose,
    KeyOrClose,
    Colon,
    CommaOrClose,
    Nothing,
}

impl Tree {
    pub(crate) fn new(at: Position, handed_out: Option<&'static str>) -> Self {
        Self { lexer: Lexer::new(at), open: Vec::new(), next: Next::Value, handed_out }
    }

    pub(crate) fn at(&self) -> Position {
        self.lexer.at()
    }

    /// Returns whether a comment is open.
    pub(crate) fn is_in_comment(&self) -> bool {
        self.lexer.is_in_comment()
    }

    /// Returns whether the root is closed.
    pub(crate) fn is_done(&self) -> bool {
        self.next == Next::Nothing
    }

    pub(crate) fn push(&mut self, c: char) -> Result<Vec<Done>, ParseError> {
        let mut done = Vec::new();
        for (at, token) in self.lexer.push(c)?.into_iter().flatten() {
            self.take(at, token, &mut done)?;
        }
        Ok(done)
    }

    /// Ends the text.
    pub(crate) fn end(&mut self) -> Result<Vec<Done>, ParseError> {
        let mut done = Vec::new();
        if let Some((at, token)) = self.lexer.end()? {
            self.take(at, token, &mut done)?;
        }
        if !self.is_done() || self.lexer.open().is_some() {
            return Err(self.truncated());
        }
        Ok(done)
    }

    /// Returns the error for a text that ends here.
    pub(crate) fn truncated(&self) -> ParseError {
        let within = match self.open.iter().rev().find_map(|open| open.key.as_ref()) {
            Some((at, key)) => format!("the value of `{key}` ({at})"),
            None => match self.open.last() {
                Some(open) => format!("{} ({})", open.value.kind(), open.at),
                None => "JSON".to_owned(),
            },
        };
        let open = match self.lexer.open() {
            Some(what) => format!("{what} in {within}"),
            None => within,
        };
        ParseError::Truncated { at: self.at(), open }
    }

    fn take(&mut self, at: Position, token: Token, done: &mut Vec<Done>) -> Result<(), ParseError> {
        match (self.next, token) {
            (Next::Value | Next::ValueOrClose, Token::OpenObject) => {
                self.descend(at, Value::Object(Vec::new()), Next::KeyOrClose)?;
            }
            (Next::Value | Next::ValueOrClose, Token::OpenArray) => {
                self.descend(at, Value::Array(Vec::new()), Next::ValueOrClose)?;
            }
            (Next::Value | Next::ValueOrClose, Token::Text(text)) => {
                self.complete(Node { at, value: Value::Text(text) }, done);
            }
            (Next::Value | Next::ValueOrClose, Token::Scalar(text)) => {
                self.complete(Node { at, value: Value::Scalar(text) }, done);
            }
            (Next::KeyOrClose, Token::Text(key)) => {
                if let Some(open) = self.open.last_mut() {
                    open.key = Some((at, key));
                }
                self.next = Next::Colon;
            }
            (Next::Colon, Token::Colon) => {
                if let [Open { key: Some((at, key)), .. }] = self.open.as_slice() {
                    done.push(Done::Key(*at, key.clone()));
                }
                self.next = Next::Value;
            }
            (Next::CommaOrClose, Token::Comma) => {
                self.next = match self.open.last() {
                    Some(Open { value: Value::Array(_), .. }) => Next::ValueOrClose,
                    _ => Next::KeyOrClose,
                };
            }
            (Next::KeyOrClose | Next::ValueOrClose | Next::CommaOrClose, token)
                if self.closes(&token) =>
            {
                if let Some(Open { at, value, .. }) = self.open.pop() {
                    self.complete(Node { at, value }, done);
                }
            }
            (_, token) => return Err(self.unexpected(at, &token)),
        }
        Ok(())
    }

    fn descend(&mut self, at: Position, value: Value, next: Next) -> Result<(), ParseError> {
        if self.open.len() == DEPTH_MOST {
            return Err(ParseError::TooDeep { at, most: DEPTH_MOST });
        }
        self.open.push(Open { at, key: None, value });
        self.next = next;
        Ok(())
    }

    fn closes(&self, token: &Token) -> bool {
        match self.open.last().map(|open| &open.value) {
            Some(Value::Object(_)) => *token == Token::CloseObject,
            Some(Value::Array(_)) => *token == Token::CloseArray,
            _ => false,
        }
    }

    /// Puts a completed value where it belongs.
    fn complete(&mut self, node: Node, done: &mut Vec<Done>) {
        self.next = Next::CommaOrClose;
        let hands_out = match (self.handed_out, self.open.as_slice()) {
            (Some(name), [root, Open { value: Value::Object(_), .. }]) => {
                root.key.as_ref().is_some_and(|(_, key)| key == name)
            }
            _ => false,
        };
        let Some(open) = self.open.last_mut() else {
            self.next = Next::Nothing;
            done.push(Done::Root(node));
            return;
        };
        match (&mut open.value, open.key.take()) {
            (Value::Object(_), Some((at, key))) if hands_out => {
                done.push(Done::Member(Member { at, key, node }));
            }
            (Value::Object(members), Some((at, key))) => members.push(Member { at, key, node }),
            (Value::Array(values), _) => values.push(node),
            // An object's value always has a key, and a scalar is never open.
            (Value::Object(_) | Value::Scalar(_) | Value::Text(_), _) => {}
        }
    }

    fn unexpected(&self, at: Position, token: &Token) -> ParseError {
        let found = match token {
            Token::OpenObject => "`{`".to_owned(),
            Token::CloseObject => "`}`".to_owned(),
            Token::OpenArray => "`[`".to_owned(),
            Token::CloseArray => "`]`".to_owned(),
            Token::Colon => "`:`".to_owned(),
            Token::Comma => "`,`".to_owned(),
            Token::Text(text) => format!("the string \"{}\"", crate::excerpt::of(text)),
            Token::Scalar(text) => format!("`{}`", crate::excerpt::of(text)),
        };
        let expected = match self.next {
            Next::Value => "a value",
            Next::ValueOrClose => "a value or `]`",
            Next::KeyOrClose => "a key in double quotes or `}`",
            Next::Colon => "`:` after the key",
            Next::CommaOrClose if self.closes(&Token::CloseArray) => "`,` or `]`",
            Next::CommaOrClose => "`,` or `}`",
            Next::Nothing => "the end of the text",
        };
        ParseError::Syntax { at, found, expected: expected.to_owned() }
    }
}
