//! The name of a strategy.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The name of a strategy: lower-case words joined by hyphens, as commands and events write it
/// (`one-plan`). In trajectories and journals the words are joined by `_` (`one_plan`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StrategyName(Cow<'static, str>);

impl StrategyName {
    /// Creates the name of a strategy. Journals and trajectories hold it, so it must stay the same from version
    /// to version.
    ///
    /// ```
    /// use foldback_agent::StrategyName;
    ///
    /// const BEST_OF: StrategyName = StrategyName::new("best-of");
    /// assert_eq!(serde_json::to_string(&BEST_OF)?, r#""best_of""#);
    /// assert_eq!(serde_json::from_str::<StrategyName>(r#""best_of""#)?, BEST_OF);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the name as commands write it: `one-plan`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a record writes it: `one_plan`.
    pub(crate) fn recorded(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for StrategyName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.recorded())
    }
}

impl<'de> Deserialize<'de> for StrategyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self(Cow::Owned(name.replace('_', "-"))))
    }
}
