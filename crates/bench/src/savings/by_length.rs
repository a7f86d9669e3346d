//! Spending against length: classes of conversations whose lengths double, and the lengths from which
//! on a policy pays.

use super::compare::pairs;
use super::{Figures, Measured};
use crate::quantile::quantile;
use std::collections::BTreeMap;

/// The number of tokens at which the first class ends.
const FIRST: u64 = 1_000;
/// A class with fewer conversations is joined to the next shorter one.
const LEAST: usize = 3;
/// A policy counts as cheaper if it saves more than this share of the spending.
const CHEAPER: f64 = 0.01;

/// The result of [`Cheaper::words`] for a policy that is always cheaper.
pub(super) const EVERY_LENGTH: &str = "at every length";

/// Conversations of about the same length.
#[derive(Clone, Debug)]
pub(super) struct Class<'a> {
    /// Their minimum number of tokens.
    pub(super) from: u64,
    /// The number of tokens that they stay below.
    pub(super) to: u64,
    conversations: Vec<&'a Measured>,
}

/// Returns the classes of conversations, the shortest first.
pub(super) fn classes<'a>(conversations: impl Iterator<Item = &'a Measured>) -> Vec<Class<'a>> {
    let mut doubling: BTreeMap<u32, Vec<&Measured>> = BTreeMap::new();
    for one in conversations {
        let steps = one.tokens.checked_div(FIRST).and_then(u64::checked_ilog2);
        doubling.entry(steps.map_or(0, |steps| steps + 1)).or_default().push(one);
    }
    let mut classes: Vec<Class<'_>> = Vec::new();
    for (step, conversations) in doubling.into_iter().rev() {
        let from = if step == 0 { 0 } else { FIRST << (step - 1) };
        match classes.last_mut() {
            Some(longer) if longer.conversations.len() < LEAST => {
                longer.from = from;
                longer.conversations.extend(conversations);
            }
            _ => classes.push(Class { from, to: FIRST << step, conversations }),
        }
    }
    if classes.last().is_some_and(|shortest| shortest.conversations.len() < LEAST)
        && classes.len() > 1
        && let Some(shortest) = classes.pop()
        && let Some(next) = classes.last_mut()
    {
        next.from = shortest.from;
        next.conversations.extend(shortest.conversations);
    }
    classes.reverse();
    classes
}

impl Class<'_> {
    /// Returns the number of its conversations.
    pub(super) fn len(&self) -> usize {
        self.conversations.len()
    }

    /// Returns the median of their lengths, in tokens.
    pub(super) fn length(&self) -> f64 {
        median(self.conversations.iter().map(|one| one.tokens as f64))
    }

    /// Returns a policy's spending relative to a rival's: the median over the conversations, 1 if it is
    /// the same; `None` if one of the policies was not measured.
    pub(super) fn beside(
        &self,
        policy: &str,
        rival: &str,
        spent: fn(&Figures) -> f64,
    ) -> Option<f64> {
        let pairs = pairs(&self.conversations, policy, rival, spent);
        let shares = pairs.iter().map(|(own, rival)| if *rival > 0.0 { own / rival } else { 1.0 });
        (!pairs.is_empty()).then(|| median(shares))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// The lengths at which a policy spends less than a rival: runs of classes, the shortest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cheaper {
    /// The runs, from and up to a number of tokens.
    runs: Vec<(u64, u64)>,
    /// The ends of the range of all classes.
    all: (u64, u64),
}

impl Cheaper {
    pub(super) fn of(
        classes: &[Class<'_>],
        policy: &str,
        rival: &str,
        spent: fn(&Figures) -> f64,
    ) -> Self {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut goes_on = false;
        for class in classes {
            let share = class.beside(policy, rival, spent);
            let is_cheaper = share.is_some_and(|share| share < 1.0 - CHEAPER);
            match runs.last_mut() {
                Some(run) if is_cheaper && goes_on => run.1 = class.to,
                _ if is_cheaper => runs.push((class.from, class.to)),
                _ => {}
            }
            goes_on = is_cheaper;
        }
        let from = classes.first().map_or(0, |class| class.from);
        Self { runs, all: (from, classes.last().map_or(0, |class| class.to)) }
    }

    /// Returns the least length from which on the policy is cheaper in every class; `None` if it is not
    /// cheaper in the longest class, or already is in the shortest.
    pub(super) fn break_even(&self) -> Option<u64> {
        let (from, to) = *self.runs.last()?;
        (to == self.all.1 && from > self.all.0).then_some(from)
    }

    /// Returns the lengths in words, to follow "it spends less".
    pub(super) fn words(&self) -> String {
        if self.runs.is_empty() {
            return "at no length".to_owned();
        }
        if *self.runs == [self.all] {
            return EVERY_LENGTH.to_owned();
        }
        let runs =
            self.runs.iter().map(|(from, to)| match (*from == self.all.0, *to == self.all.1) {
                (_, true) => format!("from {} tokens on", kilo(*from)),
                (true, false) => format!("up to {} tokens", kilo(*to)),
                (false, false) => format!("from {} to {} tokens", kilo(*from), kilo(*to)),
            });
        runs.collect::<Vec<_>>().join(" and ")
    }
}

/// Returns a length in thousands: `64k`.
pub(super) fn kilo(tokens: u64) -> String {
    format!("{}k", tokens / 1_000)
}

#[cfg(test)]
mod tests {
    use super::super::compare::cost;
    use super::super::{ByPolicy, Group};
    use super::*;
    use crate::{Kind, Usage};

    /// Returns a conversation of this many tokens in which keeping everything costs 100.
    fn one(tokens: u64, cost: f64) -> Measured {
        let figures = |cost_units| Figures {
            usage: Usage { cost_units, ..Usage::default() },
            ..Figures::default()
        };
        Measured {
            id: tokens.to_string(),
            file: String::new(),
            kind: Kind::Agent,
            group: Group::Agent,
            messages: 1,
            tokens,
            policies: ByPolicy::new(vec![("full", figures(100.0)), ("own", figures(cost))]),
        }
    }

    fn many(each: &[(u64, [f64; 3])]) -> Vec<Measured> {
        let all = each.iter().flat_map(|(tokens, costs)| costs.map(|cost| one(*tokens, cost)));
        all.collect()
    }

    #[test]
    fn lengths_double_from_class_to_class() {
        let all: Vec<Measured> = [0, 999, 500, 1_000, 1_999, 1_500, 2_000, 3_999, 2_500]
            .map(|tokens| one(tokens, 1.0))
            .into();
        let found = classes(all.iter());
        let told: Vec<_> =
            found.iter().map(|class| (class.from, class.to, class.length())).collect();
        let expected = [(0, 1_000, 500.0), (1_000, 2_000, 1_500.0), (2_000, 4_000, 2_500.0)];
        assert_eq!(told, expected);
    }

    /// The one very long conversation joins those before it, the one short one those after it.
    #[test]
    fn a_class_of_few_is_joined() {
        let mut all = many(&[(5_000, [1.0; 3]), (20_000, [1.0; 3])]);
        all.extend([one(100_000, 1.0), one(100, 1.0)]);
        let told: Vec<_> =
            classes(all.iter()).iter().map(|class| (class.from, class.to, class.len())).collect();
        assert_eq!(told, [(0, 8_000, 4), (16_000, 128_000, 4)]);
        assert_eq!(classes(all.iter().skip(6)).len(), 1, "few in all are one class");
        assert!(classes([].iter()).is_empty());
    }

    #[track_caller]
    fn check(costs: &[(u64, [f64; 3])], words: &str, break_even: Option<u64>) {
        let all = many(costs);
        let found = Cheaper::of(&classes(all.iter()), "own", "full", cost);
        assert_eq!((found.words().as_str(), found.break_even()), (words, break_even));
    }

    #[test]
    fn the_break_even_is_where_the_median_stays_under() {
        let (dear, cheap, even) = ([90.0, 120.0, 130.0], [50.0, 60.0, 200.0], [99.5; 3]);
        let [a, b, c] = [500, 5_000, 50_000];
        check(&[(a, dear), (b, dear), (c, cheap)], "from 32k tokens on", Some(32_000));
        check(&[(a, dear), (b, cheap), (c, cheap)], "from 4k tokens on", Some(4_000));
        check(&[(a, cheap), (b, cheap), (c, cheap)], "at every length", None);
        check(&[(a, dear), (b, even), (c, dear)], "at no length", None);
        check(&[(a, dear), (b, cheap), (c, dear)], "from 4k to 8k tokens", None);
        check(
            &[(a, cheap), (b, dear), (c, cheap)],
            "up to 1k tokens and from 32k tokens on",
            Some(32_000),
        );
        check(&[], "at no length", None);
    }
}
