//! The other parts of a request, besides messages and tools.

/// The options of a request body besides its messages and tools. By default there are none, and the
/// sender adds the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The model to use. Both APIs require one.
    pub model: Option<String>,
    /// The maximum number of tokens of the answer. The Anthropic API requires it; the
    /// chat-completions API takes it as `max_completion_tokens`.
    pub max_tokens: Option<u32>,
}
