//! JSON objects and arrays, read one level deep.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The keys of an object and the exact text of each value, in order. A key that stands twice is
/// there twice.
pub(crate) struct Object<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The exact value of a key; of one that stands twice, the last.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, value)| *value)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The text of a key whose value is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(text)
    }

    /// The value of a key whose value is an object.
    pub(crate) fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key).and_then(object)
    }

    /// The values of a key whose value is an array.
    pub(crate) fn array(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(array)
    }
}

/// The text of a value that is a string; halves of surrogate pairs are replaced.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(foldback_core::decode_literal(inside))
}

/// The fields of a value that is an object.
pub(crate) fn object(value: &RawValue) -> Option<Object<'_>> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()).ok() } else { None }
}

/// The values of a value that is an array.
pub(crate) fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    if value.get().starts_with('[') { serde_json::from_str(value.get()).ok() } else { None }
}

/// Writes `text` as a JSON string behind what is in `out`.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    foldback_core::escape_into(text, foldback_core::Escape::Minimal, out);
    out.push('"');
}

/// Writes a JSON text on one line: a line break in JSON is never inside a string, so a space says
/// the same.
pub(crate) fn push_one_line(json: &str, out: &mut String) {
    for (i, part) in json.split(['\n', '\r']).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(part);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    fields.push((key, value));
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}
