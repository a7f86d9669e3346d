//! How far a text may be trusted, by who said it.

use crate::Role;
use std::fmt;

/// How far a text may be trusted, by who said it: the order in which models are taught to follow
/// instructions, the least first. What is put together from several texts has the least of theirs.
///
/// ```
/// use foldback_core::{Role, Trust};
///
/// assert!(Trust::of(&Role::Tool) < Trust::of(&Role::Assistant));
/// assert_eq!(Trust::of(&Role::Other("critic".to_owned())), Trust::Untrusted);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// What a tool said, or a role that is unknown here: it came from anywhere.
    #[default]
    Untrusted,
    /// What the model said.
    Model,
    /// What the person said, or whoever stands in for one.
    User,
    /// Standing instructions.
    Instruction,
}

/// The name of the speaker of what a loop tells its model on the user's side: what tools answered, where
/// that is told in no message of a tool, and what went wrong. Nobody said it, and tools wrote parts of it.
///
/// Where a chat API is told of a message, this name is not.
pub const OBSERVATIONS: &str = "observations";

impl Trust {
    /// How far words of a speaker may be trusted: of a role, or of somebody of that role who has a name.
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

    /// How far words of this role may be trusted.
    #[must_use]
    pub fn of(role: &Role) -> Self {
        match role {
            Role::System | Role::Developer => Self::Instruction,
            Role::User => Self::User,
            Role::Assistant => Self::Model,
            Role::Tool | Role::Other(_) => Self::Untrusted,
        }
    }

    /// One word for it.
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
