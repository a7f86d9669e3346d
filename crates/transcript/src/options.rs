//! What a request holds besides messages and tools.

/// What a request body says besides its messages and tools. By default it says nothing more, and
/// whoever sends it adds the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The model to ask. Both APIs want one.
    pub model: Option<String>,
    /// The greatest number of tokens to answer with. The Anthropic API wants it; the
    /// chat-completions API takes it as `max_completion_tokens`.
    pub max_tokens: Option<u32>,
}
