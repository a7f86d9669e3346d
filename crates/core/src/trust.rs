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

impl Trust {
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
