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
    /// The stable part of the prompt before.
    before: Vec<Arc<Message>>,
    begun: bool,
}

impl Meter {
    /// The tokens of a prompt and of the memory tools that it declares.
    pub(crate) fn size(counts: &mut Counts, prompt: &Prompt) -> u64 {
        let messages: u64 = prompt.messages.iter().map(|message| counts.message(message)).sum();
        counts.tools(&prompt.tools) + messages
    }

    /// Takes the prompt of a call. Cached is what it has in common with the beginning of the prompt
    /// before, in whole messages; the rest of its stable part is written; the volatile suffix is
    /// neither.
    pub(crate) fn call(&mut self, counts: &mut Counts, prompt: &Prompt) {
        let stable = prompt.messages.len().saturating_sub(prompt.volatile);
        let (stable, volatile) = prompt.messages.split_at(stable.min(prompt.messages.len()));
        let same = |(a, b): &(&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(a, b) || a == b;
        let common = stable.iter().zip(&self.before).take_while(same).count();
        let begin = prompt.messages.get(..self.before.len()).unwrap_or_default();
        self.moves += u64::from(begin != self.before);
        let tools = counts.tools(&prompt.tools);
        let (mut cached, mut written) = if self.begun { (tools, 0) } else { (0, tools) };
        for (at, message) in stable.iter().enumerate() {
            let tokens = counts.message(message);
            if at < common { cached += tokens } else { written += tokens }
        }
        let plain = volatile.iter().map(|message| counts.message(message)).sum();
        self.usage.call(cached, written, plain);
        self.before = stable.to_vec();
        self.begun = true;
    }
}

/// Meters the same calls for somebody who keeps everything.
#[derive(Default)]
pub(crate) struct FullMeter {
    pub(crate) usage: Usage,
    /// The tokens of all messages so far.
    pub(crate) tokens: u64,
    before: u64,
}

impl FullMeter {
    pub(crate) fn append(&mut self, tokens: u64) {
        self.tokens += tokens;
    }

    pub(crate) fn call(&mut self) {
        self.usage.call(self.before, self.tokens - self.before, 0);
        self.before = self.tokens;
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
    fn keeping_everything_reads_all_but_the_new() {
        let mut full = FullMeter::default();
        full.append(100);
        full.call();
        full.append(10);
        full.call();
        let usage = full.usage;
        assert_eq!((usage.input_tokens, usage.peak_tokens, usage.cached_tokens), (210, 110, 100));
        assert!((usage.cost_units - (125.0 + 10.0 + 12.5)).abs() < 1e-9);
    }
}
