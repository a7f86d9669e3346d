//! The shapes in which Python gives messages and gets prompts.

use crate::error::Failure;
use foldback::core::{Message, ToolDefinition};
use foldback_transcript::{Options, anthropic, chat};

/// The API whose messages they are.
#[derive(Clone, Copy)]
pub(crate) enum MessageFormat {
    /// Chat-completions.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

impl MessageFormat {
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            other => {
                let known = "\"openai\" or \"anthropic\"";
                Err(Failure::invalid(format!("the format is {known}, and not {other:?}")))
            }
        }
    }

    /// Reads a message, which may be several of ours.
    pub(crate) fn read(self, json: &str) -> Result<Vec<Message>, Failure> {
        match self {
            Self::OpenAi => Ok(vec![Message::from_json(json).map_err(Failure::invalid)?]),
            Self::Anthropic => anthropic::read_message(json).map_err(Failure::invalid),
        }
    }

    /// The body of a request, without a model's name.
    pub(crate) fn body<'m>(
        self,
        messages: impl IntoIterator<Item = &'m Message>,
        tools: &[ToolDefinition],
    ) -> String {
        match self {
            Self::OpenAi => chat::body(messages, tools, &Options::default()),
            Self::Anthropic => anthropic::body(messages, tools, &Options::default()),
        }
    }
}
