//! The output, compared with what a row says.

use super::page::{Place, Row};
use super::room::texts;
use crate::shell::Ran;
use serde_json::Value;
use std::fmt;

/// The output of commands, and the requests to the model.
#[derive(Default)]
pub(super) struct Seen {
    printed: String,
    requests: Vec<String>,
    /// Those that are not 0.
    codes: Vec<i32>,
}

impl Seen {
    pub(super) fn printed(&mut self, line: &str, ran: &Ran) {
        let stdout = String::from_utf8_lossy(&ran.stdout);
        self.printed.push_str(&format!("$ {line}\n{stdout}\n{}\n", ran.stderr));
        self.codes.extend(Some(ran.code).filter(|code| *code != 0));
    }

    pub(super) fn asked(&mut self, head: &str, body: &Value) {
        self.requests.push(format!("{head}{body}\n{}", texts(body)));
    }

    /// What the row says but is not so.
    pub(super) fn faults(&self, row: &Row) -> Vec<String> {
        let mut faults = Vec::new();
        if self.codes != row.codes {
            faults.push(format!(
                "exit codes beside 0 are {:?}, expected {:?}",
                self.codes, row.codes
            ));
        }
        // A command is repeated above its output, and must not count as output.
        let lines = self.printed.lines().filter(|line| !line.starts_with("$ foldback "));
        let printed = even(&lines.collect::<Vec<_>>().join("\n"));
        let requests: Vec<String> = self.requests.iter().map(|it| even(it)).collect();
        for sight in &row.seen {
            let text = even(&sight.text);
            let wrong = match sight.place {
                Place::Printed if !holds(&printed, &text) => "is not printed",
                Place::NotPrinted if holds(&printed, &text) => "is printed",
                Place::Asked if !requests.iter().any(|it| holds(it, &text)) => "is in no request",
                Place::NotAsked if requests.last().is_none_or(|it| holds(it, &text)) => {
                    "is in the last request, or there is none"
                }
                _ => continue,
            };
            faults.push(format!("`{}` {wrong}", sight.text));
        }
        if let Some(last) = faults.last_mut() {
            last.push_str(&format!("\n{self}"));
        }
        faults
            .iter()
            .map(|it| format!("line {}, mechanism {}: {it}", row.line, row.number))
            .collect()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.printed)?;
        self.requests
            .iter()
            .enumerate()
            .try_for_each(|(n, it)| writeln!(f, "request {}: {it}", n + 1))
    }
}

/// Lines are broken at the end of a terminal: every space is one space.
fn even(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the parts of a pattern, between `…`, occur in the text in this order.
fn holds(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    pattern.split('…').map(str::trim).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn a_gap_holds_anything_but_keeps_the_order() {
    assert!(holds("b_trip_001 messages 0-5", "b_… messages"));
    assert!(!holds("messages of b_trip_001", "b_… messages"));
}
