//! Python.

use super::Refusal;
use crate::bind::BoundValue;
use foldback_core::decode_literal;

/// The reader's state in Python source.
#[derive(Debug, Default)]
pub(crate) struct Code {
    state: State,
    /// The letters directly before: perhaps the prefix of a string.
    word: String,
    /// The character directly before.
    last: Option<char>,
    /// Whether anything but white space was passed.
    any: bool,
    /// The line, counted from 0.
    line: usize,
    /// The text of a comment that may declare the file's encoding: a comment in the first two lines.
    comment: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Code,
    Comment,
    Literal(Literal),
    /// Nothing more can be inserted, for this reason.
    Lost(&'static str),
}

/// An open string literal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Literal {
    quote: char,
    is_triple: bool,
    /// Raw or bytes: escapes do not work, or not for every character.
    is_plain_only: bool,
    is_format: bool,
    /// The number of open braces in an f-string.
    depth: usize,
    /// The quote of a string inside such braces.
    nested: Option<char>,
    escaped: bool,
}

const UNCERTAIN: &str = "after a string whose end is not certain";
const INSTEAD: &str = "where a value is allowed, or in a plain string literal";

impl Code {
    pub(super) fn pass(&mut self, code: &str) {
        let chars: Vec<char> = code.chars().collect();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            let rest = &chars[at..];
            at += match self.state {
                State::Lost(_) => break,
                State::Comment => {
                    self.pass_comment(c);
                    1
                }
                State::Code => self.pass_code(rest),
                State::Literal(literal) => self.pass_literal(literal, rest),
            };
            self.any |= !c.is_whitespace();
            self.line += usize::from(is_line_end(c) && !matches!(rest, ['\r', '\n', ..]));
            let is_word = c.is_alphanumeric() || c == '_';
            if is_word { self.word.push(c) } else { self.word.clear() }
        }
        if let Some(c) = chars.last() {
            self.last = Some(*c);
        }
    }

    fn pass_comment(&mut self, c: char) {
        // The lines in which a file may declare its encoding.
        const FIRST_LINES: usize = 2;
        if !is_line_end(c) {
            if self.line < FIRST_LINES {
                self.comment.push(c);
            }
            return;
        }
        let comment = std::mem::take(&mut self.comment);
        self.state = if is_foreign(&comment) {
            State::Lost("in a file whose encoding is not UTF-8")
        } else {
            State::Code
        };
    }

    /// Advances through code and returns the number of characters.
    fn pass_code(&mut self, rest: &[char]) -> usize {
        let quote = match rest {
            ['#', ..] => {
                self.state = State::Comment;
                return 1;
            }
            [quote @ ('"' | '\''), ..] => *quote,
            _ => return 1,
        };
        let prefix = self.word.to_ascii_lowercase();
        let is_prefix = prefix.len() <= 2 && prefix.chars().all(|c| "rbuft".contains(c));
        let has = |c| is_prefix && prefix.contains(c);
        let run = rest.iter().take_while(|c| **c == quote).count();
        // Two quotes are an empty string; how six or more pair up is not examined.
        if run == 2 {
            return 2;
        }
        if run > 3 {
            self.state = State::Lost(UNCERTAIN);
            return run;
        }
        self.state = State::Literal(Literal {
            quote,
            is_triple: run == 3,
            is_plain_only: has('r') || has('b'),
            is_format: has('f') || has('t'),
            depth: 0,
            nested: None,
            escaped: false,
        });
        run
    }

    /// Advances through a literal and returns the number of characters.
    fn pass_literal(&mut self, mut literal: Literal, rest: &[char]) -> usize {
        let Some(&c) = rest.first() else { return 1 };
        let run = rest.iter().take_while(|other| **other == literal.quote).count();
        let mut passed = 1;
        if literal.escaped {
            literal.escaped = false;
            // A backslash consumes a whole line end.
            if let ['\r', '\n', ..] = rest {
                passed = 2;
            }
        } else if let Some(nested) = literal.nested {
            if c == nested {
                literal.nested = None;
            }
        } else if c == '\\' {
            literal.escaped = true;
        } else if literal.is_triple && run >= 3 {
            self.state = State::Code;
            return 3;
        } else if !literal.is_triple && c == literal.quote {
            // In an f-string's braces, newer Python versions begin a string here and older ones end
            // one.
            self.state = if literal.depth == 0 { State::Code } else { State::Lost(UNCERTAIN) };
            return 1;
        } else if !literal.is_triple && is_line_end(c) {
            self.state = State::Code;
            return 1;
        } else if literal.is_format {
            match rest {
                ['{', '{', ..] | ['}', '}', ..] if literal.depth == 0 => passed = 2,
                ['{', ..] => literal.depth += 1,
                ['}', ..] => literal.depth = literal.depth.saturating_sub(1),
                [quote @ ('"' | '\''), ..] if literal.depth > 0 => literal.nested = Some(*quote),
                _ => {}
            }
        }
        self.state = State::Literal(literal);
        passed
    }

    pub(super) fn encode(
        &mut self,
        value: &BoundValue<'_>,
        behind: &str,
    ) -> Result<String, Refusal> {
        let place = |place| Err(Refusal::Place { place, instead: INSTEAD });
        match self.state {
            State::Lost(why) => place(why),
            // A comment in the first lines may declare the encoding.
            State::Comment => place("in a comment"),
            State::Literal(at) if at.depth > 0 => place("inside the braces of an f-string"),
            State::Literal(at) if at.escaped => place("after a backslash"),
            State::Literal(at) => {
                let text = value.text();
                // With nothing between them, three quotes would meet.
                if text.is_empty() {
                    let meets = behind.chars().take_while(|c| *c == at.quote).count() > 1;
                    return if meets && !at.is_triple && self.last == Some(at.quote) {
                        Err(Refusal::Value { what: "nothing" })
                    } else {
                        Ok(String::new())
                    };
                }
                self.last = None;
                if !at.is_plain_only {
                    let mut out = String::new();
                    text.chars().for_each(|c| escape(c, at.is_format, &mut out));
                    return Ok(out);
                }
                let is_plain = |c: char| c.is_ascii_alphanumeric() || " _.,:/+-".contains(c);
                if text.chars().all(is_plain) {
                    return Ok(text.into_owned());
                }
                let what = "characters that a raw or bytes literal cannot escape";
                Err(Refusal::Value { what })
            }
            State::Code => {
                let touches = |c: char| c.is_alphanumeric() || "_'\"\\".contains(c);
                if !self.any && behind.is_empty() {
                    return Err(Refusal::Whole);
                }
                if self.last.is_some_and(touches) || behind.starts_with(touches) {
                    return place("directly beside a word or a quote");
                }
                self.any = true;
                self.last = Some('\'');
                self.word.clear();
                let literal = literal(value);
                // `-5 ** 2` and `54.real` would be parsed differently.
                let is_number = literal.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                let is_open = is_number && (literal.starts_with('-') || behind.starts_with('.'));
                Ok(if is_open { format!("({literal})") } else { literal })
            }
        }
    }
}

/// The characters that end a line of Python, whatever the platform. A form feed is white space.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

/// Returns whether a comment declares an encoding other than UTF-8 for its file. A literal could then
/// end at characters other than the ones written here.
fn is_foreign(comment: &str) -> bool {
    comment.match_indices("coding").any(|(at, word)| {
        let Some(name) = comment[at + word.len()..].strip_prefix([':', '=']) else { return false };
        let name = name.trim_start_matches([' ', '\t']);
        let length = name.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
        let name = name[..length.unwrap_or(name.len())].to_ascii_lowercase().replace('_', "-");
        !matches!(name.as_str(), "" | "utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii")
    })
}

/// Returns a value as a literal on one line.
fn literal(value: &BoundValue<'_>) -> String {
    let json = match value {
        BoundValue::Text(text) => return quote(text),
        BoundValue::Json { json, .. } => {
            let mut compact = String::with_capacity(json.len());
            crate::bind::compact_into(json, &mut compact);
            compact
        }
    };
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => {
                let length = string_length(rest);
                out.push_str(&quote(&decode_literal(&rest[1..length - 1])));
                length
            }
            't' | 'f' | 'n' => {
                let (json, python) = match c {
                    't' => ("true", "True"),
                    'f' => ("false", "False"),
                    _ => ("null", "None"),
                };
                out.push_str(python);
                json.len()
            }
            _ => {
                // Digits, signs, exponents and brackets mean the same in both languages.
                let length = rest.find(['"', 't', 'f', 'n']).unwrap_or(rest.len());
                out.push_str(&rest[..length]);
                length
            }
        };
        rest = rest.get(length..).unwrap_or("");
    }
    out
}

/// Returns the length in bytes of the JSON string at the beginning of a text, quotes included.
fn string_length(json: &str) -> usize {
    let mut escaped = false;
    let end = json.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |(at, _)| at + 1).max(2)
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    text.chars().for_each(|c| escape(c, false, &mut out));
    out.push('\'');
    out
}

/// Writes a character inside a literal of any quotes. Invisible characters that could hide code are
/// escaped too.
fn escape(c: char, is_format: bool, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\'' => out.push_str("\\'"),
        '"' => out.push_str("\\\""),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '{' if is_format => out.push_str("{{"),
        '}' if is_format => out.push_str("}}"),
        '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        '\u{80}'..='\u{9f}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        _ => out.push(c),
    }
}
