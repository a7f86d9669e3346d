//! Which parts of a message are stored outside the conversation.

use foldback_core::TokenCounter;
use std::collections::{BTreeMap, BTreeSet};

/// Which tool results and arguments are offloaded, by their size in estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffloadPolicy {
    /// A text of more tokens than this is offloaded. The default is 500.
    pub tokens: usize,
    /// The same for single tools; 0 offloads every text of the tool that is not empty.
    pub per_tool: BTreeMap<String, usize>,
    /// Tools whose results are kept raw for another tool: the agent sees a preview, and the other
    /// tool reads the original. Results of these are offloaded whatever their size.
    pub raw_for: BTreeMap<String, BTreeSet<String>>,
}

impl Default for OffloadPolicy {
    fn default() -> Self {
        Self { tokens: 500, per_tool: BTreeMap::new(), raw_for: BTreeMap::new() }
    }
}

impl OffloadPolicy {
    /// The same, with texts of more tokens than this offloaded.
    #[must_use]
    pub fn with_tokens(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same, with texts of one tool offloaded when they have more tokens than this; 0 for every text
    /// that is not empty.
    #[must_use]
    pub fn with_tool_tokens(mut self, tool: &str, tokens: usize) -> Self {
        self.per_tool.insert(tool.to_owned(), tokens);
        self
    }

    /// Keeps the results of `producer` raw for `consumer`, as a slide renderer reads a table that
    /// the agent itself sees as a preview.
    #[must_use]
    pub fn keep_raw(mut self, producer: &str, consumer: &str) -> Self {
        self.raw_for.entry(producer.to_owned()).or_default().insert(consumer.to_owned());
        self
    }

    /// Whether a text of this tool is over the tool's threshold.
    pub(crate) fn is_over(&self, tool: &str, text: &str, tokens: &dyn TokenCounter) -> bool {
        let threshold = match self.per_tool.get(tool) {
            Some(threshold) => *threshold,
            None if self.raw_for.contains_key(tool) => 0,
            None => self.tokens,
        };
        // No token is shorter than a byte, so a short text need not be counted.
        text.len() > threshold && tokens.count(text) > threshold
    }

    /// Whether the results of `producer` are kept raw for `consumer`.
    pub(crate) fn is_raw_for(&self, producer: &str, consumer: &str) -> bool {
        self.raw_for.get(producer).is_some_and(|consumers| consumers.contains(consumer))
    }
}
