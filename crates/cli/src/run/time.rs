//! Times as people write them: `90s`, `10m`, `2h`.

use foldback_core::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A time in whole seconds, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(u64);

/// The form of a time.
const FORM: &str = "a time such as 90s, 10m or 2h";

impl Time {
    /// Reads `90`, `90s`, `10m` or `2h`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
            Some(number) => (number, &text[number.len()..]),
            None => (text, "s"),
        };
        let each = match unit {
            "h" => 3_600,
            "m" => 60,
            _ => 1,
        };
        let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(each));
        seconds.and_then(Self::of_seconds).ok_or_else(|| format!("expected {FORM}"))
    }

    pub(crate) fn of_seconds(seconds: u64) -> Option<Self> {
        (seconds > 0).then_some(Self(seconds))
    }

    pub(crate) fn seconds(self) -> u64 {
        self.0
    }
}

/// A point in time as RFC 3339 in UTC, always to three digits of a second.
pub(super) fn to_the_millisecond(at: Timestamp) -> String {
    let rest = at.0.rem_euclid(1_000);
    let whole = Timestamp(at.0 - rest).to_rfc3339();
    format!("{}.{rest:03}Z", whole.trim_end_matches('Z'))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds.is_multiple_of(3_600) => write!(f, "{}h", seconds / 3_600),
            seconds if seconds.is_multiple_of(60) => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl Visitor<'_> for TimeVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORM)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                let unread = |_| E::invalid_value(serde::de::Unexpected::Str(text), &self);
                Time::read(text).map_err(unread)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Time, E> {
                let unread = || E::invalid_value(serde::de::Unexpected::Unsigned(seconds), &self);
                Time::of_seconds(seconds).ok_or_else(unread)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Time, E> {
                let unread = |_| E::invalid_value(serde::de::Unexpected::Signed(seconds), &self);
                let seconds = u64::try_from(seconds).map_err(unread)?;
                self.visit_u64(seconds)
            }
        }
        deserializer.deserialize_any(TimeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_digits_of_a_second() {
        for (ms, rest) in [(0, "00.000Z"), (10, "00.010Z"), (1_200, "01.200Z"), (999, "00.999Z")] {
            let told = to_the_millisecond(Timestamp(1_735_725_600_000 + ms));
            assert_eq!(told, format!("2025-01-01T10:00:{rest}"));
        }
    }

    #[test]
    fn times_are_read_and_written() {
        let read = ["90", "90s", "10m", "2h"].map(|text| Time::read(text).unwrap().seconds());
        assert_eq!(read, [90, 90, 600, 7_200]);
        for bad in ["", "0", "s", "-1m", "1d", "1.5h", "99999999999999999999h", "二m"] {
            assert!(Time::read(bad).is_err(), "{bad}");
        }
        let written = [60, 61, 5_400, 10_800].map(|seconds| Time(seconds).to_string());
        assert_eq!(written, ["1m", "61s", "90m", "3h"]);
    }
}
