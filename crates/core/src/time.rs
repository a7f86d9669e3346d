//! Points in time, as conversations use them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 (`2025-01-01T10:00:00Z`, any offset); the same without an offset, and with
    /// a space in place of the `T`, is taken as UTC. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Some(Self(at.as_millisecond()));
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let at = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
        Some(Self(at.as_millisecond()))
    }

    /// Returns the time that has passed since an earlier one; none if that one is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the time as RFC 3339 in UTC.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => at.to_string(),
            Err(_) => self.0.to_string(),
        }
    }
}

/// `2025-01-01 10:00:00`, in UTC, as block headers show it.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{}", at.strftime("%Y-%m-%d %H:%M:%S")),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn reads_what_conversations_carry() {
        let at = Timestamp::parse("2025-01-01T10:00:00Z").unwrap();
        assert_eq!(at.to_string(), "2025-01-01 10:00:00");
        for same in ["2025-01-01T11:00:00+01:00", "2025-01-01 10:00:00", "2025-01-01T10:00:00.000"]
        {
            assert_eq!(Timestamp::parse(same), Some(at), "{same}");
        }
        for bad in ["", "yesterday", "2025-13-01T00:00:00Z", "12"] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
        assert_eq!(at.since(Timestamp(0)).as_secs(), 1_735_725_600);
        assert!(Timestamp(0).since(Timestamp(5)).is_zero());
        assert_eq!(Timestamp(i64::MAX).to_string(), format!("{} ms", i64::MAX));
    }
}
