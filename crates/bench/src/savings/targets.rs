//! The memory's targets.

use super::compare::{Spread, cost, input, pairs};
use super::figures::rounded;
use super::{FactCounts, Figures, Group, Measured};
use crate::Usage;
use serde::Serialize;

/// A target figure of the memory, or a figure that is reported alongside one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// What the figure measures.
    pub what: String,
    /// The bound, as a share from 0 to 1; `None` if there is none and the figure is only reported.
    pub wanted: Option<f64>,
    /// Whether the figure must be at or below the bound, rather than at or above it.
    pub at_most: bool,
    /// The figure, to four places.
    pub measured: f64,
    /// Whether the bound is kept, before rounding.
    pub met: Option<bool>,
    /// For savings: the figure if recalls of what only the model's own words contained cost nothing.
    /// For facts: the figure over all others.
    pub without_own: f64,
    /// The number of conversations.
    pub conversations: u64,
    /// How often the rival called a model for its own purposes; `None` if there is no rival.
    pub side_calls: Option<u64>,
    /// The data behind a figure of facts.
    pub of_facts: Option<OfFacts>,
}

/// The data behind a figure of facts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfFacts {
    /// The number of facts.
    pub facts: u64,
    /// The number of facts that occurred elsewhere than in the model's own words.
    pub not_own: u64,
    /// The share that could have been visible or recalled at all.
    pub ceiling: f64,
    /// The bound that applies if the ceiling is below the target.
    pub lowered_to: Option<f64>,
    /// The share that was recalled of what the prompts did not show; `None` if they showed everything.
    pub brought: Option<f64>,
}

/// The conversation in which a policy was dearest compared with a rival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The policy.
    pub policy: &'static str,
    /// The rival.
    pub rival: &'static str,
    /// The conversation.
    pub id: String,
    /// Its group.
    pub kind: Group,
    /// Its tokens.
    pub tokens: u64,
    /// How much dearer it was, as a share of the rival's cost; below 0 if it was cheaper.
    pub over: f64,
    /// The same without recalls.
    pub over_without_recalls: f64,
}

/// Agent runs of more tokens than this are long.
const LONG: u64 = 30_000;

pub(super) const STRICT: &str = "foldback";
pub(super) const CACHE_AWARE: &str = "foldback-cache-aware";
const FULL: &str = "full";

/// The share of facts that must be visible or recalled, or else how far below the ceiling it may be.
const HAD: f64 = 0.90;
const BELOW_CEILING: f64 = 0.03;

/// Returns the conversation in which folding by cost was dearest compared with keeping everything, the
/// first of equals.
pub(super) fn worst(conversations: &[Measured]) -> Option<Worst> {
    let over = |own: &Usage, rival: &Usage| match rival.cost_units > 0.0 {
        true => own.cost_units / rival.cost_units - 1.0,
        false => 0.0,
    };
    let both = |one: &'_ Measured| {
        let (own, rival) = (one.policies.get(CACHE_AWARE)?, one.policies.get(FULL)?);
        let without = over(&own.without_recalls, &rival.without_recalls);
        Some((over(&own.usage, &rival.usage), without))
    };
    let each = conversations.iter().filter_map(|one| Some((one, both(one)?)));
    // `max_by` returns the last of equal maxima, so the first must come last.
    let (one, (dearest, without)) = each.rev().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    Some(Worst {
        policy: CACHE_AWARE,
        rival: FULL,
        id: one.id.clone(),
        kind: one.group,
        tokens: one.tokens,
        over: rounded(dearest),
        over_without_recalls: rounded(without),
    })
}

/// Returns the targets that apply to the conversations measured; targets for absent ones are left out.
pub(super) fn targets(conversations: &[Measured]) -> Vec<Target> {
    let all: Vec<&Measured> = conversations.iter().collect();
    let is_long = |one: &&Measured| one.group == Group::Agent && one.tokens > LONG;
    let long: Vec<&Measured> = conversations.iter().filter(is_long).collect();
    let mut targets = savings(&all, &long);
    for policy in [STRICT, CACHE_AWARE] {
        for group in Group::ALL {
            let title = group.title().to_lowercase();
            let chosen: Vec<&Measured> =
                all.iter().copied().filter(|one| one.group == group).collect();
            targets.extend(facts_had(policy, &title, &chosen));
        }
        targets.extend(facts_had(policy, "agent runs over 30k", &long));
        targets.extend(facts_lost(policy, &all));
    }
    targets
}

/// Returns the savings on all conversations and on long agent runs.
fn savings(all: &[&Measured], long: &[&Measured]) -> Vec<Target> {
    const MEDIAN: fn(&Spread) -> f64 = |spread| spread.median;
    let runs = "agent runs over 30k";
    let tokens = format!("{STRICT}, tokens saved against");
    let (deepagents, summary) = ("deepagents", "summary-top-n");
    let of_tokens = |rival| Pair { policy: STRICT, rival, spent: input, of_own: input_of_own };
    let of_cost = |policy, rival| Pair { policy, rival, spent: cost, of_own: cost_of_own };
    let cheaper = of_cost(CACHE_AWARE, deepagents);
    let cheaper_told = format!("{CACHE_AWARE}, cost saved against {deepagents}, {runs}");
    let told = |rival| format!("{STRICT}, cost saved against {rival}, {runs}, median");
    let rows = [
        of_tokens(deepagents).saved(
            format!("{tokens} {deepagents}, {runs}, median"),
            long,
            MEDIAN,
            Some(0.60),
        ),
        of_tokens(deepagents).saved(
            format!("{tokens} {deepagents}, {runs}, p10"),
            long,
            |spread| spread.p10,
            Some(0.40),
        ),
        of_tokens(summary).saved(
            format!("{tokens} {summary}, {runs}, median"),
            long,
            MEDIAN,
            Some(0.40),
        ),
        cheaper.saved(format!("{cheaper_told}, median"), long, MEDIAN, Some(0.35)),
        cheaper.saved(format!("{cheaper_told}, in sum"), long, |spread| spread.in_sum, Some(0.50)),
        // What the smallest prompts cost if a cache reads long ones for a tenth.
        of_cost(STRICT, deepagents).saved(told(deepagents), long, MEDIAN, None),
        of_cost(STRICT, FULL).saved(told(FULL), long, MEDIAN, None),
        of_cost(CACHE_AWARE, FULL).over(
            format!("{CACHE_AWARE}, cost over {FULL}, the worst of all conversations"),
            all,
            0.02,
        ),
    ];
    rows.into_iter().flatten().collect()
}

/// A policy compared with a rival.
struct Pair {
    policy: &'static str,
    rival: &'static str,
    spent: fn(&Figures) -> f64,
    /// The part that was spent on recalling the model's own words.
    of_own: fn(&Figures) -> f64,
}

impl Pair {
    /// Returns a figure of savings; `None` if a policy was not measured.
    fn saved(
        &self,
        what: String,
        chosen: &[&Measured],
        figure: fn(&Spread) -> f64,
        wanted: Option<f64>,
    ) -> Option<Target> {
        let spent = pairs(chosen, self.policy, self.rival, self.spent);
        let of_own = pairs(chosen, self.policy, self.rival, self.of_own);
        let without: Vec<(f64, f64)> =
            spent.iter().zip(&of_own).map(|(all, own)| (all.0 - own.0, all.1 - own.1)).collect();
        let measured = figure(&Spread::of(&spent));
        let rivals = chosen.iter().filter_map(|one| one.policies.get(self.rival));
        (!spent.is_empty()).then(|| Target {
            what,
            wanted,
            at_most: false,
            measured: rounded(measured),
            met: wanted.map(|wanted| measured >= wanted),
            without_own: rounded(figure(&Spread::of(&without))),
            conversations: spent.len() as u64,
            side_calls: Some(rivals.map(|figures| figures.side_calls).sum()),
            of_facts: None,
        })
    }

    /// Returns how much more is spent in the worst conversation.
    fn over(&self, what: String, chosen: &[&Measured], wanted: f64) -> Option<Target> {
        let saved = self.saved(what, chosen, |spread| spread.least, Some(-wanted))?;
        Some(Target {
            wanted: Some(wanted),
            at_most: true,
            // A negative excess counts as none.
            measured: 0.0 - saved.measured,
            without_own: 0.0 - saved.without_own,
            ..saved
        })
    }
}

/// Returns the share of facts that a policy shows or recalls; `None` if there are none.
fn facts_had(policy: &str, title: &str, chosen: &[&Measured]) -> Option<Target> {
    let what = format!("{policy}, visible or recalled, {title}");
    let (all, ceiling) = (summed(policy, chosen)?, |facts: &FactCounts| facts.share(facts.ceiling));
    let lowered = ceiling(&all.facts) - BELOW_CEILING;
    let lowered_to = (lowered < HAD).then_some(lowered);
    let mut target = Target::of_facts(what, &all, chosen.len(), FactCounts::had);
    target.wanted = Some(HAD);
    target.met = Some(all.facts.had() >= lowered_to.unwrap_or(HAD));
    if let Some(of_facts) = &mut target.of_facts {
        of_facts.lowered_to = lowered_to.map(rounded);
    }
    Some(target)
}

/// Returns the share of facts that nothing finds under a policy; `None` if there are none.
fn facts_lost(policy: &str, chosen: &[&Measured]) -> Option<Target> {
    let what = format!("{policy}, lost, all conversations");
    let all = summed(policy, chosen)?;
    let lost = |facts: &FactCounts| match facts.facts {
        0 => 0.0,
        _ => facts.share(facts.lost),
    };
    let target = Target::of_facts(what, &all, chosen.len(), lost);
    Some(Target { wanted: Some(0.0), at_most: true, met: Some(all.facts.lost == 0), ..target })
}

impl Target {
    fn of_facts(
        what: String,
        all: &Figures,
        conversations: usize,
        figure: fn(&FactCounts) -> f64,
    ) -> Self {
        let not_own = all.facts.without(&all.own);
        Self {
            what,
            wanted: None,
            at_most: false,
            measured: rounded(figure(&all.facts)),
            met: None,
            without_own: rounded(figure(&not_own)),
            conversations: conversations as u64,
            side_calls: None,
            of_facts: Some(OfFacts {
                facts: all.facts.facts,
                not_own: not_own.facts,
                ceiling: rounded(all.facts.share(all.facts.ceiling)),
                lowered_to: None,
                brought: all.facts.brought().map(rounded),
            }),
        }
    }
}

/// Returns the figures of a policy on all of these, if they contain facts.
fn summed(policy: &str, chosen: &[&Measured]) -> Option<Figures> {
    let mut sum = Figures::default();
    chosen.iter().filter_map(|one| one.policies.get(policy)).for_each(|one| sum.add(one));
    (sum.facts.facts > 0).then_some(sum)
}

fn input_of_own(figures: &Figures) -> f64 {
    figures.recalls_of_own.input_tokens as f64
}

fn cost_of_own(figures: &Figures) -> f64 {
    figures.recalls_of_own.cost_units
}

#[cfg(test)]
mod tests {
    use super::super::ByPolicy;
    use super::*;
    use crate::Kind;

    /// Returns figures in which a policy spent these tokens and this cost, and as much again on its own
    /// words.
    fn spent(cost_units: f64, of_own: f64) -> Figures {
        let usage =
            |cost: f64| Usage { input_tokens: cost as u64, cost_units: cost, ..Usage::default() };
        let (without_recalls, recalls_of_own) = (usage(cost_units - of_own), usage(of_own));
        Figures { usage: usage(cost_units), without_recalls, recalls_of_own, ..Figures::default() }
    }

    fn run(tokens: u64, policies: Vec<(&'static str, Figures)>) -> Measured {
        Measured {
            id: format!("run-{tokens}"),
            file: String::new(),
            kind: Kind::Agent,
            group: Group::Agent,
            messages: 1,
            tokens,
            policies: ByPolicy::new(policies),
        }
    }

    #[track_caller]
    fn found<'a>(targets: &'a [Target], what: &str) -> &'a Target {
        let found = targets.iter().find(|target| target.what.contains(what));
        found.unwrap_or_else(|| panic!("no target {what}: {targets:#?}"))
    }

    #[test]
    fn savings_are_measured_on_long_runs_and_met_before_rounding() {
        let one = |tokens, own, of_own| {
            let rival = Figures { side_calls: 2, ..spent(100_000.0, 0.0) };
            run(tokens, vec![("deepagents", rival), (STRICT, spent(own, of_own))])
        };
        // The short one is left out; the median of the others is a hair below the target.
        let runs =
            [one(30_000, 1.0, 0.0), one(30_001, 40_003.0, 10_000.0), one(90_000, 40_003.0, 0.0)];
        let targets = targets(&runs);
        let median = found(&targets, "foldback, tokens saved against deepagents");
        assert_eq!((median.measured, median.wanted, median.met), (0.6, Some(0.6), Some(false)));
        assert_eq!((median.conversations, median.side_calls), (2, Some(4)));
        assert_eq!(median.without_own, 0.65);
        assert_eq!(found(&targets, "p10").met, Some(true));
        let told = found(&targets, "foldback, cost saved against deepagents");
        assert_eq!((told.measured, told.wanted, told.met), (0.6, None, None));
        assert!(targets.iter().all(|target| !target.what.contains("summary-top-n")));
        assert!(targets.iter().all(|target| target.of_facts.is_none()), "there are no facts");
    }

    #[test]
    fn what_is_dearer_is_over_and_the_first_of_equals_is_the_worst() {
        let one = |tokens, own, of_own| {
            run(tokens, vec![("full", spent(100.0, 0.0)), (CACHE_AWARE, spent(own, of_own))])
        };
        let runs = [one(1, 90.0, 0.0), one(2, 130.0, 20.0), one(3, 130.0, 29.0)];
        let all = targets(&runs);
        let over = found(&all, "the worst of all");
        assert_eq!((over.measured, over.wanted, over.at_most), (0.3, Some(0.02), true));
        assert_eq!((over.met, over.without_own), (Some(false), 0.1));
        let worst = worst(&runs).unwrap();
        assert_eq!((worst.id.as_str(), worst.over), ("run-2", 0.3));
        assert_eq!(worst.over_without_recalls, 0.1);
        let cheaper = targets(&runs[..1]);
        let over = found(&cheaper, "the worst of all");
        assert_eq!((over.measured, over.met), (-0.1, Some(true)));
        assert_eq!(super::worst(&runs[..1]).map(|worst| worst.over), Some(-0.1));
        assert_eq!(super::worst(&[]), None);
        assert_eq!(super::worst(&[run(1, vec![("full", spent(0.0, 0.0))])]), None);
    }

    fn counts(facts: u64, visible: u64, recalled: u64, lost: u64) -> FactCounts {
        let reachable = facts - visible - recalled - lost;
        FactCounts { facts, visible, recalled, reachable, lost, ceiling: facts - lost }
    }

    #[test]
    fn facts_are_told_by_group_with_what_is_behind_them() {
        let one = |group, tokens, facts, own| {
            let figures = Figures { facts, own, ..Figures::default() };
            Measured { group, ..run(tokens, vec![(STRICT, figures)]) }
        };
        let runs = [
            one(Group::Agent, 40_000, counts(10, 4, 4, 0), counts(2, 0, 0, 0)),
            one(Group::Agent, 10, counts(10, 9, 1, 0), FactCounts::default()),
            one(Group::Composite, 9, counts(100, 80, 6, 12), counts(12, 0, 0, 12)),
            one(Group::Dialogue, 9, FactCounts::default(), FactCounts::default()),
        ];
        let targets = targets(&runs);
        let agent = found(&targets, "visible or recalled, agent runs");
        assert_eq!((agent.measured, agent.met, agent.without_own), (0.9, Some(true), 1.0));
        let of = agent.of_facts.as_ref().unwrap();
        assert_eq!((of.facts, of.not_own, of.ceiling, of.lowered_to), (20, 18, 1.0, None));
        assert_eq!(of.brought, Some(0.7143));
        let long = found(&targets, "agent runs over 30k");
        assert_eq!((long.measured, long.met, long.conversations), (0.8, Some(false), 1));
        // A low ceiling lowers the bound, and both are reported.
        let composite = found(&targets, "composites");
        let of = composite.of_facts.as_ref().unwrap();
        assert_eq!((composite.wanted, of.lowered_to), (Some(0.9), Some(0.85)));
        assert_eq!((composite.measured, composite.met, of.ceiling), (0.86, Some(true), 0.88));
        let lost = found(&targets, "lost");
        assert_eq!((lost.measured, lost.met, lost.at_most), (0.1, Some(false), true));
        assert_eq!((lost.without_own, lost.side_calls), (0.0, None));
        assert!(targets.iter().all(|target| !target.what.contains("dialogues")));
    }
}
