//! The APIs that clients use.

use axum::http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};

/// The API that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Api {
    /// `POST /v1/messages`, of Anthropic.
    Messages,
    /// `POST /v1/chat/completions`, of OpenAI and every server that speaks it.
    ChatCompletions,
    /// `POST /v1/responses`, of OpenAI.
    Responses,
    /// All other requests to Anthropic: lists of models, token counts, files.
    OtherAnthropic,
    /// All other requests to OpenAI, or to a server like it.
    OtherOpenAi,
}

impl Api {
    /// Returns the API of a request. Paths that both providers have are distinguished by the header that only
    /// one of them requires.
    pub(crate) fn of(method: &Method, path: &str, headers: &HeaderMap) -> Self {
        let path = path.trim_end_matches('/');
        let is_post = method == Method::POST;
        match path.strip_prefix("/v1").unwrap_or(path) {
            "/messages" if is_post => Self::Messages,
            "/chat/completions" if is_post => Self::ChatCompletions,
            "/responses" if is_post => Self::Responses,
            // Claude Code uses the second to check whether a server is there.
            other if other.starts_with("/messages") || other == "/api/hello" => {
                Self::OtherAnthropic
            }
            _ if ["anthropic-version", "x-api-key"]
                .iter()
                .any(|name| headers.contains_key(*name)) =>
            {
                Self::OtherAnthropic
            }
            _ => Self::OtherOpenAi,
        }
    }

    /// Returns whether it is one of Anthropic's.
    #[must_use]
    pub fn is_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::OtherAnthropic)
    }

    /// Returns whether its requests hold a conversation.
    #[must_use]
    pub fn has_conversation(self) -> bool {
        matches!(self, Self::Messages | Self::ChatCompletions | Self::Responses)
    }
}
