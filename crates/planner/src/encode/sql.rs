//! Standard SQL, as SQLite and PostgreSQL read it: a backslash has no meaning in a string literal.

use super::Refusal;
use crate::bind::BoundValue;

/// The reader's state in a statement.
#[derive(Debug, Default)]
pub(crate) struct Code {
    state: State,
    /// The two characters directly before.
    last: [Option<char>; 2],
    /// Whether anything but white space was passed.
    any: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Code,
    /// In a literal or a quoted name.
    Quoted(char),
    LineComment,
    BlockComment,
    /// From here on dialects differ, for this reason.
    Lost(&'static str),
}

impl Code {
    pub(super) fn pass(&mut self, code: &str) {
        let mut chars = code.chars().peekable();
        while let Some(c) = chars.next() {
            let [_, before] = self.last;
            match self.state {
                State::Lost(_) => return,
                State::Code => self.pass_code(before, c),
                State::Quoted(quote) if c == quote => self.state = State::Code,
                State::Quoted('\'') if c == '\\' => {
                    self.state = State::Lost("after a backslash in a string literal");
                }
                State::LineComment if c == '\n' => self.state = State::Code,
                State::LineComment if c == '\r' && chars.peek() != Some(&'\n') => {
                    self.state = State::Lost("after a line end that dialects read differently");
                }
                State::BlockComment if before == Some('*') && c == '/' => self.state = State::Code,
                State::BlockComment if before == Some('/') && c == '*' => {
                    self.state = State::Lost("after a comment in a comment");
                }
                State::Quoted(_) | State::LineComment | State::BlockComment => {}
            }
            self.any |= !c.is_whitespace();
            // The star that begins a comment does not end it.
            let begins = before == Some('/') && c == '*';
            self.last = if begins { [None, None] } else { [before, Some(c)] };
        }
    }

    fn pass_code(&mut self, before: Option<char>, c: char) {
        self.state = match (before, c) {
            (Some('-'), '-') => State::LineComment,
            (Some('/'), '*') => State::BlockComment,
            (Some('E' | 'e'), '\'') if !self.last[0].is_some_and(is_word) => {
                State::Lost("after a string literal with escapes")
            }
            (_, '\'' | '"') => State::Quoted(c),
            (_, '`' | '[' | '$' | '#') => {
                State::Lost("after a character that dialects read differently")
            }
            _ => State::Code,
        };
    }

    pub(super) fn encode(
        &mut self,
        value: &BoundValue<'_>,
        behind: &str,
    ) -> Result<String, Refusal> {
        let place = |place| {
            Err(Refusal::Place { place, instead: "where a value is allowed, or in quotes" })
        };
        let text = value.text();
        if text.contains('\0') {
            return Err(Refusal::Value { what: "a NUL character" });
        }
        match self.state {
            State::Lost(why) => place(why),
            State::LineComment | State::BlockComment => place("in a comment"),
            State::Quoted(quote) => {
                self.last = [None, None];
                Ok(text.replace(quote, &format!("{quote}{quote}")))
            }
            State::Code => {
                if !self.any && behind.is_empty() {
                    return Err(Refusal::Whole);
                }
                let touches = |c: char| is_word(c) || "'\"\\".contains(c);
                if self.last[1].is_some_and(touches) || behind.starts_with(touches) {
                    return place("directly beside a word or a quote");
                }
                self.any = true;
                self.last = [None, Some('\'')];
                Ok(literal(value, &text))
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns a value as a literal; objects and arrays as the text of their JSON.
fn literal(value: &BoundValue<'_>, text: &str) -> String {
    let is_json =
        matches!(value, BoundValue::Json { json, .. } if !json.trim_start().starts_with('"'));
    match text {
        "null" if is_json => "NULL".to_owned(),
        "true" if is_json => "TRUE".to_owned(),
        "false" if is_json => "FALSE".to_owned(),
        // After a minus, another would begin a comment.
        _ if is_json && crate::json::is_number(text) && text.starts_with('-') => {
            format!("({text})")
        }
        _ if is_json && crate::json::is_number(text) => text.to_owned(),
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}
