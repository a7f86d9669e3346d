//! The shape of a JSON value and its first items.

use super::shorten;
use foldback_core::thousands;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// Returns the shape of the value, and its first items verbatim. `None` when it does not parse or
/// is too large to be worth it.
pub(super) fn shape(text: &str, fits: &dyn Fn(&str) -> bool) -> Option<String> {
    if text.len() <= 16 << 10 && fits(text.trim()) {
        return Some(text.trim().to_owned());
    }
    if text.len() > MOST {
        return None;
    }
    let root: &RawValue = serde_json::from_str(text).ok()?;
    // The deepest description that leaves room for an item.
    let items = items(root.get());
    let room = items.first().map(|(path, item)| format!("\n{path}: {}", shorten(item, ROOM)));
    let room = room.unwrap_or_default();
    let mut out = (1..=DEPTH)
        .rev()
        .map(|depth| describe(root.get(), depth))
        .find(|described| fits(&format!("{described}{room}")))
        .unwrap_or_else(|| describe(root.get(), 1));
    for (path, item) in items {
        let line = format!("\n{path}: {}", shorten(&item, ITEM));
        if !fits(&format!("{out}{line}")) {
            break;
        }
        out.push_str(&line);
    }
    Some(out)
}

/// The maximum size of a text that is parsed for a preview.
const MOST: usize = 16 << 20;
/// How deep the shape is described.
const DEPTH: usize = 4;
/// How many keys of one object are named.
const KEYS: usize = 24;
/// The description leaves room for this many bytes of an item.
const ROOM: usize = 60;
/// At most this many bytes of an item are shown.
const ITEM: usize = 300;

/// Describes one value in words: `array of 3 (object of 2 keys: a number, b string)`.
fn describe(raw: &str, depth: usize) -> String {
    match raw.as_bytes().first() {
        Some(b'{') => match serde_json::from_str::<Members<'_>>(raw) {
            Ok(members) => describe_object(&members, depth),
            Err(_) => "object".to_owned(),
        },
        Some(b'[') => match serde_json::from_str::<Items<'_>>(raw) {
            Ok(items) => match items.first.first() {
                Some(first) if depth > 1 && is_nested(first.get()) => {
                    let inside = describe(first.get(), depth - 1);
                    format!("array of {} ({inside})", thousands(items.count as u64))
                }
                Some(first) if depth > 1 && !is_nested(first.get()) && items.count > 1 => {
                    format!(
                        "array of {} {}s",
                        thousands(items.count as u64),
                        describe(first.get(), 0)
                    )
                }
                _ => format!("array of {}", thousands(items.count as u64)),
            },
            Err(_) => "array".to_owned(),
        },
        Some(b'"') if raw.len() > 200 => {
            format!("string of {} bytes", thousands(raw.len() as u64 - 2))
        }
        Some(b'"') => "string".to_owned(),
        Some(b't' | b'f') => "boolean".to_owned(),
        Some(b'n') => "null".to_owned(),
        _ => "number".to_owned(),
    }
}

fn describe_object(members: &Members<'_>, depth: usize) -> String {
    let count = match members.count {
        1 => "object of 1 key".to_owned(),
        count => format!("object of {} keys", thousands(count as u64)),
    };
    if depth == 0 || members.count == 0 {
        return count;
    }
    let mut named: Vec<String> = members
        .first
        .iter()
        .map(|(key, value)| format!("{} {}", shorten(key, 40), describe(value.get(), depth - 1)))
        .collect();
    if members.count > named.len() {
        named.push(format!("and {} more", thousands((members.count - named.len()) as u64)));
    }
    format!("{count}: {}", named.join(", "))
}

fn is_nested(raw: &str) -> bool {
    raw.starts_with(['{', '['])
}

/// Returns the first items of the array, or of the longest array among the members of the object;
/// for an object without an array, its first members.
fn items(raw: &str) -> Vec<(String, String)> {
    let of_array = |path: &str, items: &Items<'_>| {
        let paths = (0..).map(|i| format!("{path}[{i}]"));
        paths.zip(items.first.iter().map(|item| one_line(item.get()))).collect()
    };
    if let Ok(items) = serde_json::from_str::<Items<'_>>(raw) {
        return of_array("", &items);
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(raw) else { return Vec::new() };
    let arrays = members.first.iter().filter_map(|(key, value)| {
        let items = serde_json::from_str::<Items<'_>>(value.get()).ok()?;
        (!items.first.is_empty()).then_some((key, items))
    });
    // Of equally long arrays, the first.
    match arrays.reduce(|best, next| if next.1.count > best.1.count { next } else { best }) {
        Some((key, items)) => of_array(&shorten(key, 40), &items),
        None => members
            .first
            .iter()
            .map(|(key, value)| (shorten(key, 40).into_owned(), one_line(value.get())))
            .collect(),
    }
}

/// Returns the beginning of a value without its line breaks and indentation, which are white space
/// outside strings: a string has no raw line break.
fn one_line(raw: &str) -> String {
    raw.lines().take(60).map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The first members of an object, and how many there are.
struct Members<'a> {
    first: Vec<(String, &'a RawValue)>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Members { first: Vec::new(), count: 0 };
                while members.first.len() < KEYS {
                    let Some(member) = map.next_entry()? else { break };
                    members.first.push(member);
                    members.count += 1;
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    members.count += 1;
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

/// The first items of an array, and how many there are.
struct Items<'a> {
    first: Vec<&'a RawValue>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
                let mut items = Items { first: Vec::new(), count: 0 };
                while items.first.len() < 3 {
                    let Some(item) = seq.next_element()? else { break };
                    items.first.push(item);
                    items.count += 1;
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    items.count += 1;
                }
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Visit)
    }
}
