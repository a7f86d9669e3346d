//! Seeing that a model repeats itself.

use foldback_core::Message;
use std::collections::HashMap;

/// What a model said and called in a run, and whether it does so again and again.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// How often the same may have been there before.
    most: Option<u32>,
    seen: HashMap<blake3::Hash, u32>,
    /// How many messages in a row were there before so often, the last one included.
    in_a_row: u32,
}

/// What is to be done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// Nothing: it says something else.
    None,
    /// The model has to be told: it repeats itself, and was not told yet.
    News,
    /// It repeats itself so many times in a row by now, and knows.
    Known(u32),
}

impl Stuck {
    pub(crate) fn new(most: Option<u32>) -> Self {
        Self { most, seen: HashMap::new(), in_a_row: 0 }
    }

    /// Begins to count anew how often in a row it happened: a run goes on that ended for that.
    pub(crate) fn goes_on(&mut self) {
        self.in_a_row = self.in_a_row.min(1);
    }

    /// Takes the next message, and says whether it repeats others: that is news once, until the model does
    /// something else. The ids of calls are nothing that a model means.
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

    /// What was news among messages with these texts and calls.
    fn news(messages: &[(&str, &str)]) -> Vec<bool> {
        let mut stuck = Stuck::new(Some(2));
        let call = |at: usize, (text, arguments): (&str, &str)| {
            Message::calls(text, vec![ToolCall::new(&format!("c{at}"), "read", arguments)])
        };
        let messages = messages.iter().enumerate().map(|(at, message)| call(at, *message));
        messages.map(|message| stuck.take(&message) == Repetition::News).collect()
    }

    /// OM15: the third of the same is news, what follows is not, until something else was done.
    #[test]
    fn om15_each_episode_is_news_once() {
        let (a, b, c) = (("再读一次", "{}"), ("再读一次", r#"{"n":1}"#), ("then", "{}"));
        assert_eq!(news(&[a, a, a, a, a]), [false, false, true, false, false]);
        assert_eq!(news(&[a, b, a, b, a, b]), [false, false, false, false, true, false]);
        assert_eq!(news(&[a, a, a, c, a, c]), [false, false, true, false, true, false]);
        assert_eq!(news(&[a, b, c, a, b, c]), [false; 6], "twice is no more than twice");
    }

    /// OM15: what words and calls share out differently is not the same.
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

    /// OM15: how long it lasts is counted until something else is done, and anew where a run goes on.
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
