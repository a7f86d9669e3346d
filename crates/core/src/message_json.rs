//! Reading the JSON of a message: its keys in order, its strings leniently.

use crate::{Content, MessageError, Part, ToolCall, decode_literal};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, fmt};

fn shape(key: &'static str, expected: &'static str, found: &RawValue) -> MessageError {
    MessageError::Shape { key, expected, found: found.get().chars().take(60).collect() }
}

/// Up to this many keys are looked along.
const FEW_KEYS: usize = 16;

/// The keys of an object and their raw values; of a key that stands twice, the last value at the
/// place of the first.
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(8);
                // Of a large object, where each key stands: looking along would cost its square.
                let mut places: HashMap<Cow<'de, str>, usize> = HashMap::new();
                while let Some(Key(key)) = map.next_key()? {
                    let value = map.next_value()?;
                    if fields.len() == FEW_KEYS {
                        places =
                            (0..).zip(&fields).map(|(at, (key, _))| (key.clone(), at)).collect();
                    }
                    let known = if fields.len() < FEW_KEYS {
                        fields.iter().position(|(known, _)| *known == key)
                    } else {
                        places.get(&key).copied()
                    };
                    if let Some(field) = known.and_then(|at| fields.get_mut(at)) {
                        field.1 = value;
                        continue;
                    }
                    if fields.len() >= FEW_KEYS {
                        places.insert(key.clone(), fields.len());
                    }
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
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

/// The text of a JSON string, halves of surrogate pairs replaced.
fn literal(value: &RawValue) -> Option<Cow<'_, str>> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(decode_literal(inside))
}

pub(crate) fn string<'a>(
    key: &'static str,
    value: &'a RawValue,
) -> Result<Cow<'a, str>, MessageError> {
    literal(value).ok_or_else(|| shape(key, "a string", value))
}

pub(crate) fn opt_string(value: &RawValue) -> Option<String> {
    literal(value).map(Cow::into_owned)
}

pub(crate) fn read_content(value: &RawValue) -> Result<Content, MessageError> {
    const EXPECTED: &str = "a string, null or a list of parts";
    match value.get().as_bytes().first() {
        Some(b'"') => Ok(Content::Text(string("content", value)?.into_owned())),
        Some(b'n') => Ok(Content::Empty),
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(value.get())?;
            parts.into_iter().map(read_part).collect::<Result<_, _>>().map(Content::Parts)
        }
        _ => Err(shape("content", EXPECTED, value)),
    }
}

fn read_part(value: &RawValue) -> Result<Part, MessageError> {
    if value.get().starts_with('"') {
        return Ok(Part::Text(string("content", value)?.into_owned()));
    }
    let Fields(fields) = serde_json::from_str(value.get())
        .map_err(|_| shape("content", "parts that are objects or strings", value))?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let kind = field("type").and_then(literal);
    // Further keys of a text part (a cache mark, annotations) stay in the message's text.
    if kind.as_deref() == Some("text")
        && let Some(text) = field("text").and_then(literal)
    {
        return Ok(Part::Text(text.into_owned()));
    }
    Ok(Part::Other(value.get().into()))
}

/// The calls, and whether all of them are as chat APIs write them: with arguments that are text.
pub(crate) fn read_calls(value: &RawValue) -> Result<(Vec<ToolCall>, bool), MessageError> {
    const EXPECTED: &str = "a list of calls, each with an id and a function";
    let wrong = || shape("tool_calls", EXPECTED, value);
    let raw: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| wrong())?;
    let mut calls = Vec::with_capacity(raw.len());
    let mut usual = true;
    for call in raw {
        let (call, is_usual) = read_call(call).ok_or_else(wrong)?;
        calls.push(call);
        usual &= is_usual;
    }
    Ok((calls, usual))
}

fn read_call(value: &RawValue) -> Option<(ToolCall, bool)> {
    let Fields(fields) = serde_json::from_str(value.get()).ok()?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let id = field("id").and_then(literal)?;
    // A call of another type than `function` names its body by its type.
    let kind = field("type").and_then(literal).unwrap_or(Cow::Borrowed("function"));
    let body = field("function").or_else(|| field(&kind))?;
    let Fields(body) = serde_json::from_str(body.get()).ok()?;
    let field = |name: &str| body.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let name = field("name").and_then(literal)?;
    let value = field("arguments").or_else(|| field("input"));
    let text = value.and_then(literal);
    let is_usual = text.is_some();
    let arguments = text.or_else(|| value.map(|value| Cow::Borrowed(value.get())));
    let call = ToolCall::new(&id, &name, arguments.as_deref().unwrap_or("{}"));
    Some((call, is_usual))
}
