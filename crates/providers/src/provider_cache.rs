//! A provider's cache: how much of a request it has seen before, and what that costs.

use foldback_core::CacheTerms;
use foldback_core::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a provider has cached, and what it has billed.
#[derive(Debug, Default)]
pub struct ProviderCache {
    terms: CacheTerms,
    /// When each prefix expires.
    prefixes: HashMap<u64, Timestamp>,
    billed: Billed,
}

impl ProviderCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(terms: CacheTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Processes a request. Returns the tokens that are read, written and neither.
    ///
    /// Each tool, each part of the instructions, and each block and other member of a message is a piece, whose tokens
    /// are those of its texts and of the names in it. Of Anthropic's requests the pieces up to the last mark are
    /// cached, of others all. A mark itself is not content, and neither is whether a text is in a block of its own.
    /// What is read may end with any piece, even if no earlier request had a mark there.
    pub fn take(
        &mut self,
        body: &Value,
        at: Timestamp,
        count: &mut dyn FnMut(&str) -> u64,
    ) -> (u64, u64, u64) {
        let is_anthropic = body.get("max_tokens").is_some() && body.get("input").is_none();
        let pieces = Pieces { list: Vec::new(), count }.of(body);
        let last = pieces.iter().rposition(|piece| piece.is_marked || !is_anthropic);
        let (mut hasher, mut tokens) = (DefaultHasher::new(), 0);
        let (mut read, mut cached, mut seen) = (0, 0, Vec::new());
        for (n, piece) in pieces.iter().enumerate() {
            piece.text.hash(&mut hasher);
            tokens += piece.tokens;
            if last.is_some_and(|last| n <= last) && tokens >= self.terms.least {
                let prefix = hasher.finish();
                if self.prefixes.get(&prefix).is_some_and(|until| at < *until) {
                    read = tokens;
                }
                cached = tokens;
                seen.push(prefix);
            }
        }
        let life = i64::try_from(self.terms.life.as_millis()).unwrap_or(i64::MAX);
        let until = Timestamp(at.0.saturating_add(life));
        self.prefixes.extend(seen.into_iter().map(|prefix| (prefix, until)));
        let (written, plain) = (cached - read, tokens - cached);
        let (prices, billed) = (self.terms.prices, &mut self.billed);
        billed.requests += 1;
        billed.read += read;
        billed.written += written;
        billed.plain += plain;
        billed.cost +=
            prices.read * read as f64 + prices.write * written as f64 + prices.plain * plain as f64;
        (read, written, plain)
    }

    /// Returns what was billed so far.
    #[must_use]
    pub fn billed(&self) -> Billed {
        self.billed
    }
}

/// What was billed, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Billed {
    /// How many requests.
    pub requests: u64,
    /// Tokens that were read from the cache.
    pub read: u64,
    /// Tokens that were written into it.
    pub written: u64,
    /// Tokens that did not involve the cache.
    pub plain: u64,
    /// What they cost, in plain tokens.
    pub cost: f64,
}

struct Piece {
    text: String,
    tokens: u64,
    is_marked: bool,
}

/// The pieces of a request, as they are read.
struct Pieces<'c> {
    list: Vec<Piece>,
    count: &'c mut dyn FnMut(&str) -> u64,
}

impl Pieces<'_> {
    /// Returns those of a request, in the order in which a provider reads it.
    fn of(mut self, body: &Value) -> Vec<Piece> {
        ["tools", "system", "instructions"].iter().for_each(|key| self.add(&body[key]));
        for message in body["messages"].as_array().into_iter().flatten() {
            let mut frame = message.clone();
            let content = frame.as_object_mut().and_then(|frame| frame.shift_remove("content"));
            self.add(&frame);
            self.add(&content.unwrap_or_default());
        }
        self.add(&body["input"]);
        self.list
    }

    /// Adds those of a list, or the one of any other value.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Array(list) => list.iter().for_each(|value| self.push(value.clone())),
            Value::String(text) => self.push(json!({ "type": "text", "text": text })),
            other => self.push(other.clone()),
        }
    }

    fn push(&mut self, mut value: Value) {
        let marks = value.as_object_mut().and_then(|object| object.shift_remove("cache_control"));
        let (text, tokens) = (value.to_string(), self.tokens(&value));
        self.list.push(Piece {
            text,
            tokens,
            is_marked: marks.is_some_and(|mark| !mark.is_null()),
        });
    }

    fn tokens(&mut self, value: &Value) -> u64 {
        match value {
            Value::String(text) => (self.count)(text),
            Value::Array(list) => list.iter().map(|value| self.tokens(value)).sum(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| (self.count)(key) + self.tokens(value)).sum()
            }
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProviderCache;
    use foldback_core::CacheTerms;
    use foldback_core::Timestamp;
    use serde_json::{Value, json};
    use std::time::Duration;

    /// A cache in which each word is a token.
    struct World(ProviderCache);

    impl World {
        fn take(&mut self, body: &Value, seconds: i64) -> (u64, u64, u64) {
            let mut words = |text: &str| text.split_whitespace().count() as u64;
            self.0.take(body, Timestamp(1_000 * seconds), &mut words)
        }
    }

    fn world() -> World {
        let life = Duration::from_secs(300);
        World(ProviderCache::new(CacheTerms { least: 8, life, ..CacheTerms::default() }))
    }

    fn marked(text: &str) -> Value {
        json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }])
    }

    /// The frame of a message is `role` and its value; that of a text `type`, `text` and `text`.
    #[test]
    fn what_was_sent_up_to_the_last_mark_is_read_as_long_as_it_lives() {
        let mut world = world();
        let user = |content: Value| json!({ "role": "user", "content": content });
        let one = json!({ "max_tokens": 1, "messages": [user(marked("a b c d e"))] });
        assert_eq!(world.take(&one, 0), (0, 10, 0));
        let plain = user(json!("a b c d e"));
        let two =
            json!({ "max_tokens": 1, "messages": [plain, user(marked("f")), user(json!("g"))] });
        assert_eq!(
            world.take(&two, 299),
            (10, 6, 6),
            "the mark has moved, and a text lost its block"
        );
        assert_eq!(world.take(&one, 599), (0, 10, 0), "nobody has read it for too long");
        let billed = world.0.billed();
        assert_eq!((billed.requests, billed.read, billed.written, billed.plain), (3, 10, 26, 6));
        assert!((billed.cost - (1.0 + 1.25 * 26.0 + 6.0)).abs() < 1e-9, "{billed:?}");
    }

    #[test]
    fn other_providers_cache_without_marks_and_calls_count() {
        let mut world = world();
        let call = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c 1" }] });
        let user = json!({ "role": "user", "content": "a b" });
        let chat = json!({ "messages": [user, call] });
        assert_eq!(world.take(&chat, 0), (0, 13, 0));
        assert_eq!(world.take(&chat, 1), (13, 0, 0));
        let item = json!({ "type": "message", "content": "a b c d e" });
        assert_eq!(world.take(&json!({ "input": [item], "max_tokens": 1 }), 2), (0, 8, 0));
        assert_eq!(world.take(&json!({ "input": "a b" }), 2), (0, 0, 5), "too short");
    }
}
