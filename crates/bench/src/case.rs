//! A recorded conversation as the measurements see it: its kind, and what its source says about its
//! topics and questions.

use foldback_core::Role;
use foldback_transcript::Conversation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of a conversation. Kinds are reported separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One task of an agent with tools.
    Agent,
    /// Several such tasks in a row, with known boundaries.
    Composite,
    /// People talking, or a person and a model without tools.
    Dialogue,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Composite, Self::Dialogue];

    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Composite => "composite",
            Self::Dialogue => "dialogue",
        }
    }

    /// Returns the kind of a conversation: with tool calls or results it is an agent's, and a composite
    /// if its topics are given too.
    #[must_use]
    pub fn of(conversation: &Conversation) -> Self {
        let has_tools = conversation
            .messages
            .iter()
            .any(|message| *message.role() == Role::Tool || !message.tool_calls().is_empty());
        let has_topics = || boundaries(conversation).is_some_and(|list| !list.is_empty());
        match has_tools {
            true if has_topics() => Self::Composite,
            true => Self::Agent,
            false => Self::Dialogue,
        }
    }
}

/// A conversation with its name.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name; no other case of the same run has it.
    pub id: String,
    /// The file from which it came.
    pub file: String,
    /// The messages and their metadata.
    pub conversation: Conversation,
    /// Its kind.
    pub kind: Kind,
}

impl Case {
    /// Returns a conversation under a name.
    #[must_use]
    pub fn new(id: String, file: String, conversation: Conversation) -> Self {
        let kind = Kind::of(&conversation);
        Self { id, file, conversation, kind }
    }

    /// Returns the places at which new segments begin: indexes of messages, ascending, without 0;
    /// `None` if the source does not say.
    #[must_use]
    pub fn boundaries(&self) -> Option<Vec<usize>> {
        boundaries(&self.conversation)
    }

    /// Returns the questions that the source asks about the conversation. A question that cannot be
    /// read has no evidence.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        let list: Vec<Value> = field(&self.conversation, "qa").unwrap_or_default();
        list.into_iter().map(|one| serde_json::from_value(one).unwrap_or_default()).collect()
    }
}

fn boundaries(conversation: &Conversation) -> Option<Vec<usize>> {
    let list: Vec<Value> = field(conversation, "boundaries")?;
    let numbers = list.iter().filter_map(Value::as_u64).filter_map(|at| usize::try_from(at).ok());
    let mut list: Vec<usize> =
        numbers.filter(|at| (1..conversation.messages.len()).contains(at)).collect();
    list.sort_unstable();
    list.dedup();
    Some(list)
}

fn field<T: for<'a> Deserialize<'a>>(conversation: &Conversation, key: &str) -> Option<T> {
    serde_json::from_str(&conversation.envelope.get(key)?).ok()
}

/// A question about a conversation, and the place of its answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The question.
    pub question: String,
    /// Its class: a number or a name, depending on the source.
    pub category: Option<Value>,
    /// The ids of the messages that answer it.
    pub evidence: Vec<String>,
    /// The first and last indexes of runs of messages that answer it.
    pub evidence_spans: Vec<(usize, usize)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(fields: &str) -> Case {
        let line = format!(
            r#"{{"id":"a","messages":[{{"role":"user","content":"1"}},{{"role":"user","content":"2"}}],{fields}}}"#
        );
        let mut read = foldback_transcript::read_bytes(line.as_bytes()).unwrap();
        Case::new("a".to_owned(), "a.jsonl".to_owned(), read.next().unwrap().unwrap())
    }

    #[test]
    fn one_bad_entry_does_not_take_the_others_along() {
        let qa =
            r#""qa":[{"question":"who","evidence":"m1"},{"question":"when","evidence":["m2"]}]"#;
        let questions = case(qa).questions();
        assert_eq!(questions.len(), 2);
        assert_eq!((questions[0].evidence.len(), questions[1].evidence.len()), (0, 1));
        assert_eq!(case(r#""boundaries":[-1,"x",0,1,1,9]"#).boundaries(), Some(vec![1]));
        assert_eq!(case(r#""x":1"#).boundaries(), None);
    }
}
