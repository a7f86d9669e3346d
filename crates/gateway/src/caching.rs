//! What a provider caches, for how long and at which prices.

use crate::Api;
use crate::conversation::Terms;
use crate::fold::LONGEST_QUESTION;
use foldback::CacheAware;
use foldback_core::CacheTerms;
use foldback_providers::{ModelConfig, Provider};

/// A conversation with more messages or tokens is always folded: models with smaller windows are rare.
const MOST: (usize, u64) = (4_096, 120_000);

/// Returns the terms in the providers' lists for the model that a request names. For an unknown server, OpenAI's
/// rules are used: it caches by itself, and writing costs nothing extra.
pub(crate) fn usual(api: Api, terms: &Terms) -> CacheTerms {
    let provider = if api == Api::Messages { Provider::Anthropic } else { Provider::OpenAi };
    ModelConfig::new(provider, "", &terms.model).with_long_cache(terms.is_long).cache_terms()
}

/// Returns the settings of the fold policy on these terms, for an agent that has the memory's tools or is given them.
pub(crate) fn policy(terms: CacheTerms, has_tools: bool) -> CacheAware {
    let policy = CacheAware::default().with_least_cached(terms.least).with_everything_cached();
    let policy = policy.with_question_kept(LONGEST_QUESTION);
    let policy = if has_tools { policy.with_tools_elsewhere() } else { policy };
    let policy = policy.with_most(MOST.0, MOST.1).unwrap_or(policy);
    policy.with_prices(terms.prices).unwrap_or(policy)
}
