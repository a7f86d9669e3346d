//! Seeing that a model repeats itself.

use foldback_core::Message;
use std::collections::HashMap;

/// What a model said and called in a run, and whether it does so again and again.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// How often the same may have been there before.
    most: Option<u32>,
    seen: HashMap<blake3::Hash, u32>,
    /// Whether it does so at present, and was told.
    is_told: bool,
}

impl Stuck {
    pub(crate) fn new(most: Option<u32>) -> Self {
        Self { most, seen: HashMap::new(), is_told: false }
    }

    /// Takes the next message, and says whether the model has to be told now: once, until it does
    /// something else. The ids of calls are nothing that a model means.
    pub(crate) fn is_news(&mut self, message: &Message) -> bool {
        let Some(most) = self.most else { return false };
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
        let is_news = is_stuck && !self.is_told;
        self.is_told = is_stuck;
        is_news
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
        messages.map(|message| stuck.is_news(&message)).collect()
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
        assert!(stuck.is_news(&Message::assistant("ab")));
        let mut stuck = Stuck::new(Some(1));
        for message in [
            Message::calls("ab", vec![ToolCall::new("1", "c", "{}")]),
            Message::calls("a", vec![ToolCall::new("1", "bc", "{}")]),
            Message::calls("ab", vec![ToolCall::new("1", "c{}", "")]),
        ] {
            assert!(!stuck.is_news(&message), "{}", message.json());
        }
        let mut off = Stuck::new(None);
        assert!((0..9).all(|_| !off.is_news(&Message::assistant("a"))));
    }
}
