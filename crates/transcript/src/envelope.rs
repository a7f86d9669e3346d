//! Everything around the messages of a conversation, verbatim.

use crate::format::Format;
use crate::object::{Object, push_string};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The exact text of a conversation except for its messages: what is before the first, between them
/// and after the last. With the messages it gives the original, byte for byte.
///
/// It can be kept in a store (it serialises), and gives access to the other keys of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    format: Format,
    before: String,
    between: Between,
    after: String,
}

/// The text between neighbouring messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Between {
    /// The same everywhere.
    Same(String),
    /// A different text each time.
    Each(Vec<String>),
}

impl Default for Envelope {
    /// Returns the envelope of a line of foldback JSON Lines that holds nothing but messages.
    fn default() -> Self {
        Self {
            format: Format::FoldbackJsonLines,
            before: "{\"messages\":[".to_owned(),
            between: Between::Same(",".to_owned()),
            after: "]}".to_owned(),
        }
    }
}

impl Envelope {
    /// Takes the text around `messages` in `text`. The messages are slices of `text`, in order;
    /// `array` is the slice that holds them all, including its brackets.
    pub(crate) fn around(format: Format, text: &str, array: &str, messages: &[&str]) -> Self {
        let at = |slice: &str| (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let cut = |from: usize, to: usize| text.get(from..to).unwrap_or("").to_owned();
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            let inside = at(array) + 1;
            let (before, after) = (cut(0, inside), cut(inside, text.len()));
            return Self { format, before, between: Between::Same(",".to_owned()), after };
        };
        let gaps = messages.windows(2).map(|pair| match pair {
            [left, right] => text.get(at(left) + left.len()..at(right)).unwrap_or(","),
            _ => ",",
        });
        let usual = gaps.clone().next().unwrap_or(",");
        let between = if gaps.clone().all(|gap| gap == usual) {
            Between::Same(usual.to_owned())
        } else {
            Between::Each(gaps.map(str::to_owned).collect())
        };
        let (before, after) = (cut(0, at(first)), cut(at(last) + last.len(), text.len()));
        Self { format, before, between, after }
    }

    /// Returns the envelope of a conversation that was converted from another format. `after` is
    /// the text after the messages, which holds what they do not: `],"source":{..}}`.
    pub(crate) fn converted(format: Format, id: Option<&str>, after: String) -> Self {
        let mut before = String::from("{");
        if let Some(id) = id {
            before.push_str("\"id\":");
            push_string(id, &mut before);
            before.push(',');
        }
        before.push_str("\"messages\":[");
        Self { format, before, between: Between::Same(",".to_owned()), after }
    }

    /// Returns the format of the conversation's source.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the exact JSON of another key of the conversation (`boundaries`, `qa`, `tools`,
    /// ...); the last value of a repeated key. `None` if there is no such key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        let text = self.without_messages();
        let fields: Object<'_> = serde_json::from_str(&text).ok()?;
        fields.get(key).map(|value| value.get().to_owned())
    }

    /// Returns the keys of the conversation and their exact values, in order, including `messages`
    /// with an empty list. A bare array has only that one.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        let text = self.without_messages();
        match serde_json::from_str::<Object<'_>>(&text) {
            Ok(Object(fields)) => fields
                .into_iter()
                .map(|(key, value)| (key.into_owned(), value.get().to_owned()))
                .collect(),
            Err(_) => vec![("messages".to_owned(), "[]".to_owned())],
        }
    }

    /// Returns the same envelope with `change` applied to each of its texts; every text is a piece of the
    /// conversation's JSON.
    #[must_use]
    pub fn with_texts<'t>(&'t self, mut change: impl FnMut(&'t str) -> Cow<'t, str>) -> Self {
        let between = match &self.between {
            Between::Same(usual) => Between::Same(change(usual).into_owned()),
            Between::Each(gaps) => {
                Between::Each(gaps.iter().map(|gap| change(gap).into_owned()).collect())
            }
        };
        Self {
            format: self.format,
            before: change(&self.before).into_owned(),
            between,
            after: change(&self.after).into_owned(),
        }
    }

    /// Returns the original text, around these messages.
    pub(crate) fn wrap<'m>(&self, messages: impl Iterator<Item = &'m str>) -> String {
        let mut out = self.before.clone();
        for (i, message) in messages.enumerate() {
            if let Some(gap) = i.checked_sub(1) {
                out.push_str(match &self.between {
                    Between::Same(usual) => usual,
                    Between::Each(gaps) => gaps.get(gap).map_or(",", String::as_str),
                });
            }
            out.push_str(message);
        }
        out.push_str(&self.after);
        out
    }

    fn without_messages(&self) -> String {
        self.wrap(std::iter::empty())
    }
}
