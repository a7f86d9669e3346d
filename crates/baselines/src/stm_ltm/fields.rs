//! The fields of a scene's schema: found in what was said, and kept by every summary.

use crate::note::{Note, NoteKind, excerpt};
use foldback_core::TokenCounter;

/// The value shown for a field that was never seen.
const NOT_FOUND: &str = "(not found)";

/// The maximum number of tokens in a value.
const VALUE_TOKENS: usize = 60;

/// Returns the fields found in `texts`, with the latest value of each, in the order of the schema.
pub(crate) fn find<'a>(
    schema: &[String],
    texts: impl IntoIterator<Item = &'a str>,
    counter: &dyn TokenCounter,
) -> Vec<Note> {
    let mut latest: Vec<Option<&str>> = vec![None; schema.len()];
    for line in texts.into_iter().flat_map(str::lines) {
        for (field, slot) in schema.iter().zip(&mut latest) {
            *slot = value(line, field).or(*slot);
        }
    }
    let found = schema.iter().zip(latest).filter_map(|(field, value)| Some((field, value?)));
    found.map(|(field, value)| note(field, &excerpt(value, VALUE_TOKENS, counter))).collect()
}

/// Returns one note for each field: its latest value in `notes`, or that it was not found.
pub(crate) fn latest(schema: &[String], notes: &[Note]) -> Vec<Note> {
    let of = |field: &String| {
        let is_it =
            |note: &&Note| note.kind == NoteKind::Field && value(&note.text, field).is_some();
        notes.iter().rev().find(is_it).cloned().unwrap_or_else(|| note(field, NOT_FOUND))
    };
    schema.iter().map(of).collect()
}

fn note(field: &str, value: &str) -> Note {
    Note { kind: NoteKind::Field, of: None, text: format!("{field}: {value}") }
}

/// Returns the value that a line gives to a field: `field: value`, also as a list entry, in bold, as
/// JSON, with a full-width colon or with an equals sign.
fn value<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let is_mark = |c: char| c.is_whitespace() || "\"'`*-#>•".contains(c);
    let line = line.trim_start_matches(is_mark);
    let (name, rest) = line.split_at_checked(field.len())?;
    if !name.eq_ignore_ascii_case(field) {
        return None;
    }
    let rest = rest.trim_start_matches(|c: char| is_mark(c) && c != '-');
    let value = rest.strip_prefix([':', '：', '='])?;
    let is_end = |c: char| c.is_whitespace() || "\"'`*,".contains(c);
    let value = value.trim_matches(is_end);
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_however_it_is_written() {
        for (line, expected) in [
            ("title: Locks of the canal", Some("Locks of the canal")),
            ("- **Title**: Locks", Some("Locks")),
            ("  \"title\": \"Locks\",", Some("Locks")),
            ("TITLE = a = b", Some("a = b")),
            ("title：船闸", Some("船闸")),
            ("title:", None),
            ("titles: x", None),
            ("the title: x", None),
            ("title", None),
            ("tit", None),
            ("船闸", None),
        ] {
            assert_eq!(value(line, "title"), expected, "{line}");
        }
        assert_eq!(value("布局：两栏", "布局"), Some("两栏"));
    }
}
