//! What a provider counts.

use super::edits::{Edits, members};
use crate::Api;
use serde_json::Value;

/// Tokens, as a provider counts and bills them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Neither read from its cache nor written to it.
    pub(crate) input: u64,
    /// Read from its cache.
    pub(crate) cached: u64,
    /// Written to its cache.
    pub(crate) written: u64,
    pub(crate) output: u64,
    /// In so many requests.
    pub(crate) requests: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.cached += other.cached;
        self.written += other.written;
        self.output += other.output;
        self.requests += other.requests;
    }

    /// Takes what an answer, or a piece of one, says. What it leaves out is as it was.
    pub(super) fn read(&mut self, api: Api, usage: &Value) {
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let take = |into: &mut u64, given: Option<u64>| *into = given.unwrap_or(*into);
        let (all, cached, output) = match api {
            Api::Messages => {
                take(&mut self.input, number("/input_tokens"));
                take(&mut self.written, number("/cache_creation_input_tokens"));
                (None, "/cache_read_input_tokens", "/output_tokens")
            }
            Api::ChatCompletions => (
                number("/prompt_tokens"),
                "/prompt_tokens_details/cached_tokens",
                "/completion_tokens",
            ),
            _ => (number("/input_tokens"), "/input_tokens_details/cached_tokens", "/output_tokens"),
        };
        take(&mut self.cached, number(cached));
        take(&mut self.output, number(output));
        // Elsewhere than with Anthropic the input is counted with what was cached of it.
        take(&mut self.input, all.map(|all| all.saturating_sub(self.cached)));
    }

    /// How it stands in the answer for a client that knows of one request alone: the output is that of all requests,
    /// and the input, by which clients judge how full the context is, that of the last.
    pub(super) fn told(&self, api: Api, usage: &str, earlier: &Self) -> String {
        let Some(members) = members(usage) else { return usage.to_owned() };
        let mut edits = Edits::new(usage);
        let output =
            if api == Api::ChatCompletions { "completion_tokens" } else { "output_tokens" };
        for key in [output, "total_tokens"] {
            let own = members.get(key).and_then(|own| own.get().parse::<u64>().ok());
            if let Some(own) = own {
                edits.set(&members, key, &(own + earlier.output).to_string());
            }
        }
        if api == Api::Messages {
            for (key, value) in [
                ("input_tokens", self.input),
                ("cache_creation_input_tokens", self.written),
                ("cache_read_input_tokens", self.cached),
            ] {
                edits.set(&members, key, &value.to_string());
            }
        }
        edits.finish()
    }
}
