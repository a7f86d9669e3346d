//! Finds the first difference between two JSON texts.

use foldback_core::Object;
use serde_json::value::RawValue;
use std::fmt;

/// The first difference between two JSON texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The path to it, such as `messages[2].content`.
    place: String,
    /// The content there in the first text, around the beginning of the difference.
    recorded: Option<String>,
    /// The same in the second text.
    asked: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
        let (recorded, asked) = (side(&self.recorded), side(&self.asked));
        write!(f, "at {}, {recorded} was recorded, and {asked} is asked", self.place)
    }
}

/// Returns `None` if nothing differs.
pub(super) fn difference(recorded: &RawValue, asked: &RawValue) -> Option<Difference> {
    find(String::new(), Some(recorded), Some(asked))
}

fn find(
    place: String,
    recorded: Option<&RawValue>,
    asked: Option<&RawValue>,
) -> Option<Difference> {
    if let (Some(a), Some(b)) = (recorded, asked) {
        if a.get() == b.get() {
            return None;
        }
        if let (Some(a), Some(b)) = (Object::of(a), Object::of(b)) {
            let keys = a.0.iter().map(|(key, _)| key);
            let added = b.0.iter().map(|(key, _)| key).filter(|key| !a.has(key));
            let at = |key: &str| match place.as_str() {
                "" => key.to_owned(),
                place => format!("{place}.{key}"),
            };
            // Objects that differ only in the order of their keys are the same.
            return keys.chain(added).find_map(|key| find(at(key), a.get(key), b.get(key)));
        }
        if let (Some(a), Some(b)) = (Object::array_of(a), Object::array_of(b)) {
            let at =
                |at: usize| find(format!("{place}[{at}]"), a.get(at).copied(), b.get(at).copied());
            return (0..a.len().max(b.len())).find_map(at);
        }
    }
    let (a, b) = (recorded.map(RawValue::get), asked.map(RawValue::get));
    let same =
        a.zip(b).map_or(0, |(a, b)| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count());
    let excerpt = |text: &str| excerpt(text, same);
    Some(Difference { place, recorded: a.map(excerpt), asked: b.map(excerpt) })
}

/// The number of characters shown before a difference, and from it on.
const AROUND: (usize, usize) = (20, 60);

/// Returns a text around its character `at`.
fn excerpt(text: &str, at: usize) -> String {
    let from = at.saturating_sub(AROUND.0);
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(AROUND.0 + AROUND.1).collect();
    let begin = if from > 0 { "…" } else { "" };
    let end = if rest.next().is_some() { "…" } else { "" };
    format!("{begin}{shown}{end}")
}
