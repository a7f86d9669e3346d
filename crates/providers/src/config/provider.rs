//! The APIs of providers.

use super::address::host;
use serde::{Deserialize, Serialize};

/// The API that a provider offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// OpenAI's chat-completions, as OpenAI serves it.
    #[serde(rename = "openai")]
    OpenAi,
    /// Chat-completions as others serve it: vLLM, llama.cpp, Ollama, DeepSeek, a gateway.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// Anthropic's Messages API.
    Anthropic,
}

impl Provider {
    /// All values.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::OpenAiCompatible, Self::Anthropic];

    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
        }
    }

    /// Returns its default address, if it has one.
    #[must_use]
    pub fn usual_base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1/"),
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::OpenAiCompatible => None,
        }
    }

    /// Returns the environment variable that usually holds its key.
    #[must_use]
    pub fn usual_key(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAiCompatible => None,
        }
    }

    /// Infers the provider of a model from its base URL, or else from its name.
    pub(super) fn infer(name: &str, base_url: Option<&str>) -> Option<Self> {
        if let Some(base_url) = base_url {
            let is_at =
                |provider: Self| provider.usual_base_url().map(host) == Some(host(base_url));
            let path = base_url.trim_end_matches('/').trim_end_matches("/v1");
            // Others that offer Anthropic's API serve it under such a path.
            return Some(if is_at(Self::Anthropic) || path.ends_with("/anthropic") {
                Self::Anthropic
            } else if is_at(Self::OpenAi) {
                Self::OpenAi
            } else {
                Self::OpenAiCompatible
            });
        }
        Self::of_name(name)
    }

    /// Returns the provider of a model of this name, if the name shows it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let of_openai = ["gpt-", "chatgpt-", "o1", "o3", "o4"];
        if name.starts_with("claude-") {
            Some(Self::Anthropic)
        } else if of_openai.iter().any(|beginning| name.starts_with(beginning)) {
            Some(Self::OpenAi)
        } else {
            None
        }
    }
}
