//! How far a text may be trusted, by who said it.

use crate::Role;
use std::fmt;

/// How far a text may be trusted, by who said it: the order in which models are taught to follow instructions, the
/// least first. A text assembled from several has the least of theirs.
///
/// ```
/// use foldback_core::{Role, Trust};
///
/// assert!(Trust::of(&Role::Tool) < Trust::of(&Role::Assistant));
/// assert_eq!(Trust::of(&Role::Other("critic".to_owned())), Trust::Untrusted);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// The words of a tool, or of an unknown role: they may come from anywhere.
    #[default]
    Untrusted,
    /// The words of the model.
    Model,
    /// The words of the person, or of a program that acts for one.
    User,
    /// Standing instructions.
    Instruction,
}

/// The speaker's name in what a loop reports to its model on the user's side: what tools answered, if that is not in a
/// message of a tool, and what went wrong. Nobody said it, and tools wrote parts of it.
///
/// The name is not sent to the chat API.
pub const OBSERVATIONS: &str = "observations";

impl Trust {
    /// Returns how far a speaker's words may be trusted: those of a role, or of a named speaker of that role.
    ///
    /// ```
    /// use foldback_core::{OBSERVATIONS, Role, Trust};
    ///
    /// assert_eq!(Trust::of_speaker(&Role::User, Some("Anna")), Trust::User);
    /// assert_eq!(Trust::of_speaker(&Role::User, Some(OBSERVATIONS)), Trust::Untrusted);
    /// ```
    #[must_use]
    pub fn of_speaker(role: &Role, name: Option<&str>) -> Self {
        match role {
            Role::User if name == Some(OBSERVATIONS) => Self::Untrusted,
            role => Self::of(role),
        }
    }

    /// Returns how far words of this role may be trusted.
    #[must_use]
    pub fn of(role: &Role) -> Self {
        match role {
            Role::System | Role::Developer => Self::Instruction,
            Role::User => Self::User,
            Role::Assistant => Self::Model,
            Role::Tool | Role::Other(_) => Self::Untrusted,
        }
    }

    /// Returns one word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Model => "model",
            Self::User => "user",
            Self::Instruction => "instruction",
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
