//! Characters in, tokens out.

use crate::{ParseError, Position};
use foldback_core::decode_literal;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    OpenObject,
    CloseObject,
    OpenArray,
    CloseArray,
    Colon,
    Comma,
    /// A string, with its escapes decoded.
    Text(String),
    /// A number, a Boolean or null.
    Scalar(String),
}

/// A lexer that turns characters into tokens.
#[derive(Debug)]
pub(super) struct Lexer {
    state: State,
    /// The position of the next character.
    at: Position,
    /// The position at which the open token began.
    from: Position,
    /// The open token's text so far, with its escapes decoded.
    literal: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Between,
    Text,
    /// After a backslash.
    Escape,
    /// After `\u`, with this many digits to come.
    Unicode(u8),
    Scalar,
    /// After a slash.
    Slash,
    LineComment,
    BlockComment {
        star: bool,
    },
}

impl Lexer {
    pub(super) fn new(at: Position) -> Self {
        Self { state: State::Between, at, from: at, literal: String::new() }
    }

    /// Returns the position of the next character.
    pub(super) fn at(&self) -> Position {
        self.at
    }

    /// Returns a description of the open string, comment or scalar, if there is one.
    pub(super) fn open(&self) -> Option<&'static str> {
        match self.state {
            State::Between => None,
            State::Text | State::Escape | State::Unicode(_) => Some("a string"),
            State::Scalar => Some("a value"),
            State::Slash | State::LineComment | State::BlockComment { .. } => Some("a comment"),
        }
    }

    /// Returns whether a comment is open, or may be.
    pub(super) fn is_in_comment(&self) -> bool {
        matches!(self.state, State::Slash | State::LineComment | State::BlockComment { .. })
    }

    /// Takes a character. It ends at most two tokens: a scalar, and the bracket after it.
    pub(super) fn push(&mut self, c: char) -> Result<[Option<(Position, Token)>; 2], ParseError> {
        let mut tokens = [None, None];
        match self.state {
            State::Text => match c {
                '"' => {
                    let text = decode_literal(&self.literal).into_owned();
                    tokens[0] = Some((self.from, Token::Text(text)));
                    self.state = State::Between;
                }
                _ => {
                    self.literal.push(c);
                    if c == '\\' {
                        self.state = State::Escape;
                    }
                }
            },
            State::Escape => {
                self.state = match c {
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | '\'' => State::Text,
                    'u' => State::Unicode(4),
                    _ => return Err(self.unexpected(c, "one of \" \\ / b f n r t u after a \\")),
                };
                self.literal.push(c);
            }
            State::Unicode(left) => {
                if !c.is_ascii_hexdigit() {
                    return Err(self.unexpected(c, "four hexadecimal digits after \\u"));
                }
                self.literal.push(c);
                self.state = if left == 1 { State::Text } else { State::Unicode(left - 1) };
            }
            State::LineComment => {
                if c == '\n' {
                    self.state = State::Between;
                }
            }
            State::BlockComment { star } => {
                self.state = match c {
                    '/' if star => State::Between,
                    _ => State::BlockComment { star: c == '*' },
                };
            }
            State::Slash => {
                self.state = match c {
                    '/' => State::LineComment,
                    '*' => State::BlockComment { star: false },
                    _ => return Err(self.unexpected(c, "// or /*")),
                };
            }
            State::Scalar if c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_') => {
                self.literal.push(c);
            }
            State::Scalar => {
                tokens[0] = self.end()?;
                tokens[1] = self.begin(c)?;
            }
            State::Between => tokens[0] = self.begin(c)?,
        }
        self.at.pass(c);
        Ok(tokens)
    }

    /// Ends the text, and with it an open scalar.
    pub(super) fn end(&mut self) -> Result<Option<(Position, Token)>, ParseError> {
        if self.state == State::LineComment {
            self.state = State::Between;
        }
        if self.state != State::Scalar {
            return Ok(None);
        }
        self.state = State::Between;
        let literal = std::mem::take(&mut self.literal);
        if matches!(literal.as_str(), "true" | "false" | "null") || is_number(&literal) {
            return Ok(Some((self.from, Token::Scalar(literal))));
        }
        Err(ParseError::Syntax {
            at: self.from,
            found: format!("`{literal}`"),
            expected: "a JSON value: a string in double quotes, a number, true, false, null, an \
                       object or an array"
                .to_owned(),
        })
    }

    /// Handles a character outside all tokens.
    fn begin(&mut self, c: char) -> Result<Option<(Position, Token)>, ParseError> {
        self.from = self.at;
        self.literal.clear();
        let token = match c {
            '{' => Token::OpenObject,
            '}' => Token::CloseObject,
            '[' => Token::OpenArray,
            ']' => Token::CloseArray,
            ':' => Token::Colon,
            ',' => Token::Comma,
            '"' => {
                self.state = State::Text;
                return Ok(None);
            }
            '/' => {
                self.state = State::Slash;
                return Ok(None);
            }
            _ if c.is_whitespace() || c == '\u{feff}' => return Ok(None),
            _ if c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_') => {
                self.literal.push(c);
                self.state = State::Scalar;
                return Ok(None);
            }
            _ => return Err(self.unexpected(c, "JSON")),
        };
        Ok(Some((self.at, token)))
    }

    fn unexpected(&self, c: char, expected: &str) -> ParseError {
        let found = format!("`{}`", crate::excerpt::of(c.encode_utf8(&mut [0; 4])));
        ParseError::Syntax { at: self.at, found, expected: expected.to_owned() }
    }
}

/// Returns whether a text is a number by JSON's grammar.
pub(crate) fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text.starts_with('0')) {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}
