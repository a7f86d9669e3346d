//! What a model is asked.

use foldback_core::{Message, Prompt, ToolDefinition};
use std::sync::Arc;

/// A request to a model, neutral between providers.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The messages, in order.
    pub messages: Vec<Arc<Message>>,
    /// The tools that are declared. They stay the same for a whole session; what may be called now
    /// is [`tool_choice`](Self::tool_choice).
    pub tools: Vec<ToolDefinition>,
    /// Which of them the model may call now.
    pub tool_choice: ToolChoice,
    /// Indexes into `messages` behind which a cached prefix ends, ascending.
    pub cache_marks: Vec<usize>,
    /// How many messages at the end change from call to call.
    pub volatile: usize,
    /// How the answer is drawn.
    pub sampling: Sampling,
    /// The session that the request belongs to; requests of one session share a cached prefix.
    pub session: Option<String>,
    /// A name for this call, the same when the call is made again after its process was killed.
    pub id: Option<String>,
}

/// Which tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any, or none: the model decides.
    #[default]
    Auto,
    /// Any, but it has to call one.
    Required,
    /// None: it has to answer in words.
    ReplyOnly,
    /// Some of them.
    Allowed(AllowedTools),
}

/// A part of the declared tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTools {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Whether one of them has to be called.
    pub required: bool,
    /// The one to prefer, where the model may as well call another.
    pub preferred: Option<String>,
}

/// How an answer is drawn. What is not set is the provider's own choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// 0 for the likeliest, 1 as the model was trained.
    pub temperature: Option<f64>,
    /// The greatest number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// For providers that draw the same answer for the same seed.
    pub seed: Option<u64>,
}

impl From<Prompt> for ChatRequest {
    fn from(prompt: Prompt) -> Self {
        Self {
            messages: prompt.messages,
            tools: prompt.tools,
            cache_marks: prompt.cache_marks,
            volatile: prompt.volatile,
            ..Self::default()
        }
    }
}
