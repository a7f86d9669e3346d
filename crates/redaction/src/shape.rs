//! A row of the table: the shape of a secret.

use crate::checks::Check;
use crate::patience::Patience;
use crate::shown;
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
    /// How many bytes from its beginning are compared with its form.
    pub(crate) longest: usize,
    /// Whether a character continues a secret that is longer.
    pub(crate) goes_on: fn(u8) -> bool,
    /// Whether its form has no other characters. Then it is compared only with the run of these.
    pub(crate) is_run: bool,
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

    /// Whether its letters are those of every private key in lines.
    pub(crate) fn begins_keys(&self) -> bool {
        self.shape.begins == [shown::BEGIN]
    }

    /// Returns the secret of this shape whose letters are at this place.
    pub(crate) fn find(
        &self,
        text: &str,
        at: usize,
        patience: &mut Patience,
    ) -> Option<Range<usize>> {
        let longest = patience.allows(at, self.shape.longest)?;
        let (bytes, back) = (text.as_bytes(), self.shape.back);
        let before = bytes.get(..at)?.iter().rev().take(back.most);
        let before = before.take_while(|byte| (back.is)(**byte)).count();
        let start = at - Some(before).filter(|before| *before >= back.least)?;
        let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let touches_before = is_word(start.checked_sub(1).and_then(|before| bytes.get(before)));
        if touches_before && !self.shape.may_touch {
            return None;
        }
        let rest = text.get(start..)?;
        let part = rest.get(..rest.floor_char_boundary(longest))?;
        let read = self.readable(part)?;
        patience.spend(read.len());
        let (whole, found) = self.compare(read)?;
        if !self.shape.check.holds(read.get(found.clone())?) {
            return None;
        }
        let more = match part.len() < rest.len() && found.end == whole.end {
            true => self.more(rest, found.end, part.len()),
            false => 0,
        };
        let range = start + found.start..start + found.end + more;
        if is_word(bytes.get(range.end)) && !self.shape.may_touch {
            return None;
        }
        patience.find_until(range.end);
        Some(range)
    }

    /// What of a text can belong to the form: a beginning that soon ends costs little patience.
    fn readable<'t>(&self, part: &'t str) -> Option<&'t str> {
        let fits = |byte: &u8| (self.shape.goes_on)(*byte);
        match self.shape.is_run {
            true => part.get(..part.bytes().take_while(fits).count()),
            false => Some(part),
        }
    }

    /// The places of the form and of the secret in it, at the beginning of a text.
    fn compare(&self, part: &str) -> Option<(Range<usize>, Range<usize>)> {
        if self.form.captures_len() == 1 {
            let whole = self.form.find(part)?.range();
            return Some((whole.clone(), whole));
        }
        let found = self.form.captures(part)?;
        let whole = found.get(0)?.range();
        Some((whole.clone(), found.get(1).map_or(whole, |found| found.range())))
    }

    /// Returns how many bytes a secret continues after what was compared with its form: a long one is replaced as a whole.
    fn more(&self, rest: &str, end: usize, compared: usize) -> usize {
        // The last escape may have been cut.
        if end + LONGEST_ESCAPE < compared {
            return 0;
        }
        let rest = rest.as_bytes().get(end..).unwrap_or_default();
        let all = rest.iter().take_while(|byte| (self.shape.goes_on)(**byte)).count();
        let more = rest.get(..all).unwrap_or_default();
        all - more.iter().rev().take_while(|byte| **byte == b'\\').count()
    }
}

/// The longest run of backslashes, with the letter after it, before a line of a key.
const LONGEST_ESCAPE: usize = 16;
