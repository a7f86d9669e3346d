//! What a provider caches, for how long and at which prices.

use crate::Api;
use crate::conversation::Terms;
use crate::fold::LONGEST_QUESTION;
use foldback::CacheAware;
use foldback_providers::{CacheTerms, ModelConfig, Provider};
use std::time::Duration;

/// The price of writing a prefix that is kept for an hour
/// (docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const LONG_WRITE: f64 = 2.0;

/// A conversation with more messages or tokens is always folded: models with smaller windows are rare.
const MOST: (usize, u64) = (4_096, 120_000);

/// Returns the terms in the providers' lists for the model that a request names. For an unknown server, OpenAI's
/// rules are used: it caches by itself, and writing costs nothing extra.
pub(crate) fn usual(api: Api, terms: &Terms) -> CacheTerms {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let provider = if api == Api::Messages { Provider::Anthropic } else { Provider::OpenAi };
    let model = ModelConfig::new(provider, "", &terms.model);
    let (mut prices, least) = (model.prices, model.least_cached_tokens);
    let life = match (api, terms.is_long) {
        (Api::Messages, true) => {
            prices.write = LONG_WRITE;
            minutes(60)
        }
        (Api::Messages, false) => minutes(5),
        // "Typically 5 to 10 minutes of inactivity" (platform.openai.com/docs/guides/prompt-caching).
        _ => minutes(10),
    };
    CacheTerms { prices, least, life }
}

/// Returns the settings of the fold policy on these terms, for an agent that has the memory's tools or is given them.
pub(crate) fn policy(terms: CacheTerms, has_tools: bool) -> CacheAware {
    let policy = CacheAware::default().with_least_cached(terms.least).with_everything_cached();
    let policy = policy.with_question_kept(LONGEST_QUESTION);
    let policy = if has_tools { policy.with_tools_elsewhere() } else { policy };
    let policy = policy.with_most(MOST.0, MOST.1).unwrap_or(policy);
    policy.with_prices(terms.prices).unwrap_or(policy)
}
