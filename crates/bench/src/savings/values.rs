//! Searches a text for many values at once.

use crate::BenchError;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use foldback_core::{Content, Escape, Message, Part, escape_into};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// A value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Value {
    /// A string with its escapes decoded, or a number as it is written.
    pub(crate) text: String,
    /// Whether it is a number.
    pub(crate) is_number: bool,
}

/// The values in a text, by number, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Vec<u32>);

impl Held {
    /// Returns whether a value is among them.
    pub(crate) fn has(&self, value: u32) -> bool {
        self.0.binary_search(&value).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.extend(&other.0);
        self.settle();
    }

    fn settle(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }
}

/// The number of bytes of a value that are searched for; at a match the rest is compared. An automaton
/// takes some hundred bytes for each byte that it searches for.
const HEAD: usize = 64;

/// Values to search for. A string is found wherever it occurs, as it is or as JSON writes it; a number
/// only if it is not part of a longer one.
pub(crate) struct Values {
    finder: Option<AhoCorasick>,
    /// The value whose head is each pattern of the finder.
    of: Vec<Pattern>,
    values: Vec<Value>,
    /// Keyed by the address in memory, which belongs to one message as long as it is held here.
    shared: FxHashMap<usize, (Arc<Message>, Held)>,
}

/// A way to write a value.
struct Pattern {
    /// The number of the value.
    value: u32,
    /// What follows the first [`HEAD`] bytes.
    rest: Box<[u8]>,
}

impl Values {
    /// Returns values numbered from 0.
    ///
    /// # Errors
    /// When there are too many to search for at once.
    pub(crate) fn new(values: Vec<Value>) -> Result<Self, BenchError> {
        let (mut heads, mut of) = (Vec::new(), Vec::new());
        for (value, text) in (0..).zip(&values) {
            for form in forms(text) {
                let mut head = form.into_bytes();
                let rest = head.split_off(head.len().min(HEAD)).into_boxed_slice();
                heads.push(head);
                of.push(Pattern { value, rest });
            }
        }
        let mut builder = AhoCorasickBuilder::new();
        builder.match_kind(MatchKind::Standard);
        let finder = match heads.is_empty() {
            true => None,
            false => Some(builder.build(&heads).map_err(|error| {
                let many = values.len();
                BenchError::Input(format!(
                    "the {many} values in the arguments of one conversation are too many to \
                     search for at once: {error}"
                ))
            })?),
        };
        Ok(Self { finder, of, values, shared: FxHashMap::default() })
    }

    pub(crate) fn get(&self, value: u32) -> Option<&Value> {
        self.values.get(value as usize)
    }

    /// Returns the values in a text.
    pub(crate) fn in_text(&self, text: &str) -> Held {
        let mut held = Held::default();
        self.find(text, &mut held);
        held.settle();
        held
    }

    /// Returns the values in the texts and the arguments of a message.
    pub(crate) fn in_message(&self, message: &Message) -> Held {
        let mut held = Held::default();
        self.find_in(message, &mut held);
        held.settle();
        held
    }

    /// Returns the same for a message that prompts share.
    pub(crate) fn in_shared(&mut self, message: &Arc<Message>) -> &Held {
        let place = Arc::as_ptr(message) as usize;
        if !self.shared.contains_key(&place) {
            let held = self.in_message(message);
            self.shared.insert(place, (Arc::clone(message), held));
        }
        &self.shared.entry(place).or_insert_with(|| (Arc::clone(message), Held::default())).1
    }

    fn find_in(&self, message: &Message, held: &mut Held) {
        match message.content() {
            Content::Empty => {}
            Content::Text(text) => self.find(text, held),
            Content::Parts(parts) => {
                for part in parts {
                    if let Part::Text(text) = part {
                        self.find(text, held);
                    }
                }
            }
        }
        for call in message.tool_calls() {
            self.find(&call.arguments, held);
        }
    }

    fn find(&self, text: &str, held: &mut Held) {
        let Some(finder) = &self.finder else { return };
        // The last value found: runs of one value are long.
        let mut last = None;
        for found in finder.find_overlapping_iter(text) {
            let Some(Pattern { value, rest }) = self.of.get(found.pattern().as_usize()) else {
                continue;
            };
            let value = *value;
            let behind = text.as_bytes().get(found.end()..).unwrap_or_default();
            if last == Some(value) || !behind.starts_with(rest) {
                continue;
            }
            let is_number = self.get(value).is_some_and(|value| value.is_number);
            if is_number && !stands_alone(text, found.start()..found.end() + rest.len()) {
                continue;
            }
            last = Some(value);
            held.0.push(value);
        }
    }
}

/// Returns the ways in which a value may be written: as it is, or inside a JSON string, where writers
/// differ in what they escape.
pub(super) fn forms(value: &Value) -> Vec<String> {
    let mut forms = vec![value.text.clone()];
    if !value.is_number {
        for escape in Escape::ALL {
            let mut escaped = String::new();
            escape_into(&value.text, escape, &mut escaped);
            if !forms.contains(&escaped) {
                forms.push(escaped);
            }
        }
    }
    forms
}

/// Returns whether the text in `range` is not part of a longer number.
fn stands_alone(text: &str, range: Range<usize>) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut before = text.get(..range.start).unwrap_or_default().chars().rev();
    let mut after = text.get(range.end..).unwrap_or_default().chars();
    let (left, right) = (before.next(), after.next());
    let joins =
        |c: Option<char>, beyond: Option<char>| is_digit(c) || (c == Some('.') && is_digit(beyond));
    !joins(left, before.next()) && !joins(right, after.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, is_number: bool, text: &str, expected: bool) {
        let values = Values::new(vec![Value { text: value.to_owned(), is_number }]).unwrap();
        assert_eq!(values.in_text(text).has(0), expected, "{value:?} in {text:?}");
    }

    #[test]
    fn a_number_is_found_between_borders_only() {
        for (text, expected) in [
            ("room 1234.", true),
            ("1234", true),
            ("[1234,5]", true),
            ("no. 1234, please", true),
            ("12345", false),
            ("01234", false),
            ("1234.5", false),
            ("0.1234", false),
            ("12345 and 1234", true),
            ("第1234号", true),
        ] {
            check("1234", true, text, expected);
        }
        check("12.50", true, "a total of $12.50.", true);
        check("12.50", true, "a total of 112.50", false);
        // A string is not a number, whatever it consists of.
        check("1234", false, "12345", true);
    }

    #[test]
    fn a_string_is_found_as_it_is_and_as_json_writes_it() {
        check("say \"hi\"\n", false, r#"{"command": "say \"hi\"\n"}"#, true);
        check("大阪 城", false, r#"{"city": "\u5927\u962a \u57ce"}"#, true);
        check("大阪城", false, "我们去大阪城公园", true);
        check("大阪城", false, "我们去大阪", false);
        check("src/app.rs", false, "edit src/app.rs:12", true);
    }

    #[test]
    fn values_inside_each_other_are_all_found() {
        let value = |text: &str| Value { text: text.to_owned(), is_number: false };
        let values = vec![value("app.rs"), value("src/app.rs"), value("main")];
        let values = Values::new(values).unwrap();
        let held: Vec<u32> = values.in_text("src/app.rs src/app.rs").iter().collect();
        assert_eq!(held, [0, 1]);
    }

    /// Long values that differ only after the part that the finder searches for; a character may span
    /// its end.
    #[test]
    fn long_values_are_compared_whole() {
        let start = format!("{}船", "s".repeat(HEAD - 1));
        let [one, two] = ["one", "two"].map(|end| format!("{start}{end}\n"));
        check(&one, false, &format!("x{one}x"), true);
        check(&one, false, &format!("x{two}x"), false);
        check(&one, false, one.trim_end(), false);
        check(&one, false, &format!("{{\"a\": \"{start}one\\n\"}}"), true);
        let digits = "7".repeat(HEAD + 9);
        check(&digits, true, &format!("{digits}, and"), true);
        check(&digits, true, &format!("{digits}7, and"), false);
        let value = |text: &String| Value { text: text.clone(), is_number: false };
        let values = Values::new(vec![value(&one), value(&two)]).unwrap();
        let held: Vec<u32> = values.in_text(&format!("{two}{one}{two}")).iter().collect();
        assert_eq!(held, [0, 1]);
    }

    /// The automaton holds only the heads, however long the values are.
    #[test]
    fn an_automaton_does_not_grow_with_the_length_of_values() {
        let finder = |len: usize| {
            let value =
                |n: usize| Value { text: format!("{n:04}{}", "v".repeat(len)), is_number: false };
            Values::new((0..50).map(value).collect()).unwrap().finder.unwrap().memory_usage()
        };
        assert_eq!(finder(HEAD), finder(40 * HEAD));
    }
}
