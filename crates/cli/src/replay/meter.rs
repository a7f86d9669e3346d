//! What prompts cost: tokens as o200k counts them, and how many of them a provider's cache holds.

use foldback_core::{Message, Prompt, TokenCounter, ToolDefinition, message_tokens};
use foldback_o200k::O200k;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// What a cached token costs when it is read, where an ordinary one costs 1.
pub(crate) const READ: f64 = 0.1;
/// What a token costs when it is written into the cache.
pub(crate) const WRITE: f64 = 1.25;

/// What all calls of a conversation were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// How often the model was asked.
    pub(crate) calls: u64,
    /// The tokens of all prompts.
    pub(crate) input_tokens: u64,
    /// The tokens of the largest prompt.
    pub(crate) peak_tokens: u64,
    /// Of the input tokens, those that stood at the beginning of the prompt before.
    pub(crate) cached_tokens: u64,
    /// The cost, an ordinary input token at 1.
    pub(crate) cost_units: f64,
}

impl Usage {
    /// Takes a call: what of its prompt is in the cache, what of it is written there, and what is
    /// sent without.
    pub(crate) fn call(&mut self, cached: u64, written: u64, plain: u64) {
        let tokens = cached + written + plain;
        self.calls += 1;
        self.input_tokens += tokens;
        self.peak_tokens = self.peak_tokens.max(tokens);
        self.cached_tokens += cached;
        self.cost_units += READ * cached as f64 + WRITE * written as f64 + plain as f64;
    }

    /// The same, without the digits that come of adding tenths.
    pub(crate) fn rounded(self) -> Self {
        Self { cost_units: (self.cost_units * 100.0).round() / 100.0, ..self }
    }

    /// Adds the calls of another conversation.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.peak_tokens = self.peak_tokens.max(other.peak_tokens);
        self.cached_tokens += other.cached_tokens;
        self.cost_units += other.cost_units;
    }
}

/// Counts tokens, each text once: prompts repeat almost everything from call to call.
#[derive(Default)]
pub(crate) struct Counts {
    of: HashMap<Box<str>, u64>,
}

impl Counts {
    pub(crate) fn message(&mut self, message: &Message) -> u64 {
        if let Some(tokens) = self.of.get(message.json()) {
            return *tokens;
        }
        let tokens = message_tokens(&O200k, message) as u64;
        self.of.insert(message.json().into(), tokens);
        tokens
    }

    /// The declarations of tools.
    pub(crate) fn tools(&mut self, tools: &[ToolDefinition]) -> u64 {
        tools
            .iter()
            .flat_map(|tool| [&tool.name, &tool.description, &tool.parameters])
            .map(|text| self.text(text))
            .sum()
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(tokens) = self.of.get(text) {
            return *tokens;
        }
        let tokens = O200k.count(text) as u64;
        self.of.insert(text.into(), tokens);
        tokens
    }
}

/// Meters the prompts of one conversation.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) usage: Usage,
    /// Prompts that did not begin with the whole stable part of the one before.
    pub(crate) moves: u64,
    /// The stable part of the prompt before, each message with its tokens.
    before: Vec<(Arc<Message>, u64)>,
    begun: bool,
}

impl Meter {
    /// The tokens of a prompt and of the memory tools that it declares.
    pub(crate) fn size(counts: &mut Counts, prompt: &Prompt) -> u64 {
        let messages: u64 = prompt.messages.iter().map(|message| counts.message(message)).sum();
        counts.tools(&prompt.tools) + messages
    }

    /// Takes the prompt of a call, and gives its tokens. Cached is what it has in common with the
    /// beginning of the prompt before, in whole messages; the rest of its stable part is written;
    /// the volatile suffix is neither.
    pub(crate) fn call(&mut self, counts: &mut Counts, prompt: &Prompt) -> u64 {
        let stable = prompt.messages.len().saturating_sub(prompt.volatile);
        let same = |(message, (before, _)): &(&Arc<Message>, &(Arc<Message>, u64))| {
            Arc::ptr_eq(message, before) || *message == before
        };
        let goes_on = prompt.messages.iter().zip(&self.before).take_while(same).count();
        self.moves += u64::from(goes_on < self.before.len());
        self.before.truncate(goes_on.min(stable));
        let tools = counts.tools(&prompt.tools);
        let (mut cached, mut written) = if self.begun { (tools, 0) } else { (0, tools) };
        cached += self.before.iter().map(|(_, tokens)| tokens).sum::<u64>();
        let mut plain = 0;
        for (at, message) in prompt.messages.iter().enumerate().skip(self.before.len()) {
            let tokens = counts.message(message);
            if at < stable {
                written += tokens;
                self.before.push((Arc::clone(message), tokens));
            } else {
                plain += tokens;
            }
        }
        self.usage.call(cached, written, plain);
        self.begun = true;
        cached + written + plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(texts: &[&str], volatile: usize) -> Prompt {
        let messages = texts.iter().map(|text| Arc::new(Message::user(text))).collect();
        Prompt { messages, volatile, ..Prompt::default() }
    }

    #[test]
    fn what_a_prompt_shares_with_the_one_before_is_cached() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let one = Meter::size(&mut counts, &prompt(&["one"], 0));
        meter.call(&mut counts, &prompt(&["one", "two", "todo"], 1));
        assert_eq!((meter.usage.cached_tokens, meter.usage.input_tokens), (0, 3 * one));
        meter.call(&mut counts, &prompt(&["one", "two", "three", "todo"], 1));
        assert_eq!((meter.usage.cached_tokens, meter.moves), (2 * one, 0));
        // A message in front that changed leaves nothing in the cache.
        meter.call(&mut counts, &prompt(&["fold", "two", "three"], 0));
        assert_eq!((meter.usage.cached_tokens, meter.moves), (2 * one, 1));
        let one = one as f64;
        let first = 2.0 * WRITE * one + one;
        let second = 2.0 * READ * one + WRITE * one + one;
        let third = 3.0 * WRITE * one;
        assert!((meter.usage.cost_units - (first + second + third)).abs() < 1e-9);
        assert_eq!(meter.usage.peak_tokens as f64, 4.0 * one);
    }

    #[test]
    fn what_only_grows_is_read_but_for_the_new() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let one = Meter::size(&mut counts, &prompt(&["one"], 0));
        assert_eq!(meter.call(&mut counts, &prompt(&["one", "two"], 0)), 2 * one);
        assert_eq!(meter.call(&mut counts, &prompt(&["one", "two", "six"], 0)), 3 * one);
        let usage = meter.usage;
        let sums = (usage.input_tokens, usage.peak_tokens, usage.cached_tokens);
        assert_eq!((sums, meter.moves), ((5 * one, 3 * one, 2 * one), 0));
    }

    #[test]
    fn a_shorter_prompt_is_a_move() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        meter.call(&mut counts, &prompt(&["one", "two", "three"], 0));
        meter.call(&mut counts, &prompt(&["one"], 0));
        meter.call(&mut counts, &prompt(&["one", "two"], 0));
        assert_eq!(meter.moves, 1);
    }
}
