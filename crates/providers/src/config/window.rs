//! The model's window, and the part of it that an answer may take.

use super::{ModelConfig, Provider, wrong};
use foldback_llm::ModelError;

/// The greatest number of tokens of an answer of a server of one's own: some models never end by
/// themselves.
const LONGEST_ANSWER: u32 = 4_096;

/// Of a small window, an answer takes one of so many parts: servers such as vLLM refuse a request that has
/// no room for the whole of its answer.
const ANSWER_PART: usize = 4;

/// The smallest window that an agent can work in: short instructions and few tools take some 850 tokens of
/// it, and an answer a quarter.
const SMALLEST_WINDOW: usize = 2_048;

impl ModelConfig {
    /// The greatest number of tokens of an answer that is not bounded otherwise. The models of OpenAI and
    /// Anthropic end by themselves, and count thoughts as well: they have none by themselves.
    #[must_use]
    pub fn longest_answer(&self) -> Option<u32> {
        let room = self.context_tokens.map_or(usize::MAX, |window| window / ANSWER_PART);
        let usual = u32::try_from(room).unwrap_or(u32::MAX).min(LONGEST_ANSWER);
        self.max_tokens.or((self.provider == Provider::OpenAiCompatible).then_some(usual))
    }

    /// Refuses a window that an agent has no room in, and an answer that the window has no room for.
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
