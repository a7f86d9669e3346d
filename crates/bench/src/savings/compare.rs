//! The memory's savings against each rival.

use super::figures::rounded;
use super::{Config, Figures, Group, Measured};
use crate::quantile::quantile;
use serde::Serialize;

/// The length class of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Length {
    /// Under 10,000 tokens.
    #[serde(rename = "under 10k")]
    Short,
    /// From 10,000 tokens on.
    #[serde(rename = "10-30k")]
    Middle,
    /// From 30,000 tokens on.
    #[serde(rename = "30-100k")]
    Long,
    /// From 100,000 tokens on.
    #[serde(rename = "over 100k")]
    VeryLong,
}

impl Length {
    /// All classes, the shortest first.
    pub const ALL: [Self; 4] = [Self::Short, Self::Middle, Self::Long, Self::VeryLong];

    /// Returns the class of a conversation of this many tokens.
    #[must_use]
    pub fn of(tokens: u64) -> Self {
        match tokens {
            0..10_000 => Self::Short,
            10_000..30_000 => Self::Middle,
            30_000..100_000 => Self::Long,
            _ => Self::VeryLong,
        }
    }

    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "under 10k",
            Self::Middle => "10-30k",
            Self::Long => "30-100k",
            Self::VeryLong => "over 100k",
        }
    }
}

/// The distribution of a share over conversations. A share of 0.6 is 60 % saved; one below 0 is dearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the conversations are at or above it.
    pub median: f64,
    /// Nine tenths are at or above it.
    pub p10: f64,
    /// One tenth is at or above it.
    pub p90: f64,
    /// The lowest.
    pub least: f64,
    /// The share over all conversations together.
    pub in_sum: f64,
}

impl Spread {
    /// Returns the shares that were saved. Each pair holds the spending, and the rival's spending.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Self {
        let saved = |(own, rival): (f64, f64)| if rival > 0.0 { 1.0 - own / rival } else { 0.0 };
        let mut shares: Vec<f64> = pairs.iter().map(|pair| saved(*pair)).collect();
        shares.sort_by(f64::total_cmp);
        let sums = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        Self {
            median: quantile(&shares, 0.5),
            p10: quantile(&shares, 0.1),
            p90: quantile(&shares, 0.9),
            least: quantile(&shares, 0.0),
            in_sum: saved(sums),
        }
    }

    /// Returns the same, rounded to four places.
    fn rounded(self) -> Self {
        Self {
            median: rounded(self.median),
            p10: rounded(self.p10),
            p90: rounded(self.p90),
            least: rounded(self.least),
            in_sum: rounded(self.in_sum),
        }
    }
}

/// A memory policy's savings against a rival, recalls included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The policy.
    pub policy: &'static str,
    /// The rival.
    pub rival: &'static str,
    /// The group of the conversations.
    pub kind: Group,
    /// Their length; `None` for any.
    pub length: Option<Length>,
    /// The number of conversations.
    pub conversations: u64,
    /// The input tokens that were saved.
    pub input: Spread,
    /// The cost that was saved.
    pub cost: Spread,
}

/// Compares each policy of the memory with each rival; classes without a conversation are left out.
pub(super) fn comparisons(config: &Config, conversations: &[Measured]) -> Vec<Comparison> {
    let own = || config.policies.iter().filter(|policy| policy.is_foldback());
    let rivals = || config.policies.iter().filter(|policy| !policy.is_foldback());
    let mut comparisons = Vec::new();
    for kind in Group::ALL {
        for length in [None].into_iter().chain(Length::ALL.map(Some)) {
            let fits = |one: &&Measured| {
                one.group == kind && length.is_none_or(|length| Length::of(one.tokens) == length)
            };
            let chosen: Vec<&Measured> = conversations.iter().filter(fits).collect();
            if chosen.is_empty() {
                continue;
            }
            for policy in own() {
                for rival in rivals() {
                    let (policy, rival) = (policy.name(), rival.name());
                    let of = |spent| Spread::of(&pairs(&chosen, policy, rival, spent)).rounded();
                    comparisons.push(Comparison {
                        policy,
                        rival,
                        kind,
                        length,
                        conversations: chosen.len() as u64,
                        input: of(input),
                        cost: of(cost),
                    });
                }
            }
        }
    }
    comparisons
}

/// Returns what two policies spent on each conversation.
pub(super) fn pairs(
    conversations: &[&Measured],
    policy: &str,
    rival: &str,
    spent: fn(&Figures) -> f64,
) -> Vec<(f64, f64)> {
    let of = |one: &Measured, name: &str| Some(spent(one.policies.get(name)?));
    conversations.iter().filter_map(|one| Some((of(one, policy)?, of(one, rival)?))).collect()
}

pub(super) fn input(figures: &Figures) -> f64 {
    figures.usage.input_tokens as f64
}

pub(super) fn cost(figures: &Figures) -> f64 {
    figures.usage.cost_units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_spread_over_conversations() {
        let pairs: Vec<(f64, f64)> = (0..=10).map(|n| (f64::from(n) * 10.0, 100.0)).collect();
        let spread = Spread::of(&pairs).rounded();
        assert_eq!((spread.median, spread.p10, spread.p90), (0.5, 0.1, 0.9));
        assert_eq!((spread.least, spread.in_sum), (0.0, 0.5));
        let two = Spread::of(&[(150.0, 100.0), (50.0, 100.0)]);
        assert_eq!((two.median, two.least, two.in_sum), (0.0, -0.5, 0.0));
        assert_eq!(Spread::of(&[]), Spread::default());
        assert_eq!(Spread::of(&[(0.0, 0.0)]).median, 0.0);
    }

    #[test]
    fn a_length_belongs_to_one_class() {
        let classes = [9_999, 10_000, 29_999, 30_000, 99_999, 100_000].map(Length::of);
        use Length::{Long, Middle, Short, VeryLong};
        assert_eq!(classes, [Short, Middle, Middle, Long, Long, VeryLong]);
    }
}
