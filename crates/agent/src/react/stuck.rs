//! Detection of a model that repeats itself.

use foldback_core::Message;
use std::collections::HashMap;

/// A model's texts and calls in a run, and how often it repeats them.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// How often a message may have occurred before.
    most: Option<u32>,
    seen: HashMap<blake3::Hash, u32>,
    /// The number of such repetitions in a row, including the last message.
    in_a_row: u32,
}

/// The verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// It is not a repetition.
    None,
    /// The model repeats itself and was not told yet, so it has to be told.
    News,
    /// The model knows that it repeats itself, by now this many times in a row.
    Known(u32),
}

impl Stuck {
    pub(crate) fn new(most: Option<u32>) -> Self {
        Self { most, seen: HashMap::new(), in_a_row: 0 }
    }

    /// Resets the count of repetitions in a row, for a run that ended because of it and resumes.
    pub(crate) fn goes_on(&mut self) {
        self.in_a_row = self.in_a_row.min(1);
    }

    /// Takes the next message, and returns whether it repeats others: that is news once, until the model does
    /// something else. The ids of calls are ignored.
    pub(crate) fn take(&mut self, message: &Message) -> Repetition {
        let Some(most) = self.most else { return Repetition::None };
        let mut hasher = blake3::Hasher::new();
        let mut part = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(message.text().trim());
        for call in message.tool_calls() {
            part(&call.name);
            part(&call.arguments);
        }
        let before = self.seen.entry(hasher.finalize()).or_default();
        let is_stuck = *before >= most;
        *before = before.saturating_add(1);
        self.in_a_row = if is_stuck { self.in_a_row.saturating_add(1) } else { 0 };
        match self.in_a_row {
            0 => Repetition::None,
            1 => Repetition::News,
            times => Repetition::Known(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolCall;

    /// Returns which of the messages with these texts and calls were news.
    fn news(messages: &[(&str, &str)]) -> Vec<bool> {
        let mut stuck = Stuck::new(Some(2));
        let call = |at: usize, (text, arguments): (&str, &str)| {
            Message::calls(text, vec![ToolCall::new(&format!("c{at}"), "read", arguments)])
        };
        let messages = messages.iter().enumerate().map(|(at, message)| call(at, *message));
        messages.map(|message| stuck.take(&message) == Repetition::News).collect()
    }

    /// OM15: the third of the same is news, later ones are not, until something else is done.
    #[test]
    fn om15_each_episode_is_news_once() {
        let (a, b, c) = (("再读一次", "{}"), ("再读一次", r#"{"n":1}"#), ("then", "{}"));
        assert_eq!(news(&[a, a, a, a, a]), [false, false, true, false, false]);
        assert_eq!(news(&[a, b, a, b, a, b]), [false, false, false, false, true, false]);
        assert_eq!(news(&[a, a, a, c, a, c]), [false, false, true, false, true, false]);
        assert_eq!(news(&[a, b, c, a, b, c]), [false; 6], "twice is no more than twice");
    }

    /// OM15: the same content split differently between text and calls is not the same.
    #[test]
    fn om15_words_and_calls_are_told_apart() {
        let mut stuck = Stuck::new(Some(0));
        assert_eq!(stuck.take(&Message::assistant("ab")), Repetition::News);
        let mut stuck = Stuck::new(Some(1));
        for message in [
            Message::calls("ab", vec![ToolCall::new("1", "c", "{}")]),
            Message::calls("a", vec![ToolCall::new("1", "bc", "{}")]),
            Message::calls("ab", vec![ToolCall::new("1", "c{}", "")]),
        ] {
            assert_eq!(stuck.take(&message), Repetition::None, "{}", message.json());
        }
        let mut off = Stuck::new(None);
        assert!((0..9).all(|_| off.take(&Message::assistant("a")) == Repetition::None));
    }

    /// OM15: the length of an episode is counted until something else is done, and again from 0 when a run resumes.
    #[test]
    fn om15_an_episode_has_a_length() {
        let mut stuck = Stuck::new(Some(1));
        let mut times = |text: &str| match stuck.take(&Message::assistant(text)) {
            Repetition::None => 0,
            Repetition::News => 1,
            Repetition::Known(times) => times,
        };
        assert_eq!(["等", "等", "等", "等", "ok", "等"].map(&mut times), [0, 1, 2, 3, 0, 1]);
        times("等");
        stuck.goes_on();
        assert_eq!(stuck.take(&Message::assistant("等")), Repetition::Known(2));
    }
}
