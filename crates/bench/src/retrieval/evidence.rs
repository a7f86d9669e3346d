//! Finds the messages that answer questions.

use crate::{Case, Question};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A question with the messages that answer it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// The question.
    pub(super) question: String,
    /// Its class, as it is reported; empty if the source names none.
    pub(super) category: String,
    /// The messages, by their numbers: ascending, at least one. An id shared by several messages names
    /// them all; an unknown id, or an index beyond the end, is not evidence.
    pub(super) evidence: Vec<usize>,
}

/// Questions that are not asked, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Questions of category 5, by which LoCoMo marks adversarial questions, which its conversations do
    /// not answer.
    pub adversarial: usize,
    /// Questions that ask nothing, or whose evidence is not given or is in no message of the
    /// conversation.
    pub without_evidence: usize,
}

impl LeftOut {
    pub(super) fn add(&mut self, other: Self) {
        self.adversarial += other.adversarial;
        self.without_evidence += other.without_evidence;
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// LoCoMo's class of questions that its conversations do not answer.
const ADVERSARIAL: &str = "5";

/// Returns the questions of a conversation that can be judged, and how many cannot.
pub(super) fn asked(case: &Case) -> (Vec<Asked>, LeftOut) {
    let messages = &case.conversation.messages;
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(id) = message.id() {
            places.entry(id).or_default().push(at);
        }
    }
    let (mut all, mut left_out) = (Vec::new(), LeftOut::default());
    for Question { question, category, evidence, evidence_spans } in case.questions() {
        let category = match category {
            Some(Value::String(name)) => name,
            Some(value) => value.to_string(),
            None => String::new(),
        };
        if category == ADVERSARIAL {
            left_out.adversarial += 1;
            continue;
        }
        let named = evidence.iter().filter_map(|id| places.get(id.as_str())).flatten().copied();
        let spans = evidence_spans
            .iter()
            .flat_map(|(first, last)| *first..messages.len().min(last.saturating_add(1)));
        let mut evidence: Vec<usize> = named.chain(spans).collect();
        evidence.sort_unstable();
        evidence.dedup();
        if evidence.is_empty() || question.trim().is_empty() {
            left_out.without_evidence += 1;
            continue;
        }
        all.push(Asked { question, category, evidence });
    }
    (all, left_out)
}

impl Asked {
    /// Returns how many of the messages that answer it are in a run of messages.
    pub(super) fn held_by(&self, run: &RangeInclusive<usize>) -> usize {
        let below = |end: usize| self.evidence.partition_point(|at| *at < end);
        below(run.end().saturating_add(1)) - below(*run.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(qa: &str) -> Case {
        let message = |i| format!(r#"{{"role":"user","id":"m{i}","content":"message {i}"}}"#);
        let messages: Vec<String> = (0..6).map(message).collect();
        let line = format!(r#"{{"id":"c","messages":[{}],"qa":{qa}}}"#, messages.join(","));
        let line = line.replace('\n', " ");
        let mut read = foldback_transcript::read_bytes(line.as_bytes()).unwrap();
        Case::new("c".to_owned(), "f".to_owned(), read.next().unwrap().unwrap())
    }

    #[test]
    fn evidence_is_named_by_ids_or_by_spans() {
        let (all, left_out) = asked(&case(
            r#"[{"question":"a","category":2,"evidence":["m4","m1","m9"]},
                {"question":"b","category":"when","evidence_spans":[[0,1],[1,2]]},
                {"question":"c","evidence_spans":[[4,18446744073709551615],[3,2],[7,9]]},
                {"question":"d","category":5,"evidence":["m1"]},
                {"question":"e","evidence":["m9"]},
                {"question":"f"},
                {"question":"g","category":"5","evidence":["m1"]},
                {"question":"h","evidence_spans":[[6,9]]}]"#,
        ));
        let found: Vec<_> =
            all.iter().map(|a| (a.category.as_str(), a.evidence.as_slice())).collect();
        assert_eq!(found, [("2", &[1, 4][..]), ("when", &[0, 1, 2]), ("", &[4, 5])]);
        assert_eq!(left_out, LeftOut { adversarial: 2, without_evidence: 3 });
        assert_eq!(
            [0..=0, 0..=1, 1..=4, 2..=3, 4..=5].map(|run| all[0].held_by(&run)),
            [0, 1, 2, 0, 1]
        );
    }
}
