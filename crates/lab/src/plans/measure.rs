//! Combines all measurements.

use super::closed_form::{ClosedForm, MODEL_TIMES};
use super::generated::generated;
use super::gold::{GoldPlan, PlanSet};
use super::makespan::{run_forms, run_placeholders};
use super::mistakes::make_mistakes;
use super::mutation::Mutation;
use super::overhead::measure_overhead;
use super::peer::{PeerRun, beside};
use super::recorded::Recorded;
use super::result::{
    AtModelTime, Forms, MutationFigures, Placeholders, PlanFigures, Plans, SetFigures,
    TokensByCalls, Totals,
};
use super::strategy::{Strategy, run_strategy};
use super::streaming::measure_streaming;
use foldback_bench::BenchError;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed of generated plans, tool times and mistakes.
    pub seed: u64,
    /// The largest generated plans, in steps.
    pub most: usize,
    /// Another scheduler's results on the plans of [`Dags::of`](super::Dags::of).
    pub peer: Option<PeerRun>,
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 7, most: 1_000, peer: None }
    }
}

/// Measures recorded plans, and generated ones.
///
/// # Errors
/// When a correct plan does not run.
pub fn measure(recorded: &Recorded, config: &Config) -> Result<Plans, BenchError> {
    let Config { seed, most, peer } = config;
    // In wall-clock time, so before the processors have anything else to do.
    let overhead = measure_overhead(*most, *seed)?;
    let streaming = measure_streaming(*seed)?;
    let peer = peer.as_ref().map(|peer| beside(&recorded.plans, peer, *seed)).transpose()?;
    let made = generated(*most, *seed);
    let plans: Vec<&GoldPlan> = recorded.plans.iter().chain(&made).collect();
    let ran: Result<Vec<Ran>, BenchError> =
        plans.par_iter().map(|gold| Ran::of(gold, *seed)).collect();
    let ran = ran?;
    let of_set = |set: PlanSet| {
        let all = plans.iter().zip(&ran).filter(move |(gold, _)| gold.set == set);
        all.map(|(gold, ran)| (*gold, &ran.figures)).collect::<Vec<_>>()
    };
    let sets = PlanSet::ALL.into_iter().map(|set| (set, of_set(set)));
    let sets: Vec<SetFigures> = sets.filter_map(|(set, all)| SetFigures::of(set, &all)).collect();
    let headline = |gold: &&GoldPlan| recorded.plans.is_empty() || gold.set != PlanSet::Generated;
    let all: Vec<(&GoldPlan, &PlanFigures)> = plans
        .iter()
        .zip(&ran)
        .filter(|(gold, _)| headline(gold))
        .map(|(gold, ran)| (*gold, &ran.figures))
        .collect();
    let mut mutations = Mutation::ALL.map(MutationFigures::none);
    let mut placeholders = Placeholders::default();
    for ran in &ran {
        for (sum, one) in mutations.iter_mut().zip(&ran.mutations) {
            sum.add(one);
        }
        placeholders.tried += ran.placeholders.tried;
        placeholders.inert += ran.placeholders.inert;
    }
    Ok(Plans {
        all: Totals::of(&all),
        tokens_by_calls: tokens_by_calls(&all),
        sets,
        overhead,
        streaming,
        mutations: mutations.to_vec(),
        placeholders,
        peer,
        left_out: recorded.left_out,
        each: ran.into_iter().map(|ran| ran.figures).collect(),
    })
}

/// The outcome of one plan.
struct Ran {
    figures: PlanFigures,
    mutations: Vec<MutationFigures>,
    placeholders: Placeholders,
}

impl Ran {
    fn of(gold: &GoldPlan, seed: u64) -> Result<Self, BenchError> {
        let mut figures = run_forms(gold, seed)?;
        figures.react = run_strategy(gold, Strategy::React)?;
        figures.one_plan = run_strategy(gold, Strategy::OnePlan)?;
        Ok(Self {
            figures,
            mutations: make_mistakes(gold, seed)?,
            placeholders: run_placeholders(gold)?,
        })
    }
}

impl SetFigures {
    /// Sums up the plans of a set; `None` if there are none.
    fn of(set: PlanSet, all: &[(&GoldPlan, &PlanFigures)]) -> Option<Self> {
        let worst = all.iter().max_by(|a, b| a.1.makespan().total_cmp(&b.1.makespan()))?;
        let closed_form = ClosedForm::of(all.iter().map(|(gold, _)| *gold));
        let mut forms = Forms::default();
        for (_, figures) in all {
            forms.add(&figures.forms);
        }
        let makespans: f64 = all.iter().map(|(_, figures)| figures.makespan()).sum();
        Some(Self {
            set,
            totals: Totals::of(all),
            closed_form,
            width: rounded(closed_form.width()),
            makespan_mean: rounded(makespans / all.len() as f64),
            worst: worst.0.id.clone(),
            forms,
            times: times(all),
        })
    }
}

/// Compares both ways, by the time of a model call.
fn times(all: &[(&GoldPlan, &PlanFigures)]) -> Vec<AtModelTime> {
    let closed_form = ClosedForm::of(all.iter().map(|(gold, _)| *gold));
    let time = |(at, l): (usize, f64)| {
        let sum = |of: fn(&PlanFigures) -> &Vec<f64>| -> f64 {
            all.iter().filter_map(|(_, figures)| of(figures).get(at)).sum()
        };
        let (react, one_plan) = (sum(|one| &one.react.times), sum(|one| &one.one_plan.times));
        AtModelTime {
            model_time: l,
            react: rounded(react),
            one_plan: rounded(one_plan),
            speedup: rounded(react / one_plan),
            closed_form: rounded(closed_form.speedup(l)),
        }
    };
    MODEL_TIMES.into_iter().enumerate().map(time).collect()
}

/// Returns the tokens of tasks, by the number of their calls.
fn tokens_by_calls(all: &[(&GoldPlan, &PlanFigures)]) -> Vec<TokensByCalls> {
    let mut by_calls: BTreeMap<usize, Vec<&PlanFigures>> = BTreeMap::new();
    for (_, figures) in all {
        by_calls.entry(figures.steps).or_default().push(figures);
    }
    let row = |(calls, all): (usize, Vec<&PlanFigures>)| {
        let mean = |of: fn(&PlanFigures) -> u64| {
            let sum: u64 = all.iter().map(|one| of(one)).sum();
            (sum as f64 / all.len() as f64).round()
        };
        TokensByCalls {
            calls,
            plans: all.len(),
            react: mean(|one| one.react.tokens),
            one_plan: mean(|one| one.one_plan.tokens),
        }
    };
    by_calls.into_iter().map(row).collect()
}

impl Totals {
    fn of(all: &[(&GoldPlan, &PlanFigures)]) -> Self {
        let figures = || all.iter().map(|(_, figures)| *figures);
        Self {
            plans: all.len(),
            steps: figures().map(|one| one.steps).sum(),
            makespan_over_critical_path: rounded(
                figures().map(PlanFigures::makespan).fold(0.0, f64::max),
            ),
            llm_calls_react: figures().map(|one| one.react.llm_calls).sum(),
            llm_calls_one_plan: figures().map(|one| one.one_plan.llm_calls).sum(),
            tokens_react: figures().map(|one| one.react.tokens).sum(),
            tokens_one_plan: figures().map(|one| one.one_plan.tokens).sum(),
            speedup: times(all)
                .into_iter()
                .find(|at| at.model_time == 1.0)
                .map_or(0.0, |at| at.speedup),
        }
    }
}

/// Rounds away the digits that come from summation.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
