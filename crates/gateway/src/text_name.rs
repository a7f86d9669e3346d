//! The name of a text in the store.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The name of a text that is kept beside a todo's messages: a [note](foldback::NoteName), or a
/// [parked text](foldback::ParkedName). It is written in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextName<const N: usize>(pub [u8; N]);

impl<const N: usize> TextName<N> {
    fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != N || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl<const N: usize> fmt::Display for TextName<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> Serialize for TextName<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for TextName<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| serde::de::Error::custom("this is no name of a text"))
    }
}
