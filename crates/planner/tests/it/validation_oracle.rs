//! Any plan: the validator reports what a naive check finds, and a plan that it passes can be
//! scheduled.

use crate::steps::{anchor, call, object, plan, tool, whole};
use foldback_planner::{
    Action, Catalog, FindingKind, Form, Graph, Plan, Progress, Schedule, Step, StepId, StepState,
    Template, Validator,
};
use foldback_testkit::effort;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn catalog() -> Catalog {
    let arguments = r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#;
    [tool("search", arguments, None)].into_iter().collect()
}

/// A number, a function, dependences, references, and whether the arguments fit.
type Shape = (u32, u8, Vec<u32>, Vec<u32>, bool);

fn shapes(most: u32) -> impl Strategy<Value = Vec<Shape>> {
    let number = || 1..most;
    let some = || prop::collection::vec(number(), 0..3);
    prop::collection::vec((number(), 0..12_u8, some(), some(), prop::bool::weighted(0.9)), 0..8)
}

fn step_of((id, kind, after, refers, fits): Shape) -> Step {
    let mut after = after;
    after.sort_unstable();
    after.dedup();
    if kind == 0 {
        return anchor(id, &after);
    }
    let mut members: Vec<(String, Template)> =
        refers.iter().map(|&on| (format!("参数{on}"), whole(on, &["结果"]))).collect();
    members.dedup();
    if !fits {
        members.push(("n".to_owned(), Template::Text("七".to_owned())));
    }
    let function = if kind == 1 { "seek" } else { "search" };
    call(id, function, Template::Object(members), &after)
}

fn referred(step: &Step) -> BTreeSet<StepId> {
    match &step.action {
        Action::Call { arguments, .. } => {
            arguments.references().iter().map(|reference| reference.step).collect()
        }
        Action::Anchor { .. } => BTreeSet::new(),
    }
}

/// The errors of a plan, searched for one kind at a time.
fn naive(plan: &Plan) -> BTreeSet<(Option<u32>, FindingKind)> {
    let mut errors = BTreeSet::new();
    let mut steps: BTreeMap<StepId, &Step> = BTreeMap::new();
    for step in &plan.steps {
        // Of two the first is examined.
        let first = *steps.entry(step.id).or_insert(step);
        if !std::ptr::eq(first, step) {
            errors.insert((Some(step.id.0), FindingKind::DuplicateStep));
        }
    }
    let mut after: BTreeMap<StepId, BTreeSet<StepId>> = BTreeMap::new();
    for (&id, step) in &steps {
        let named = after.entry(id).or_default();
        named.extend(&step.after);
        if plan.form != Form::ExecuteTools {
            named.extend(referred(step));
        }
    }
    let before = |id: StepId| {
        let mut found = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            for &on in after.get(&id).into_iter().flatten() {
                if found.insert(on) {
                    open.push(on);
                }
            }
        }
        found
    };
    let in_ring = |a: StepId, b: StepId| a != b && before(a).contains(&b) && before(b).contains(&a);
    let has_ring = steps.keys().any(|&a| steps.keys().any(|&b| in_ring(a, b)));
    if has_ring {
        errors.insert((None, FindingKind::Cycle));
    }
    for (&id, step) in &steps {
        let mut error = |kind| errors.extend([(Some(id.0), kind)]);
        if let Action::Call { function, arguments } = &step.action {
            if function != "search" {
                error(FindingKind::UnknownFunction);
            } else if arguments.member("n").is_some() {
                error(FindingKind::Arguments);
            }
        }
        let refers = referred(step);
        for &on in step.after.iter().chain(&refers) {
            if on == id {
                error(FindingKind::SelfDependence);
            } else if !steps.contains_key(&on) {
                error(FindingKind::UnknownStep);
            } else if on > id && !in_ring(id, on) {
                error(FindingKind::ForwardDependence);
            } else if refers.contains(&on) && matches!(steps[&on].action, Action::Anchor { .. }) {
                error(FindingKind::NoResult);
            }
            let is_known = steps.contains_key(&on) && on < id && refers.contains(&on);
            if plan.form == Form::ExecuteTools && is_known && !before(id).contains(&on) && !has_ring
            {
                error(FindingKind::Unordered);
            }
        }
    }
    errors
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(effort(2_000)))]

    /// OP5, OP6, ET5: the errors are exactly those that a naive check finds, and a plan without errors
    /// can be scheduled, with all dependences that its references imply.
    #[test]
    fn op6_et5_findings_equal_a_naive_look(shapes in shapes(9), blocks in any::<bool>()) {
        let form = if blocks { Form::ExecuteTools } else { Form::OnePlan };
        let mut plan = Plan { form, steps: shapes.into_iter().map(step_of).collect() };
        let expected = naive(&plan);
        let catalog = catalog();
        let findings = Validator::new(&catalog).plan(&mut plan);
        let found: BTreeSet<_> = findings
            .errors()
            .map(|finding| (finding.step.map(|step| step.0), finding.kind))
            .collect();
        prop_assert_eq!(&found, &expected, "{}\n{}", plan, findings);
        if !findings.has_errors() {
            let schedule = Schedule::new(&plan).unwrap();
            prop_assert_eq!(schedule.len(), plan.steps.len());
            let graph: Graph = plan.graph();
            prop_assert_eq!(graph.order().len(), plan.steps.len());
            for step in plan.steps.iter().filter(|_| !blocks) {
                prop_assert!(referred(step).iter().all(|on| step.after.contains(on)));
            }
        }
    }

    /// OP12: any new plan joins any old run: no number is taken twice, no completed step occurs again,
    /// and without errors it can be scheduled and runs to its end.
    #[test]
    fn op12_any_new_plan_joins_any_run(
        old in shapes(6), new in shapes(9), fails in prop::collection::btree_set(1..6_u32, 0..3),
        turns in 0..12_usize,
    ) {
        let catalog = catalog();
        let validator = Validator::new(&catalog);
        let mut first = plan(old.into_iter().map(step_of).collect());
        if validator.plan(&mut first).has_errors() {
            return Ok(());
        }
        let mut schedule = Schedule::new(&first).unwrap();
        let advance = |schedule: &mut Schedule, turns: usize| {
            for _ in 0..turns {
                if let Some(id) = schedule.next_ready() {
                    schedule.start(id).unwrap();
                    if fails.contains(&id.0) {
                        schedule.fail(id).unwrap();
                    } else {
                        schedule.finish(id).unwrap();
                    }
                    continue;
                }
                let anchor = schedule.anchors_reached().next();
                let Some(anchor) = anchor else { break };
                schedule.replanned(anchor).unwrap();
            }
        };
        advance(&mut schedule, turns);
        let progress = Progress::new(&first.steps, &schedule, &BTreeMap::new());
        let second = plan(new.into_iter().map(step_of).collect());
        let merged = progress.merge(second, &validator);
        let numbers: Vec<StepId> = merged.plan.steps.iter().map(|step| step.id).collect();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(numbers.iter().all(|id| *id >= progress.next_number()), "{numbers:?}");
        if merged.findings.has_errors() {
            return Ok(());
        }
        for step in &merged.plan.steps {
            for on in referred(step) {
                let old = schedule.state(on);
                let is_over = matches!(
                    old,
                    Some(StepState::Failed | StepState::Skipped { .. } | StepState::Cancelled)
                );
                prop_assert!(!is_over, "{step} refers to what brought nothing");
            }
        }
        schedule.extend(&merged.plan.steps).unwrap();
        advance(&mut schedule, 100);
        prop_assert!(schedule.is_done());
        prop_assert_eq!(schedule.len(), first.steps.len() + merged.plan.steps.len());
    }
}

/// The naive check finds what it should.
#[test]
fn the_naive_look_is_not_blind() {
    let bad = plan(vec![
        step_of((1, 5, vec![2], vec![], true)),
        step_of((2, 1, vec![1], vec![3], true)),
        step_of((3, 5, vec![9], vec![3], false)),
    ]);
    let kinds: BTreeSet<FindingKind> = naive(&bad).into_iter().map(|error| error.1).collect();
    let expected = BTreeSet::from([
        FindingKind::Cycle,
        FindingKind::UnknownFunction,
        FindingKind::ForwardDependence,
        FindingKind::UnknownStep,
        FindingKind::SelfDependence,
        FindingKind::Arguments,
    ]);
    assert_eq!(kinds, expected);
    assert!(naive(&plan(vec![call(1, "search", object([]), &[])])).is_empty());
}
