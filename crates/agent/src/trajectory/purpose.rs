//! The purposes of requests to a model.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// The purpose of a request to a model, by a name: `planner`. A strategy may have purposes of its own.
///
/// ```
/// use foldback_agent::Purpose;
///
/// const CRITIQUE: Purpose = Purpose::named("critique");
/// assert_eq!(serde_json::to_string(&CRITIQUE)?, r#""critique""#);
/// assert_eq!(serde_json::from_str::<Purpose>(r#""planner""#)?, Purpose::PLANNER);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Purpose(Cow<'static, str>);

impl Purpose {
    /// The first plan.
    pub const PLANNER: Self = Self::named("planner");
    /// A plan to replace one that was not sound.
    pub const REPAIR: Self = Self::named("repair");
    /// The steps that follow, from what is known now.
    pub const REPLAN: Self = Self::named("replan");
    /// The answer, from the findings.
    pub const ANSWER: Self = Self::named("answer");
    /// The next turn, step by step.
    pub const REACT: Self = Self::named("react");

    /// Creates a purpose with this name: lower-case words, joined by `_`. Journals and trajectories hold it,
    /// so it must stay the same from version to version.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns its name, as a record writes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns its place in a record, and its name if it has no fixed place.
    fn rank(&self) -> (usize, &str) {
        let place = FIRST.iter().position(|name| *name == self.name());
        (place.unwrap_or(FIRST.len()), self.name())
    }
}

/// The purposes that come first in a record, in this order; others follow by name. Records had this order
/// when purposes were a closed list, and two records of one run must have the same bytes.
const FIRST: [&str; 10] = [
    "planner",
    "repair",
    "replan",
    "answer",
    "react",
    "flow",
    "summary",
    "queries",
    "research",
    "reflection",
];

impl Ord for Purpose {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Purpose {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ET16: the keys of a record are in the order that they always had.
    #[test]
    fn et16_purposes_keep_their_order() {
        let mut purposes: Vec<Purpose> = FIRST.iter().rev().copied().map(Purpose::named).collect();
        purposes.extend([Purpose::named("critique"), Purpose::named("apology")]);
        purposes.sort();
        let names: Vec<&str> = purposes.iter().map(Purpose::name).collect();
        assert_eq!(names[..FIRST.len()], FIRST);
        assert_eq!(names[FIRST.len()..], ["apology", "critique"]);
    }
}
