//! Whose API is spoken.

use super::address::host;
use serde::{Deserialize, Serialize};

/// Whose API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// OpenAI's chat-completions, as OpenAI serves it.
    #[serde(rename = "openai")]
    OpenAi,
    /// Chat-completions as others serve it: vLLM, llama.cpp, Ollama, DeepSeek, a gateway.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// Anthropic's messages.
    Anthropic,
}

impl Provider {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::OpenAiCompatible, Self::Anthropic];

    /// Its name, as settings say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where it is served, if at one place.
    #[must_use]
    pub fn usual_base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1/"),
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::OpenAiCompatible => None,
        }
    }

    /// The environment variable that usually holds its key.
    #[must_use]
    pub fn usual_key(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAiCompatible => None,
        }
    }

    /// The provider of a model, by its base URL or else by its name.
    pub(super) fn infer(name: &str, base_url: Option<&str>) -> Option<Self> {
        if let Some(base_url) = base_url {
            let is_at =
                |provider: Self| provider.usual_base_url().map(host) == Some(host(base_url));
            let path = base_url.trim_end_matches('/').trim_end_matches("/v1");
            // Others that speak Anthropic's API have it at such a path.
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

    /// The provider of a model of this name, where the name tells.
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
