//! The tokens of an exchange, as its provider counts them.

use crate::Api;
use crate::model_answer::events;
use foldback_core::Prices;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::AddAssign;

/// The usage of one or several exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: Tokens,
    pub(crate) output: u64,
}

/// The tokens of a request, by what the provider's cache did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// Those that were read from the cache.
    pub read: u64,
    /// Those that were written into it, and are billed for that.
    pub written: u64,
    /// All others.
    pub plain: u64,
}

impl Usage {
    /// Returns the usage that an answer reports, streamed or not; `None` if it reports none. For a stream that broke
    /// off, what it reported until then.
    pub(crate) fn of(api: Api, answer: &str) -> Option<Self> {
        let mut usage = Self::default();
        match answer.trim_start().starts_with('{') {
            true => usage.take(api, &serde_json::from_str(answer).ok()?),
            false => events(answer).for_each(|event| usage.take(api, &event)),
        }
        Some(usage).filter(|usage| usage.input.total() > 0)
    }

    /// Returns the sum; `None` of none.
    pub(crate) fn sum(usages: &[Self]) -> Option<Self> {
        let mut sum = *usages.first()?;
        usages.iter().skip(1).for_each(|usage| sum += *usage);
        Some(sum)
    }

    /// Updates it from an answer, or an event of one. Missing counts stay as they were.
    pub(crate) fn take(&mut self, api: Api, said: &Value) {
        let places = ["/usage", "/message/usage", "/response/usage"];
        let Some(said) = places.iter().find_map(|place| said.pointer(place)) else { return };
        let Tokens { read, written, plain } = &mut self.input;
        let count = |path: &str| said.pointer(path).and_then(Value::as_u64);
        let set = |into: &mut u64, count: Option<u64>| *into = count.unwrap_or(*into);
        if api == Api::Messages {
            set(read, count("/cache_read_input_tokens"));
            set(written, count("/cache_creation_input_tokens"));
            set(plain, count("/input_tokens"));
            return set(&mut self.output, count("/output_tokens"));
        }
        let (input, output) = match api {
            Api::Responses => ("/input_tokens", "/output_tokens"),
            _ => ("/prompt_tokens", "/completion_tokens"),
        };
        let detail = |key: &str| count(&format!("{input}_details/{key}"));
        // The second is DeepSeek's.
        set(read, detail("cached_tokens").or_else(|| count("/prompt_cache_hit_tokens")));
        set(written, detail("cache_write_tokens"));
        // OpenAI's input count includes the cached tokens.
        let cached = read.saturating_add(*written);
        set(plain, count(input).map(|all| all.saturating_sub(cached)));
        set(&mut self.output, count(output));
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output = self.output.saturating_add(other.output);
    }
}

impl Tokens {
    /// Creates the counts.
    #[must_use]
    pub fn new(read: u64, written: u64, plain: u64) -> Self {
        Self { read, written, plain }
    }

    /// Returns the total.
    #[must_use]
    pub fn total(self) -> u64 {
        self.read.saturating_add(self.written).saturating_add(self.plain)
    }

    /// Returns what they cost.
    pub(crate) fn cost(self, prices: Prices) -> f64 {
        let Self { read, written, plain } = self;
        prices.read * read as f64 + prices.write * written as f64 + prices.plain * plain as f64
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.plain = self.plain.saturating_add(other.plain);
    }
}

#[cfg(test)]
mod tests {
    use super::{Tokens, Usage};
    use crate::Api;

    #[test]
    fn gw15_each_provider_counts_in_its_own_way() {
        let of = |api, answer: &str| {
            Usage::of(api, answer).map(
                |Usage { input: Tokens { read, written, plain }, output }| {
                    (read, written, plain, output)
                },
            )
        };
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\n";
        assert_eq!(of(Api::Messages, stream), Some((100, 20, 3, 1)), "it broke off");
        let end = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9,\"cache_read_input_tokens\":null}}\n\n";
        assert_eq!(of(Api::Messages, &format!("{stream}{end}")), Some((100, 20, 3, 9)));
        let chat = r#"{"usage":{"prompt_tokens":50,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":30}}}"#;
        assert_eq!(of(Api::ChatCompletions, chat), Some((30, 0, 20, 4)));
        let chunks = "data: {\"choices\":[],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"prompt_cache_hit_tokens\":8}}\n\ndata: [DONE]\n\n";
        assert_eq!(of(Api::ChatCompletions, chunks), Some((8, 0, 42, 0)));
        let response = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":50,\"output_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":30,\"cache_write_tokens\":15}}}}\n\n";
        assert_eq!(of(Api::Responses, response), Some((30, 15, 5, 4)));
        for silent in
            ["", "{}", "{\"usage\":{\"prompt_tokens\":0}}", "data: [DONE]\n\n", "{\"usage\":"]
        {
            assert_eq!(of(Api::ChatCompletions, silent), None, "{silent}");
        }
    }
}
