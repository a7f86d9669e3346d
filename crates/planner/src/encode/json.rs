//! JSON.

use crate::bind::BoundValue;
use foldback_core::{Escape, escape_into};

/// The reader's state in the JSON.
#[derive(Debug, Default)]
pub(crate) struct Code {
    in_string: bool,
    escaped: bool,
}

impl Code {
    pub(crate) fn is_in_string(&self) -> bool {
        self.in_string
    }

    pub(crate) fn pass(&mut self, code: &str) {
        for c in code.chars() {
            if self.in_string {
                self.in_string = c != '"' || self.escaped;
                self.escaped = c == '\\' && !self.escaped;
            } else {
                self.in_string = c == '"';
            }
        }
    }

    /// A value; inside a string, its text. Characters with a meaning in HTML and JavaScript are
    /// escaped.
    pub(super) fn encode(&mut self, value: &BoundValue<'_>) -> String {
        let mut out = String::new();
        if self.in_string {
            // A backslash before the reference takes the first character: so it gets a backslash of its
            // own.
            if self.escaped {
                out.push('\\');
                self.escaped = false;
            }
            escape_into(&value.text(), Escape::Html, &mut out);
            return out;
        }
        let mut json = String::new();
        value.write(&mut json);
        // Outside strings none of these characters occurs in JSON.
        for c in json.chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                _ => out.push(c),
            }
        }
        out
    }
}
