//! Decides which parts of a message are stored outside the conversation.

use foldback_core::TokenCounter;
use std::collections::BTreeMap;

/// Which tool results and arguments are offloaded, by their size in estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffloadPolicy {
    /// A text of more tokens than this is offloaded. The default is 500.
    pub tokens: usize,
    /// The same for single tools; 0 offloads every non-empty text of the tool: a deck of slides that
    /// one tool makes and the next one takes is shown as a preview, and handed on by reference.
    pub per_tool: BTreeMap<String, usize>,
}

impl Default for OffloadPolicy {
    fn default() -> Self {
        Self { tokens: 500, per_tool: BTreeMap::new() }
    }
}

impl OffloadPolicy {
    /// Sets the number of tokens above which a text is offloaded.
    #[must_use]
    pub fn with_tokens(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the number of tokens above which one tool's texts are offloaded; 0 for every non-empty text.
    #[must_use]
    pub fn with_tool_tokens(mut self, tool: &str, tokens: usize) -> Self {
        self.per_tool.insert(tool.to_owned(), tokens);
        self
    }

    /// Returns whether a text of this tool is over the tool's threshold.
    pub(crate) fn is_over(&self, tool: &str, text: &str, tokens: &dyn TokenCounter) -> bool {
        let threshold = self.per_tool.get(tool).copied().unwrap_or(self.tokens);
        // No token is shorter than a byte, so a short text need not be counted.
        text.len() > threshold && tokens.count(text) > threshold
    }
}
