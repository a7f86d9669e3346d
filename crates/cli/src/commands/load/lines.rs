//! Lines of a payload, as `--lines` takes them.

use foldback_backend_store::Position;
use std::str::FromStr;

/// Lines of a payload, first and last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: Position,
    pub(super) last: u64,
}

impl FromStr for Lines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first = first.parse::<Position>().ok();
        let last = if last.is_empty() { Some(u64::MAX) } else { last.parse().ok() };
        first
            .zip(last)
            .map(|(first, last)| Self { first, last })
            .filter(|lines| lines.first.line > 0 && lines.first.line <= lines.last)
            .ok_or_else(|| "expected lines such as 10-20, 10- or 10, counted from 1".to_owned())
    }
}

/// Returns a reference, and the lines that it names behind it, if any.
pub(super) fn lines_of(reference: &str) -> Result<(&str, Option<Lines>), String> {
    match reference.split_once("#lines=") {
        Some((reference, lines)) => Ok((reference, Some(lines.parse()?))),
        None => Ok((reference, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_three_forms() {
        for (text, first, last) in [("3-9", 3, 9), ("3-", 3, u64::MAX), ("3", 3, 3)] {
            assert_eq!(text.parse(), Ok(Lines { first: Position::from(first), last }));
        }
        let inside = Position { line: 3, skip: 4096 };
        assert_eq!("3+4096-9".parse(), Ok(Lines { first: inside, last: 9 }));
        for bad in ["", "-", "0", "0-3", "9-3", "-3", "a-b", "3-4-5", "99999999999999999999"] {
            assert!(bad.parse::<Lines>().is_err(), "{bad}");
        }
    }
}
