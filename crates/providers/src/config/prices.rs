//! What providers charge for input tokens, as far as the name of a model shows.

use super::Provider;
use foldback_core::Prices;
use std::time::Duration;

/// The price of writing a prefix that lives an hour, in place of 1.25
/// (docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const LONG_CACHE_WRITE: f64 = 2.0;

/// Returns the usual prices of input tokens, with prefixes that live long if `is_long`. A self-hosted server charges the
/// same for all.
pub(super) fn usual_prices(provider: Provider, name: &str, is_long: bool) -> Prices {
    match provider {
        Provider::Anthropic => {
            let usual = Prices::default();
            Prices { write: if is_long { LONG_CACHE_WRITE } else { usual.write }, ..usual }
        }
        Provider::OpenAi => Prices {
            read: openai_read(name),
            write: if is_marked_openai(name) { 1.25 } else { 1.0 },
            plain: 1.0,
        },
        Provider::OpenAiCompatible => Prices { read: 1.0, write: 1.0, plain: 1.0 },
    }
}

/// Returns the price of a cached input token at OpenAI as a fraction of the plain price: the column
/// "cached input" of its price list (developers.openai.com/api/docs/pricing), by family. A model that
/// is unknown, or that has no such price, like the `-pro` models, is taken to have no discount.
fn openai_read(name: &str) -> f64 {
    let is_of = |families: &[&str]| families.iter().any(|family| name.starts_with(family));
    if name.contains("-pro") {
        1.0
    } else if openai_version(name).is_some_and(|version| version >= (5, 0)) {
        0.1
    } else if is_of(&["gpt-4o", "o1", "o3-mini"]) {
        0.5
    } else if is_of(&["gpt-4.1", "o3", "o4-mini"]) {
        0.25
    } else {
        1.0
    }
}

/// Returns the shortest prefix that providers cache, in tokens, by the families in Anthropic's and
/// OpenAI's lists (docs.anthropic.com/en/docs/build-with-claude/prompt-caching,
/// platform.openai.com/docs/guides/prompt-caching). Self-hosted servers are assumed to do the same.
pub(super) fn usual_least_cached(provider: Provider, name: &str) -> u64 {
    let is_of = |families: &[&str]| families.iter().any(|family| name.contains(family));
    match provider {
        Provider::Anthropic if is_of(&["opus-4-5", "opus-4-6", "haiku-4-5"]) => 4_096,
        Provider::Anthropic if is_of(&["haiku-3", "3-haiku", "3-5-haiku"]) => 2_048,
        _ => 1_024,
    }
}

/// Returns how long providers keep a prefix that nobody reads: five minutes at Anthropic, or an hour if that is asked
/// for; "typically 5 to 10 minutes of inactivity" at OpenAI (the same pages). A self-hosted server keeps it until its
/// room is needed.
pub(super) fn usual_cache_life(provider: Provider, is_long: bool) -> Duration {
    match provider {
        Provider::Anthropic if is_long => Duration::from_secs(3_600),
        Provider::Anthropic => Duration::from_secs(300),
        Provider::OpenAi => Duration::from_secs(600),
        Provider::OpenAiCompatible => Duration::MAX,
    }
}

/// Returns whether an OpenAI model accepts marks and charges for cache writes: from GPT-5.6 on.
pub(crate) fn is_marked_openai(name: &str) -> bool {
    openai_version(name).is_some_and(|version| version >= (5, 6))
}

/// Returns the version in a name such as `gpt-5.6-mini`, as major and minor.
fn openai_version(name: &str) -> Option<(u32, u32)> {
    let version = name.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}
