//! What the memory is meant to reach.

use super::compare::{Spread, cost, input, pairs};
use super::figures::rounded;
use super::{ByPolicy, Figures, Measured};
use crate::Kind;
use serde::Serialize;

/// A figure that the memory is meant to reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// What it is the figure of.
    pub what: String,
    /// The bound, as a share from 0 to 1.
    pub wanted: f64,
    /// Whether the figure has to be at or under the bound, not at or over it.
    pub at_most: bool,
    /// The figure.
    pub measured: f64,
    /// Whether the bound is kept.
    pub met: bool,
    /// The figure, had nobody paid for recalling what only the model's own words held; `None` where
    /// recalls are no part of it.
    pub without_own: Option<f64>,
}

impl Target {
    fn at_least(what: &str, wanted: f64, measured: f64, without_own: Option<f64>) -> Self {
        let (what, met) = (what.to_owned(), measured >= wanted);
        Self { what, wanted, at_most: false, measured, met, without_own }
    }

    fn at_most(what: &str, wanted: f64, measured: f64, without_own: Option<f64>) -> Self {
        let (what, met) = (what.to_owned(), measured <= wanted);
        Self { what, wanted, at_most: true, measured, met, without_own }
    }
}

/// The conversation in which a policy was dearest beside a rival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The policy.
    pub policy: &'static str,
    /// What it is compared with.
    pub rival: &'static str,
    /// The conversation.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// Its tokens.
    pub tokens: u64,
    /// How much dearer it was, as a share of the rival's cost; under 0 where it was cheaper.
    pub over: f64,
    /// The same without recalls.
    pub over_without_recalls: f64,
}

/// Agent runs of more tokens than this are long.
const LONG: u64 = 30_000;

pub(super) const STRICT: &str = "foldback";
pub(super) const CACHE_AWARE: &str = "foldback-cache-aware";

/// Where folding by cost was dearest beside keeping everything, the first of equals.
pub(super) fn worst(conversations: &[Measured]) -> Option<Worst> {
    let mut worst: Option<Worst> = None;
    for one in conversations {
        let (own, rival) = (one.policies.get(CACHE_AWARE)?, one.policies.get("full")?);
        let share =
            |cost: f64, full: f64| if full > 0.0 { rounded(cost / full - 1.0) } else { 0.0 };
        let over = share(own.usage.cost_units, rival.usage.cost_units);
        if worst.as_ref().is_none_or(|worst| over > worst.over) {
            worst = Some(Worst {
                policy: CACHE_AWARE,
                rival: "full",
                id: one.id.clone(),
                kind: one.kind,
                tokens: one.tokens,
                over,
                over_without_recalls: share(
                    own.without_recalls.cost_units,
                    rival.without_recalls.cost_units,
                ),
            });
        }
    }
    worst
}

/// What can be said of the conversations that were measured: targets of what is not there are left
/// out.
pub(super) fn targets(conversations: &[Measured], sums: &ByPolicy<Figures>) -> Vec<Target> {
    let all: Vec<&Measured> = conversations.iter().collect();
    let is_long = |one: &&Measured| one.kind == Kind::Agent && one.tokens > LONG;
    let long: Vec<&Measured> = conversations.iter().filter(is_long).collect();
    let saved = |chosen: &[&Measured], policy, rival, spent: [fn(&Figures) -> f64; 2]| {
        let [all, without_own] = spent.map(|spent| pairs(chosen, policy, rival, spent));
        (!all.is_empty()).then(|| (Spread::of(&all), Spread::of(&without_own)))
    };
    let inputs = [input, input_without_own];
    let costs = [cost, cost_without_own];
    let mut targets = Vec::new();
    let mut push = |what: &str, wanted, found: (Spread, Spread), figure: fn(&Spread) -> f64| {
        let (measured, without_own) = (figure(&found.0), figure(&found.1));
        targets.push(Target::at_least(what, wanted, measured, Some(without_own)));
    };
    if let Some(found) = saved(&long, STRICT, "deepagents", inputs) {
        let what = "input tokens saved against deepagents, agent runs over 30k";
        push(&format!("{what}, median"), 0.60, found, |spread| spread.median);
        push(&format!("{what}, p10"), 0.40, found, |spread| spread.p10);
    }
    if let Some(found) = saved(&long, STRICT, "summary-top-n", inputs) {
        let what = "input tokens saved against summary-top-n, agent runs over 30k, median";
        push(what, 0.40, found, |spread| spread.median);
    }
    if let Some(found) = saved(&long, CACHE_AWARE, "deepagents", costs) {
        let what = "cost saved against deepagents, cache-aware, agent runs over 30k";
        push(&format!("{what}, median"), 0.35, found, |spread| spread.median);
        push(&format!("{what}, in sum"), 0.50, found, |spread| spread.in_sum);
    }
    if let Some((all, without_own)) = saved(&all, CACHE_AWARE, "full", costs) {
        let what = "cost over full, cache-aware, the worst conversation";
        let [measured, without_own] = [all, without_own].map(|spread| rounded(-spread.least));
        targets.push(Target::at_most(what, 0.02, measured, Some(without_own)));
    }
    for name in [STRICT, CACHE_AWARE] {
        let Some(Figures { facts, .. }) = sums.get(name).filter(|sum| sum.facts.facts > 0) else {
            continue;
        };
        let ceiling = facts.share(facts.ceiling);
        let wanted = rounded((ceiling - 0.03).min(0.90));
        let what = format!("facts visible or recalled, {name}");
        targets.push(Target::at_least(&what, wanted, rounded(facts.had()), None));
        let what = format!("facts lost, {name}");
        targets.push(Target::at_most(&what, 0.0, facts.share(facts.lost), None));
    }
    targets
}

fn input_without_own(figures: &Figures) -> f64 {
    input(figures) - figures.recalls_of_own.input_tokens as f64
}

fn cost_without_own(figures: &Figures) -> f64 {
    cost(figures) - figures.recalls_of_own.cost_units
}
