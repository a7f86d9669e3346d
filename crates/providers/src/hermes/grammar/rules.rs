//! The rules of a grammar.

use std::collections::HashMap;
use std::fmt::Write;

/// Rules, under arbitrary names: the same rule is written only once.
#[derive(Default)]
pub(super) struct Rules {
    rules: Vec<(String, String)>,
    names: HashMap<String, String>,
    count: usize,
    /// The rule of any JSON value.
    pub(super) any: Option<String>,
}

impl Rules {
    /// Adds a rule with this body, and returns its name.
    pub(super) fn add(&mut self, body: String) -> String {
        if let Some(name) = self.names.get(&body) {
            return name.clone();
        }
        let name = self.name();
        self.names.insert(body.clone(), name.clone());
        self.define(&name, body);
        name
    }

    /// Reserves the name of a rule that is defined later, because it refers to itself.
    pub(super) fn name(&mut self) -> String {
        self.count += 1;
        format!("r{}", self.count)
    }

    pub(super) fn define(&mut self, name: &str, body: String) {
        self.rules.push((name.to_owned(), body));
    }

    /// Returns the whole grammar.
    pub(super) fn text(&self, root: &str) -> String {
        let mut text = format!("root ::= {root}\n");
        for (name, body) in &self.rules {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name} ::= {body}");
        }
        text
    }
}

/// Returns a literal.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
