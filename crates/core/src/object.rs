//! JSON objects, read one level deep.

use crate::decode_literal;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, fmt};

/// The keys of a JSON object and the exact text of each value, in order. A repeated key is listed
/// each time.
///
/// ```
/// let object: foldback_core::Object<'_> = serde_json::from_str(r#"{"a": 1.50, "a": "b"}"#)?;
/// assert_eq!(object.0[0].1.get(), "1.50");
/// assert_eq!(object.text("a").as_deref(), Some("b"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Object<'a>(
    /// The keys, without their escapes, and the values.
    pub Vec<(Cow<'a, str>, &'a RawValue)>,
);

/// Up to this many keys are searched one by one.
const FEW_KEYS: usize = 16;

impl<'a> Object<'a> {
    /// Returns the exact value of a key; the last one if the key is repeated.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, value)| *value)
    }

    /// Returns whether the object has the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the text of a key whose value is a string; halves of surrogate pairs are replaced.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(Self::text_of)
    }

    /// Returns the value of a key whose value is an object.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key).and_then(Self::of)
    }

    /// Returns the values of a key whose value is an array.
    #[must_use]
    pub fn array(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(Self::array_of)
    }

    /// Returns the fields of a value that is an object.
    #[must_use]
    pub fn of(value: &'a RawValue) -> Option<Self> {
        if value.get().starts_with('{') { serde_json::from_str(value.get()).ok() } else { None }
    }

    /// Returns the values of a value that is an array.
    #[must_use]
    pub fn array_of(value: &'a RawValue) -> Option<Vec<&'a RawValue>> {
        if value.get().starts_with('[') { serde_json::from_str(value.get()).ok() } else { None }
    }

    /// Returns the text of a value that is a string; halves of surrogate pairs are replaced.
    #[must_use]
    pub fn text_of(value: &'a RawValue) -> Option<Cow<'a, str>> {
        let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
        Some(decode_literal(inside))
    }

    /// Returns the fields with each key once: a repeated key has its last value, at the place of
    /// its first.
    #[must_use]
    pub fn distinct(self) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        let mut fields: Vec<(Cow<'a, str>, &'a RawValue)> = Vec::with_capacity(self.0.len());
        // A large object is indexed by key: searching the list for each would take quadratic time.
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let is_large = self.0.len() > FEW_KEYS;
        for (key, value) in self.0 {
            let known = if is_large {
                places.get(&key).copied()
            } else {
                fields.iter().position(|(known, _)| *known == key)
            };
            if let Some(field) = known.and_then(|at| fields.get_mut(at)) {
                field.1 = value;
                continue;
            }
            if is_large {
                places.insert(key.clone(), fields.len());
            }
            fields.push((key, value));
        }
        fields
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

/// A key, borrowed if it has no escapes.
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
