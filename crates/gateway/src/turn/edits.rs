//! A JSON text in which a few places change.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// A JSON text in which a few places change. Every other byte stays the same: a provider's cache compares bytes.
pub(super) struct Edits<'t> {
    text: &'t str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, changes: Vec::new() }
    }

    /// Replaces a part, which is a slice of this text.
    pub(super) fn replace(&mut self, part: &str, with: String) {
        self.replace_all(part, part, with);
    }

    /// Replaces everything from one part to another.
    pub(super) fn replace_all(&mut self, first: &str, last: &str, with: String) {
        self.changes.push((self.range(first).start..self.range(last).end, with));
    }

    /// Appends elements, separated by commas, to a list.
    pub(super) fn append(&mut self, list: &RawValue, elements: &str) {
        let inner = list.get().trim_start_matches('[').trim_end_matches(']');
        let comma = if inner.trim().is_empty() || elements.is_empty() { "" } else { "," };
        let end = self.range(list.get()).end.saturating_sub(1);
        self.changes.push((end..end, format!("{comma}{elements}")));
    }

    /// Sets a member of the object that has these members; a new member is added at the end.
    pub(super) fn set(&mut self, members: &Members<'t>, key: &str, value: &str) {
        if let Some(old) = members.get(key) {
            return self.replace(old.get(), value.to_owned());
        }
        let end = self.text.trim_end().len().saturating_sub(1);
        let is_first = members.is_empty() && self.changes.iter().all(|(at, _)| at.start != end);
        let comma = if is_first { "" } else { "," };
        self.changes.push((end..end, format!("{comma}\"{key}\":{value}")));
    }

    /// Returns the text with its changes. Changes at the same place are applied in the order in which they were made.
    pub(super) fn finish(mut self) -> String {
        self.changes.sort_by_key(|(at, _)| at.start);
        let (mut out, mut done) = (String::with_capacity(self.text.len()), 0);
        for (at, with) in self.changes {
            out.push_str(self.text.get(done..at.start).unwrap_or_default());
            out.push_str(&with);
            done = at.end;
        }
        out.push_str(self.text.get(done..).unwrap_or_default());
        out
    }

    /// Returns the place of a slice of the text.
    fn range(&self, part: &str) -> Range<usize> {
        let start = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        start..start + part.len()
    }
}

/// The members of an object, as they are written.
pub(super) type Members<'t> = BTreeMap<String, &'t RawValue>;

/// Returns the members of an object; `None` for anything else.
pub(super) fn members(text: &str) -> Option<Members<'_>> {
    serde_json::from_str(text).ok()
}

/// Returns the elements of a list; `None` for anything else.
pub(crate) fn elements(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// Returns the text that a JSON string holds; `None` for anything else.
pub(super) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::{Edits, elements, members};

    #[test]
    fn only_what_is_named_changes() {
        let text = "{ \"a\" : [ 1,2 ],\t\"b\":{},\"c\": \"港\" } ";
        let read = members(text).unwrap();
        let mut edits = Edits::new(text);
        edits.set(&read, "new", "7");
        edits.set(&read, "newer", "8");
        edits.append(read["a"], "3,4");
        edits.replace(read["c"].get(), "9".to_owned());
        let two = elements(read["a"].get()).unwrap()[1];
        edits.replace(two.get(), "5".to_owned());
        let expected = "{ \"a\" : [ 1,5 ,3,4],\t\"b\":{},\"c\": 9 ,\"new\":7,\"newer\":8} ";
        assert_eq!(edits.finish(), expected);
        let mut edits = Edits::new("{}");
        edits.set(&members("{}").unwrap(), "a", "[]");
        assert_eq!(edits.finish(), "{\"a\":[]}");
    }
}
