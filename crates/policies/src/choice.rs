//! A context policy as a user names it: one of them, or the one that the prices choose.

use crate::Policy;
use foldback::FoldPolicy;
use foldback_core::CacheTerms;
use std::fmt;
use std::str::FromStr;

/// A context policy requested by name.
#[derive(Clone, Copy, Debug)]
pub enum PolicyChoice {
    /// `auto`: the cheaper of the memory's own policies, which is `foldback` (strict) if all tokens have one price, and
    /// `foldback-cache-aware` if one that is read from the provider's cache costs less.
    Auto,
    /// This one.
    Named(Policy),
}

impl PolicyChoice {
    /// The name of [`Auto`](Self::Auto).
    pub const AUTO: &str = "auto";

    /// Returns every name that can be read as a choice.
    pub fn names() -> impl Iterator<Item = &'static str> {
        [Self::AUTO].into_iter().chain(Policy::names())
    }

    /// Returns the policy that was named, if one was.
    #[must_use]
    pub fn policy(self) -> Option<Policy> {
        match self {
            Self::Auto => None,
            Self::Named(policy) => Some(policy),
        }
    }

    /// Returns the policy for these terms of a provider.
    #[must_use]
    pub fn at(self, terms: CacheTerms) -> Policy {
        match self {
            Self::Named(policy) => policy,
            Self::Auto => match FoldPolicy::auto(crate::policy::cache_aware(terms)) {
                FoldPolicy::CacheAware(_) => Policy::CacheAware,
                _ => Policy::Foldback,
            },
        }
    }
}

impl FromStr for PolicyChoice {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let unknown = || UnknownPolicy { name: name.to_owned() };
        match name {
            Self::AUTO => Ok(Self::Auto),
            name => Policy::named(name).map(Self::Named).ok_or_else(unknown),
        }
    }
}

/// A name that is not a context policy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: String,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = PolicyChoice::names().collect::<Vec<_>>().join(", ");
        write!(f, "there is no context policy {:?}; the names are {names}", self.name)
    }
}

impl std::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use foldback_core::Prices;

    #[test]
    fn prices_and_the_least_cached_prefix_choose() {
        let auto: PolicyChoice = "auto".parse().unwrap();
        let own = |read, least| {
            let prices = Prices { read, ..Prices::default() };
            auto.at(CacheTerms { prices, least, ..CacheTerms::default() }).name()
        };
        assert_eq!(own(0.1, 1_024), "foldback-cache-aware");
        assert_eq!(own(1.0, 1_024), "foldback", "nothing is saved by the cache");
        assert_eq!(own(0.1, 40_000), "foldback", "no view is so large that it is cached");
    }

    #[test]
    fn every_name_is_read_and_no_other() {
        for name in Policy::names() {
            let choice: PolicyChoice = name.parse().unwrap();
            assert_eq!(choice.at(CacheTerms::default()).name(), name);
        }
        for (short, name) in [("strict", "foldback"), ("cache-aware", "foldback-cache-aware")] {
            let choice: PolicyChoice = short.parse().unwrap();
            assert_eq!(choice.at(CacheTerms::default()).name(), name);
            assert!(Policy::names().all(|known| known != short), "{short} is listed twice");
        }
        let error = "cheapest".parse::<PolicyChoice>().unwrap_err().to_string();
        assert!(
            error.starts_with(
                "there is no context policy \"cheapest\"; the names are auto, foldback,"
            )
        );
    }
}
