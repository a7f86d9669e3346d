//! The role of a message's speaker.

/// The role of a speaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Standing instructions.
    System,
    /// Standing instructions, as newer models name them.
    Developer,
    /// The person, or a program that acts for one.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// An unknown role; it passes through.
    Other(String),
}

impl Role {
    /// Returns the role as it is written in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(role) => role,
        }
    }

    /// Returns whether messages of this role are standing instructions.
    #[must_use]
    pub fn is_instruction(&self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

impl From<&str> for Role {
    fn from(role: &str) -> Self {
        match role {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            other => Self::Other(other.to_owned()),
        }
    }
}
