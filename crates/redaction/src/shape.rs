//! A row of the table: the shape of a secret.

use crate::checks::Check;
use regex::{Regex, RegexBuilder};
use std::ops::Range;

/// The shape of a secret.
pub(crate) struct Shape {
    /// The kind of secret, as named in a mark: lower case letters, digits and `-`.
    pub(crate) kind: &'static str,
    /// The letters by which it is found.
    pub(crate) begins: &'static [&'static str],
    /// How far it begins before those letters.
    pub(crate) back: Back,
    /// Its form, from its beginning. The secret is the first group, or all of it.
    pub(crate) form: &'static str,
    /// A check beyond the form.
    pub(crate) check: Check,
    /// Whether it may touch letters and digits on either side.
    pub(crate) may_touch: bool,
}

/// How far a secret begins before the letters by which it is found.
#[derive(Clone, Copy)]
pub(crate) struct Back {
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// Whether a character may be one of these.
    pub(crate) is: fn(u8) -> bool,
}

/// A shape with its form compiled.
pub(crate) struct Compiled {
    shape: &'static Shape,
    form: Regex,
}

impl Compiled {
    pub(crate) fn new(shape: &'static Shape) -> Option<Self> {
        let form = format!("^(?:{})", shape.form);
        let form = RegexBuilder::new(&form).unicode(false).build().ok()?;
        Some(Self { shape, form })
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.shape.kind
    }

    /// Returns the secret of this shape whose letters are at this place.
    pub(crate) fn find(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let (bytes, back) = (text.as_bytes(), self.shape.back);
        let before = bytes.get(..at)?.iter().rev().take(back.most);
        let before = before.take_while(|byte| (back.is)(**byte)).count();
        let start = at - Some(before).filter(|before| *before >= back.least)?;
        let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let touches_before = is_word(start.checked_sub(1).and_then(|before| bytes.get(before)));
        if touches_before && !self.shape.may_touch {
            return None;
        }
        let found = self.form.captures(text.get(start..)?)?;
        let found = found.get(1).or(found.get(0))?;
        let range = start + found.start()..start + found.end();
        if is_word(bytes.get(range.end)) && !self.shape.may_touch {
            return None;
        }
        self.shape.check.holds(found.as_str()).then_some(range)
    }
}
