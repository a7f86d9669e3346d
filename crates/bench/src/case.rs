//! A recorded conversation as the measurements see it: what kind it is, and what its source says
//! about its topics and questions.

use foldback_core::Role;
use foldback_transcript::Conversation;
use serde::{Deserialize, Serialize};

/// What kind of conversation it is. The kinds are reported apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One task of an agent with tools.
    Agent,
    /// Several such tasks in a row, with known borders.
    Composite,
    /// People talking, or a person and a model without tools.
    Dialogue,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Composite, Self::Dialogue];

    /// The name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Composite => "composite",
            Self::Dialogue => "dialogue",
        }
    }

    /// The kind of a conversation: with tool calls or results it is an agent's, and a composite
    /// where its topics are given too.
    #[must_use]
    pub fn of(conversation: &Conversation) -> Self {
        let has_tools = conversation
            .messages
            .iter()
            .any(|message| *message.role() == Role::Tool || !message.tool_calls().is_empty());
        match (has_tools, Self::has_boundaries(conversation)) {
            (true, true) => Self::Composite,
            (true, false) => Self::Agent,
            (false, _) => Self::Dialogue,
        }
    }

    fn has_boundaries(conversation: &Conversation) -> bool {
        conversation.envelope.get("boundaries").is_some_and(|list| list.trim() != "[]")
    }
}

/// A conversation with its name.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name; no other case of the same run has it.
    pub id: String,
    /// The file that it came from.
    pub file: String,
    /// The messages, and everything around them.
    pub conversation: Conversation,
    /// Its kind.
    pub kind: Kind,
}

impl Case {
    /// A conversation under a name.
    #[must_use]
    pub fn new(id: String, file: String, conversation: Conversation) -> Self {
        let kind = Kind::of(&conversation);
        Self { id, file, conversation, kind }
    }

    /// Where new segments begin: indexes of messages, ascending, 0 left out; `None` where the source
    /// says nothing of it.
    #[must_use]
    pub fn boundaries(&self) -> Option<Vec<usize>> {
        let mut list: Vec<usize> = self.field("boundaries")?;
        list.retain(|at| (1..self.conversation.messages.len()).contains(at));
        list.sort_unstable();
        list.dedup();
        Some(list)
    }

    /// The questions that the source asks about the conversation.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.field("qa").unwrap_or_default()
    }

    fn field<T: for<'a> Deserialize<'a>>(&self, key: &str) -> Option<T> {
        serde_json::from_str(&self.conversation.envelope.get(key)?).ok()
    }
}

/// A question about a conversation, and where its answer stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The question.
    pub question: String,
    /// Its class; a number or a name, by the source.
    pub category: Option<serde_json::Value>,
    /// The ids of the messages that answer it.
    pub evidence: Vec<String>,
    /// First and last index of runs of messages that answer it.
    pub evidence_spans: Vec<(usize, usize)>,
}
