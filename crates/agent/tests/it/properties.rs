//! Laws over random plans.

use crate::toolkit::{
    broken, call, executor, ms, object, options, pause, plan, settings, spec, step, times, wait,
    waiting,
};
use foldback_agent::Outcome;
use foldback_planner::{FailurePolicy, Step, StepId, StepResult, Template};
use foldback_tool::{Concurrency, Effect};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// A random DAG: for each step how long it takes, and which earlier ones it waits for.
fn dags() -> impl Strategy<Value = Vec<(u64, Vec<u32>)>> {
    prop::collection::vec(
        (0..500_u64, prop::collection::vec(any::<prop::sample::Index>(), 0..4)),
        1..60,
    )
    .prop_map(|steps| {
        let step = |(at, (ms, after)): (usize, (u64, Vec<prop::sample::Index>))| {
            let mut after: Vec<u32> = match at {
                0 => vec![],
                _ => {
                    after.iter().map(|index| 1 + u32::try_from(index.index(at)).unwrap()).collect()
                }
            };
            after.sort_unstable();
            after.dedup();
            (ms, after)
        };
        steps.into_iter().enumerate().map(step).collect()
    })
}

fn id(at: usize) -> u32 {
    u32::try_from(at).unwrap() + 1
}

/// Runs on a paused clock, where time is exact.
fn paused(run: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// OP7: the whole takes as long as the critical path, and each step starts at the very moment when the
    /// last one that it waits for ends.
    #[test]
    fn op7_makespan_is_the_critical_path(dag in dags()) {
        let steps: Vec<Step> =
            dag.iter().enumerate().map(|(at, (ms, after))| pause(id(at), *ms, after)).collect();
        let plan = plan(steps);
        let path = plan.graph().critical_path(|step| ms(dag[step.0 as usize - 1].0));
        let executor = executor([wait()]);
        let outcome = paused(async { executor.run(&plan, options("run")).await.unwrap() });
        prop_assert_eq!(outcome.elapsed, path.length);
        for step in &plan.steps {
            let ready = step.after.iter().map(|after| outcome.calls[after].ended).max();
            prop_assert_eq!(outcome.calls[&step.id].started, ready.unwrap_or_default());
        }
    }

    /// N8: never more calls than the limit run at once, an exclusive call runs alone, the limit is used, and
    /// the results are the same as without one.
    #[test]
    fn n8_bounds_hold_for_random_plans(
        dag in dags(),
        exclusive in prop::collection::vec(any::<bool>(), 60),
        bound in 1..6_usize,
    ) {
        let alone = spec("alone", Effect::ReadOnly).with_concurrency(Concurrency::Exclusive);
        let steps: Vec<Step> = dag
            .iter()
            .enumerate()
            .map(|(at, (ms, after))| {
                let function = if exclusive[at] { "alone" } else { "wait" };
                let ms = Template::Literal((ms + 1).to_string());
                call(id(at), function, object(&[("ms", ms)]), after)
            })
            .collect();
        let executor = executor([wait(), waiting(alone)]);
        let free = executor.clone();
        let bounded = executor.with_settings(settings(|s| s.max_parallel = bound));
        let plan = plan(steps);
        let outcome = paused(async { bounded.run(&plan, options("run")).await.unwrap() });
        prop_assert_eq!(&outcome.results, &paused(async { free.run(&plan, options("run")).await.unwrap() }).results);
        for (at, is_exclusive) in exclusive.iter().copied().enumerate().take(dag.len()) {
            let (started, ended) = times(&outcome, id(at));
            let beside = (0..dag.len()).filter(|other| {
                let (other_started, other_ended) = times(&outcome, id(*other));
                other_started <= started && started < other_ended
            });
            let most = if is_exclusive { 1 } else { bound };
            prop_assert!(beside.count() <= most, "{} calls beside step {}", most, id(at));
            let overlaps = (0..dag.len()).filter(|other| *other != at).any(|other| {
                let (other_started, other_ended) = times(&outcome, id(other));
                other_started < ended && started < other_ended
            });
            prop_assert!(!(is_exclusive && overlaps), "step {} ran beside another", id(at));
        }
        // The limit is used: a call waits only while there is no place, or for an exclusive one.
        let all: Vec<(Duration, Duration, Duration)> = (0..dag.len())
            .map(|at| {
                let (started, ended) = times(&outcome, id(at));
                let before = dag[at].1.iter().map(|after| times(&outcome, *after).1);
                (before.max().unwrap_or_default(), started, ended)
            })
            .collect();
        for (at, &(ready, started, _)) in all.iter().enumerate() {
            for now in all.iter().flat_map(|&(_, started, ended)| [started, ended]) {
                if now < ready || now >= started {
                    continue;
                }
                let running = |other: &usize| all[*other].1 <= now && now < all[*other].2;
                let count = (0..all.len()).filter(running).count();
                let alone = (0..all.len()).filter(|other| exclusive[*other]).any(|other| {
                    other != at && all[other].0 <= now && now < all[other].2
                });
                let is_full = if exclusive[at] { count > 0 } else { count == bound };
                prop_assert!(is_full || alone, "step {} waits beside {} calls at {:?}", id(at), count, now);
            }
        }
    }

    /// OP16, N1: with any steps failing under any policy, each step has exactly the result that follows
    /// from the plan as a whole, and the run always ends.
    #[test]
    fn op16_failures_reach_exactly_what_waits_for_them(
        dag in dags(),
        fails in prop::collection::vec(prop::bool::weighted(0.2), 60),
        goes_on in prop::collection::vec(any::<bool>(), 60),
    ) {
        let steps: Vec<Step> = dag
            .iter()
            .enumerate()
            .map(|(at, (ms, after))| {
                let policy = if goes_on[at] {
                    FailurePolicy::ContinueWithError
                } else {
                    FailurePolicy::SkipDependents
                };
                let step = if fails[at] { step(id(at), "broken", after) } else { pause(id(at), *ms, after) };
                Step { on_failure: policy, ..step }
            })
            .collect();
        let executor = executor([wait(), broken()]);
        let plan = plan(steps);
        let outcome = paused(async { executor.run(&plan, options("run")).await.unwrap() });
        prop_assert_eq!(outcome.results.len(), dag.len());

        // The reason why a step does not run: the root cause before it, the lowest of several.
        let mut roots: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        for (at, (_, after)) in dag.iter().enumerate() {
            let root_behind = |after: &u32| {
                let before = *after as usize - 1;
                let failed = fails[before] && !goes_on[before];
                roots[after].or(failed.then_some(*after))
            };
            let root = after.iter().filter_map(root_behind).min();
            roots.insert(id(at), root);
            let result = &outcome.results[&StepId(id(at))];
            match root {
                Some(root) => prop_assert_eq!(result, &crate::toolkit::skipped(root)),
                None => prop_assert_eq!(matches!(result, StepResult::Error { .. }), fails[at]),
            }
        }
    }
}
