//! What a model is asked.

use crate::{ModelError, ModelErrorKind};
use foldback_core::{Message, Prompt, ToolDefinition};
use std::sync::Arc;

/// A request to a model, neutral between providers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The messages, in order.
    pub messages: Vec<Arc<Message>>,
    /// The declared tools. They stay the same for a whole session; what may be called now is
    /// [`tool_choice`](Self::tool_choice).
    pub tools: Vec<ToolDefinition>,
    /// Which of them the model may call now.
    pub tool_choice: ToolChoice,
    /// Indexes into `messages` after which a cached prefix ends, ascending.
    pub cache_marks: Vec<usize>,
    /// How many messages at the end change from call to call.
    pub volatile: usize,
    /// How the answer is sampled.
    pub sampling: Sampling,
    /// The session that the request belongs to; requests of one session share a cached prefix.
    pub session: Option<String>,
    /// A name for this call, the same if the call is repeated after its process was killed.
    pub id: Option<String>,
}

impl ChatRequest {
    /// Creates a request of these messages; everything else is the provider's default.
    ///
    /// ```
    /// use foldback_core::Message;
    /// use foldback_llm::{ChatRequest, Sampling};
    ///
    /// let request = ChatRequest::new([Message::system("Be brief."), Message::user("你好")])
    ///     .with_sampling(Sampling::default().with_temperature(0.0));
    /// assert_eq!(request.messages.len(), 2);
    /// ```
    pub fn new(messages: impl IntoIterator<Item = impl Into<Arc<Message>>>) -> Self {
        Self::default().with_messages(messages)
    }

    /// Sets the messages.
    #[must_use]
    pub fn with_messages(
        self,
        messages: impl IntoIterator<Item = impl Into<Arc<Message>>>,
    ) -> Self {
        Self { messages: messages.into_iter().map(Into::into).collect(), ..self }
    }

    /// Declares these tools.
    #[must_use]
    pub fn with_tools(self, tools: Vec<ToolDefinition>) -> Self {
        Self { tools, ..self }
    }

    /// Sets the choice of tools.
    #[must_use]
    pub fn with_tool_choice(self, tool_choice: ToolChoice) -> Self {
        Self { tool_choice, ..self }
    }

    /// Sets the [cache marks](Self::cache_marks).
    #[must_use]
    pub fn with_cache_marks(self, cache_marks: Vec<usize>) -> Self {
        Self { cache_marks, ..self }
    }

    /// Sets how many messages at the end change from call to call.
    #[must_use]
    pub fn with_volatile(self, volatile: usize) -> Self {
        Self { volatile, ..self }
    }

    /// Sets how the answer is sampled.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Sets the session.
    #[must_use]
    pub fn with_session(self, session: impl Into<String>) -> Self {
        Self { session: Some(session.into()), ..self }
    }

    /// Sets the name of this call.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Refuses a choice of tools that does not fit the declared ones, as providers do.
    ///
    /// # Errors
    /// When the choice names a tool that is not declared, or requires a call although no tool may be
    /// called.
    pub fn check_tool_choice(&self) -> Result<(), ModelError> {
        let refused = |message| Err(ModelError::new(ModelErrorKind::Request, message));
        if self.tools.is_empty() {
            // A choice that names tools is not sent if there are none.
            return if self.tool_choice.must_call() {
                refused("a tool call is required, but the request declares no tools".to_owned())
            } else {
                Ok(())
            };
        }
        let ToolChoice::Allowed(allowed) = &self.tool_choice else { return Ok(()) };
        let is_declared = |name: &String| self.tools.iter().any(|tool| tool.name == *name);
        if let Some(unknown) = allowed.names.iter().find(|name| !is_declared(name)) {
            return refused(format!(
                "the tool {unknown:?} is allowed, but the request does not declare it"
            ));
        }
        if allowed.required && allowed.names.is_empty() {
            return refused("a tool call is required, but no tool is allowed".to_owned());
        }
        Ok(())
    }
}

/// Which tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any, or none: the model decides.
    #[default]
    Auto,
    /// Any, but the model must call one.
    Required,
    /// None: the model must answer in words.
    ReplyOnly,
    /// Some of them.
    Allowed(AllowedTools),
}

impl ToolChoice {
    /// Returns whether the model must call a tool.
    #[must_use]
    pub fn must_call(&self) -> bool {
        match self {
            Self::Required => true,
            Self::Allowed(allowed) => allowed.required,
            Self::Auto | Self::ReplyOnly => false,
        }
    }
}

/// A part of the declared tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTools {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Whether one of them must be called.
    pub required: bool,
    /// The preferred tool; the model may still call another.
    pub preferred: Option<String>,
}

/// How an answer is sampled. What is not set is the provider's default.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// 0 for the most likely token, 1 for the model's own distribution.
    pub temperature: Option<f64>,
    /// The greatest number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// The seed, for providers that give the same answer for the same seed.
    pub seed: Option<u64>,
}

impl Sampling {
    /// Sets the temperature; `None` for the provider's default.
    #[must_use]
    pub fn with_temperature(self, temperature: impl Into<Option<f64>>) -> Self {
        Self { temperature: temperature.into(), ..self }
    }

    /// Limits the answer to this many tokens; `None` for the provider's default.
    #[must_use]
    pub fn with_max_tokens(self, max_tokens: impl Into<Option<u32>>) -> Self {
        Self { max_tokens: max_tokens.into(), ..self }
    }

    /// Sets the texts that end the answer.
    #[must_use]
    pub fn with_stop(self, stop: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { stop: stop.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the seed; `None` for none.
    #[must_use]
    pub fn with_seed(self, seed: impl Into<Option<u64>>) -> Self {
        Self { seed: seed.into(), ..self }
    }
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
