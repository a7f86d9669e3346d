//! The model's window, and the part of it that an answer may take.

use super::{ModelConfig, Provider, wrong};
use foldback_llm::ModelError;

/// The limit on the tokens of an answer from a self-hosted server: some models never stop by themselves.
const LONGEST_ANSWER: u32 = 4_096;

/// In a small window, an answer may take one of this many parts: servers such as vLLM refuse a request
/// that leaves no room for its longest answer.
const ANSWER_PART: usize = 4;

/// The smallest window in which an agent can work: short instructions and a few tools take some 850 tokens
/// of it, and an answer a quarter.
const SMALLEST_WINDOW: usize = 2_048;

impl ModelConfig {
    /// Returns the limit on the tokens of an answer that has no other limit. The models of OpenAI and
    /// Anthropic stop by themselves, and their limits count thinking as well: they have no limit by default.
    #[must_use]
    pub fn longest_answer(&self) -> Option<u32> {
        let room = self.context_tokens.map_or(usize::MAX, |window| window / ANSWER_PART);
        let usual = u32::try_from(room).unwrap_or(u32::MAX).min(LONGEST_ANSWER);
        self.max_tokens.or((self.provider == Provider::OpenAiCompatible).then_some(usual))
    }

    /// Refuses a window that is too small for an agent, and an answer that is too long for the window.
    pub(crate) fn check_window(&self) -> Result<(), ModelError> {
        let name = &self.name;
        if self.max_tokens == Some(0) {
            return Err(wrong(format!(
                "max_tokens of the model {name:?} is 0, but an answer has at least one token"
            )));
        }
        let Some(window) = self.context_tokens else { return Ok(()) };
        if window < SMALLEST_WINDOW {
            let needed =
                format!("but instructions, tools and an answer need at least {SMALLEST_WINDOW}");
            return Err(wrong(if self.is_window_told {
                format!(
                    "the server of the model {name:?} has a window of {window} tokens, {needed}: start it \
                     with a larger one (llama.cpp: -c 8192, which -np N divides by N)"
                )
            } else {
                format!("context_tokens of the model {name:?} is {window}, {needed}")
            }));
        }
        match self.max_tokens {
            Some(answer) if answer as usize >= window => Err(wrong(format!(
                "max_tokens of the model {name:?} is {answer}, but its window (context_tokens), which \
                 holds the request as well, has {window} tokens: a quarter of that is usual"
            ))),
            _ => Ok(()),
        }
    }
}
