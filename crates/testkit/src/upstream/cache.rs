//! A provider's cache: what of a request it has seen before, and what that costs.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How a provider caches, and what it asks for input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheTerms {
    /// What a token costs that is read from the cache.
    pub read: f64,
    /// What a token costs that is written into it.
    pub write: f64,
    /// How many seconds a prefix lives that nobody reads.
    pub life: u64,
    /// The shortest prefix that is cached, in tokens.
    pub least: u64,
}

impl Default for CacheTerms {
    /// Anthropic's prices, and five minutes.
    fn default() -> Self {
        Self { read: 0.1, write: 1.25, life: 300, least: 1_024 }
    }
}

/// What was billed, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Billed {
    /// How many requests.
    pub requests: u64,
    /// Tokens that were read from the cache.
    pub read: u64,
    /// Tokens that were written into it.
    pub written: u64,
    /// Tokens that it had no part in.
    pub plain: u64,
    /// What they cost, in plain tokens.
    pub cost: f64,
}

/// What a provider has cached, and what it has billed.
#[derive(Debug, Default)]
pub struct ProviderCache {
    terms: CacheTerms,
    /// Until when each prefix lives.
    prefixes: HashMap<u64, u64>,
    billed: Billed,
}

impl ProviderCache {
    /// An empty one.
    #[must_use]
    pub fn new(terms: CacheTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Takes a request at a time in seconds. Gives the tokens that are read, written and neither.
    ///
    /// The tools, the instructions and each block of each message are a piece; a piece of four bytes is a token. Of
    /// Anthropic's requests the pieces up to the last mark are cached, of others all. A mark itself is no content,
    /// and neither is whether a text stands in a block of its own.
    pub fn take(&mut self, body: &Value, at: u64) -> (u64, u64, u64) {
        let is_anthropic = body.get("max_tokens").is_some() && body.get("input").is_none();
        let mut pieces = Vec::new();
        pieces_of(&body["tools"], "", &mut pieces);
        for key in ["system", "instructions"] {
            pieces_of(&body[key], "", &mut pieces);
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            let rest: Vec<_> = message.as_object().into_iter().flatten().collect();
            let rest = rest.iter().filter(|(key, _)| !matches!(key.as_str(), "content"));
            let said_by: String = rest.map(|(key, value)| format!("{key}{value}")).collect();
            pieces_of(&message["content"], &said_by, &mut pieces);
        }
        pieces_of(&body["input"], "", &mut pieces);
        let last = pieces.iter().rposition(|piece| piece.is_marked || !is_anthropic);
        let (mut hasher, mut tokens) = (DefaultHasher::new(), 0);
        let (mut read, mut cached, mut seen) = (0, 0, Vec::new());
        for (n, piece) in pieces.iter().enumerate() {
            piece.text.hash(&mut hasher);
            tokens += piece.text.len() as u64 / 4;
            if last.is_some_and(|last| n <= last) && tokens >= self.terms.least {
                let prefix = hasher.finish();
                if self.prefixes.get(&prefix).is_some_and(|until| at <= *until) {
                    read = tokens;
                }
                cached = tokens;
                seen.push(prefix);
            }
        }
        for prefix in seen {
            self.prefixes.insert(prefix, at + self.terms.life);
        }
        let (written, plain) = (cached - read, tokens - cached);
        let billed = &mut self.billed;
        billed.requests += 1;
        billed.read += read;
        billed.written += written;
        billed.plain += plain;
        billed.cost +=
            self.terms.read * read as f64 + self.terms.write * written as f64 + plain as f64;
        (read, written, plain)
    }

    /// What was billed so far.
    #[must_use]
    pub fn billed(&self) -> Billed {
        self.billed
    }
}

struct Piece {
    text: String,
    is_marked: bool,
}

/// The pieces of a list, or the one of any other value.
fn pieces_of(value: &Value, said_by: &str, pieces: &mut Vec<Piece>) {
    let mut piece = |value: &Value| {
        let mut value = value.clone();
        let marks = value.as_object_mut().and_then(|object| object.shift_remove("cache_control"));
        let text = format!("{said_by}{value}");
        pieces.push(Piece { text, is_marked: marks.is_some_and(|mark| !mark.is_null()) });
    };
    match value {
        Value::Null => {}
        Value::Array(list) => list.iter().for_each(piece),
        Value::String(text) => piece(&json!({ "type": "text", "text": text })),
        other => piece(other),
    }
}
