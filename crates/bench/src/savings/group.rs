//! Groups of conversations that are summed up together.

use crate::{Calls, Case, Kind};
use serde::Serialize;

/// A group of conversations that are summed up together: those of one kind, with dialogues without a
/// model apart. These are meetings of people, mostly long, and would dominate all dialogues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Group {
    /// One task of an agent with tools.
    #[serde(rename = "agent")]
    Agent,
    /// Several such tasks in a row.
    #[serde(rename = "composite")]
    Composite,
    /// A person and a model without tools.
    #[serde(rename = "dialogue")]
    Dialogue,
    /// People talking, without a model; the model is asked after each of their messages.
    #[serde(rename = "dialogue, users only")]
    UsersOnly,
}

impl Group {
    /// All groups, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Composite, Self::Dialogue, Self::UsersOnly];

    /// Returns the group of a conversation.
    #[must_use]
    pub fn of(case: &Case) -> Self {
        match case.kind {
            Kind::Agent => Self::Agent,
            Kind::Composite => Self::Composite,
            Kind::Dialogue if Calls::of(&case.conversation.messages).has_assistant() => {
                Self::Dialogue
            }
            Kind::Dialogue => Self::UsersOnly,
        }
    }

    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Composite => "composite",
            Self::Dialogue => "dialogue",
            Self::UsersOnly => "dialogue, users only",
        }
    }

    /// Returns the heading of its figures.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Agent => "Agent runs",
            Self::Composite => "Composites of agent runs",
            Self::Dialogue => "Dialogues",
            Self::UsersOnly => "Dialogues of users only",
        }
    }
}
