//! Hands stored contents to tools: checked, bounded, and never through the conversation.

use crate::Error;
use crate::error::Failure;
use crate::memory::Shared;
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::{HandOver, HandOverError, PayloadRef, Reference};
use foldback_kv::Todo;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The contents that one todo may hand to tools: its own blocks and payloads, and what was granted to it.
pub(crate) struct TodoHandOver {
    pub(crate) memory: Arc<Shared>,
    pub(crate) todo: Todo,
}

/// The end of every refusal.
const NEXT: &str = "Use a reference as it was shown; search_block and list_blocks show them.";

impl HandOver for TodoHandOver {
    fn hand_over(&self, asked: &str, most: u64, out: &mut dyn Write) -> Result<u64, HandOverError> {
        let Self { memory, todo } = self;
        let asked = asked.trim();
        let shown = shortened(asked);
        let (name, lines) = parts_of(asked).ok_or_else(|| {
            HandOverError::Mistake(format!(
                "{shown:?} names no lines; give store://2-k4qd#lines=10-40."
            ))
        })?;
        let reference = Reference::parse_in(todo.id(), name).map_err(|_| {
            HandOverError::Mistake(format!(
                "A stored part (store://<n>-<check>) or a block (b_<todo>_<nnn>) is expected, not {shown:?}. {NEXT}"
            ))
        })?;
        // Within the same todo a wrong check has an error of its own, so that a slip can be corrected.
        if let Reference::Payload { n, check, todo: of } = &reference
            && of == todo.id()
            && let Err(error) = memory.payloads.resolve(todo, &PayloadRef::local(*n, *check))
        {
            return Err(trouble_with(&shown, error.into()));
        }
        let size = memory.size_of(todo, &reference);
        let size = size.map_err(|error| trouble_with(&shown, error))?;
        let mut out = Part { out, left: most, written: 0, is_full: false, lines, line: 1 };
        // The size of a range of lines is not known before they are read.
        out.is_full = out.lines.is_none() && size > most;
        let noted = memory.note_references(
            todo.id(),
            "hand_over",
            std::slice::from_ref(&reference),
            !out.is_full,
        );
        noted.map_err(|error| trouble_with(&shown, error))?;
        if !out.is_full {
            match memory.write_reference(todo, &reference, &mut out) {
                Ok(_) => return Ok(out.written),
                Err(_) if out.is_full => {}
                Err(error) => return Err(trouble_with(&shown, error)),
            }
        }
        Err(HandOverError::Mistake(format!(
            "{shown} has more than the {} KiB that this call may be handed; give some of its lines, as \
             in store://2-k4qd#lines=10-40.",
            most >> 10
        )))
    }
}

/// The lines of a text that are handed over, from 1 on.
type Lines = RangeInclusive<u64>;

/// Splits a reference from the lines asked of it; `None` if they are not lines.
fn parts_of(asked: &str) -> Option<(&str, Option<Lines>)> {
    let Some((name, lines)) = asked.split_once('#') else { return Some((asked, None)) };
    let (first, last) = lines.strip_prefix("lines=")?.split_once('-')?;
    let first: u64 = first.parse().ok().filter(|first| *first > 0)?;
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    (first <= last).then_some((name, Some(first..=last)))
}

/// A writer that accepts some lines, or all, up to a number of bytes.
struct Part<'w> {
    out: &'w mut dyn Write,
    left: u64,
    written: u64,
    /// Whether there was more than it accepts.
    is_full: bool,
    lines: Option<Lines>,
    /// The number of the line that begins or continues next.
    line: u64,
}

impl Write for Part<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(lines) = self.lines.clone() else {
            self.take(bytes)?;
            return Ok(bytes.len());
        };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if lines.contains(&self.line) {
                self.take(piece)?;
            }
            self.line += u64::from(piece.ends_with(b"\n"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Part<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let size = bytes.len() as u64;
        self.is_full = size > self.left;
        if self.is_full {
            return Err(io::Error::other("there is no room left"));
        }
        self.out.write_all(bytes)?;
        self.left -= size;
        self.written += size;
        Ok(())
    }
}

/// Turns a mistake of the model, or an error of a single block or payload, into a sentence for the model.
fn trouble_with(asked: &str, error: Error) -> HandOverError {
    let what = match error.failure() {
        Failure::NoReference { .. } | Failure::Payloads(PayloadError::NotFound { .. }) => {
            format!("Nothing is stored under {asked:?} in this task. {NEXT}")
        }
        Failure::Payloads(PayloadError::WrongCheck { meant, .. }) => {
            format!("{asked} does not exist: part {} of this task is {meant}.", meant.n)
        }
        Failure::Payloads(PayloadError::Corrupt { .. })
        | Failure::Blocks(BlockError::Corrupt { .. })
        | Failure::Damaged { .. } => {
            format!("{asked} is damaged and cannot be handed over. Others can be.")
        }
        _ => return HandOverError::Context(error.into()),
    };
    HandOverError::Mistake(what)
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    if short.len() < text.len() && short.chars().count() == 80 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_quoted_in_short() {
        assert_eq!(shortened(&"长".repeat(100)).chars().count(), 81);
        assert_eq!(shortened("store://1-abcd"), "store://1-abcd");
    }

    #[test]
    fn lines_stand_behind_a_reference() {
        assert_eq!(parts_of("store://1-abcd"), Some(("store://1-abcd", None)));
        assert_eq!(parts_of("b_001#lines=3-7"), Some(("b_001", Some(3..=7))));
        assert_eq!(parts_of("b_001#lines=3-"), Some(("b_001", Some(3..=u64::MAX))));
        for wrong in
            ["#", "#3-7", "#lines=", "#lines=0-3", "#lines=7-3", "#lines=三-七", "#lines=3"]
        {
            assert_eq!(parts_of(&format!("b_001{wrong}")), None, "{wrong}");
        }
    }

    #[test]
    fn lines_are_counted_across_writes() {
        let mut text = Vec::new();
        let mut part = Part {
            out: &mut text,
            left: 100,
            written: 0,
            is_full: false,
            lines: Some(2..=3),
            line: 1,
        };
        for piece in ["一\n二", "二\n\n四\n", "五"] {
            part.write_all(piece.as_bytes()).unwrap();
        }
        assert_eq!(part.written, 8);
        assert_eq!(text, "二二\n\n".as_bytes());
    }
}
