//! Replanning.

use crate::schedule::{error, success};
use crate::steps::{
    anchor, call, ids, mixed, number, object, plan, step, step_with, text, tool, whole,
};
use foldback_planner::{
    Action, Catalog, Failure, FailurePolicy, FindingKind, Intent, Limits, Merged, Plan, Progress,
    ReplanReason, Replans, Round, Schedule, Step, StepId, StepResult, StepState, Template,
    Validator, parse_one_plan,
};
use foldback_tool::{Data, Effect, FailureKind};
use std::collections::BTreeMap;

/// A run that can be inspected.
struct Run {
    steps: Vec<Step>,
    schedule: Schedule,
    results: BTreeMap<StepId, StepResult>,
}

impl Run {
    fn new(steps: Vec<Step>) -> Self {
        let schedule = Schedule::new(&plan(steps.clone())).unwrap();
        Self { steps, schedule, results: BTreeMap::new() }
    }

    fn end(&mut self, id: u32, result: StepResult) {
        let id = StepId(id);
        if self.schedule.state(id) == Some(StepState::Ready) {
            self.schedule.start(id).unwrap();
        }
        let skipped = match result {
            StepResult::Success { .. } => self.schedule.finish(id).unwrap(),
            _ => self.schedule.fail(id).unwrap(),
        };
        self.results.insert(id, result);
        for id in skipped {
            let Some(StepState::Skipped { because }) = self.schedule.state(id) else { continue };
            self.results.insert(id, StepResult::Skipped { because });
        }
    }

    fn progress(&self) -> Progress {
        Progress::new(&self.steps, &self.schedule, &self.results)
    }

    fn merge(&self, steps: Vec<Step>) -> Merged {
        self.progress().merge(plan(steps), &Validator::new(&catalog()))
    }
}

fn catalog() -> Catalog {
    let read = |name| tool(name, "{}", None).with_effect(Effect::ReadOnly);
    let tools = [
        read("search"),
        read("search_weather"),
        tool("food_delivery", "{}", None),
        tool("pay", "{}", None),
    ];
    tools.into_iter().collect()
}

fn weather(id: u32) -> Step {
    call(id, "search_weather", object([("city", text("杭州"))]), &[])
}

fn delivery(id: u32, after: &[u32]) -> Step {
    call(id, "food_delivery", object([("dish", text("黄焖鸡"))]), after)
}

/// The run of the weather example up to its anchor, which was answered.
fn at_anchor() -> Run {
    let mut run = Run::new(vec![weather(1), anchor(2, &[1])]);
    run.end(1, success());
    run.schedule.replanned(StepId(2)).unwrap();
    run
}

fn numbers(plan: &Plan) -> Vec<u32> {
    plan.steps.iter().map(|step| step.id.0).collect()
}

fn kinds(merged: &Merged) -> Vec<FindingKind> {
    merged.findings.iter().map(|finding| finding.kind).collect()
}

/// OP9: an anchor asks for one plan, with its task, as soon as it is reached, while other steps still
/// run (OP10).
#[test]
fn op9_an_anchor_asks_for_one_plan() {
    let mut run = Run::new(vec![step(1, &[]), anchor(2, &[1]), step(3, &[]), anchor(4, &[1])]);
    let mut replans = Replans::new(5);
    assert_eq!(replans.due(&run.progress()), None);
    run.schedule.start(StepId(3)).unwrap();
    run.end(1, success());
    let reason = replans.due(&run.progress()).unwrap();
    let task = "根据结果决定下一步".to_owned();
    assert_eq!(reason, ReplanReason::Anchor { step: StepId(2), task: task.clone() });
    assert_eq!(replans.begin(&reason, &run.progress()), Some(Round { number: 1, is_last: false }));
    // While that plan is requested, the other anchor's turn comes; neither comes again.
    let reason = replans.due(&run.progress()).unwrap();
    assert_eq!(reason, ReplanReason::Anchor { step: StepId(4), task });
    replans.begin(&reason, &run.progress()).unwrap();
    assert_eq!(replans.due(&run.progress()), None);
}

/// OP11: the reasons are an anchor and the failures of tools; what a person or a bound decided is
/// none, nor is a failure that the plan foresaw.
#[test]
fn op11_only_failures_of_tools_ask_for_a_plan() {
    let due = |kind, policy| {
        let mut run = Run::new(vec![step_with(1, &[], policy)]);
        let failure = Failure { kind, message: String::new() };
        run.end(1, StepResult::Error { failure });
        Replans::new(1).due(&run.progress()).is_some()
    };
    for kind in [
        FailureKind::Tool,
        FailureKind::Status,
        FailureKind::Timeout,
        FailureKind::Arguments,
        FailureKind::MissingPart,
        FailureKind::UnknownTool,
        FailureKind::UnknownOutcome,
    ] {
        assert!(due(kind, FailurePolicy::SkipDependents), "{kind:?}");
        assert!(due(kind, FailurePolicy::FailFast), "{kind:?}");
        assert!(!due(kind, FailurePolicy::ContinueWithError), "{kind:?}");
    }
    for kind in [FailureKind::Cancelled, FailureKind::Denied, FailureKind::Quota] {
        assert!(!due(kind, FailurePolicy::SkipDependents), "{kind:?}");
    }
}

/// OP11: a clean run asks for no plan at all.
#[test]
fn op11_a_clean_run_asks_for_no_plan() {
    let mut run = Run::new(vec![step(1, &[]), step(2, &[1])]);
    let replans = Replans::new(3);
    for id in [1, 2] {
        assert_eq!(replans.due(&run.progress()), None);
        run.end(id, success());
    }
    assert_eq!(replans.due(&run.progress()), None);
    assert_eq!(replans.used(), 0);
}

/// OP20: failures are answered by one plan, after the siblings have ended.
#[test]
fn op20_one_plan_for_all_failures_once_the_siblings_have_ended() {
    let mut run =
        Run::new(vec![step(1, &[]), step(2, &[]), step(3, &[1]), step(4, &[]), step(5, &[4])]);
    let mut replans = Replans::new(3);
    run.end(1, error());
    assert_eq!(replans.due(&run.progress()), None);
    run.end(2, error());
    run.end(4, success());
    assert_eq!(replans.due(&run.progress()), None);
    run.end(5, success());
    let reason = replans.due(&run.progress()).unwrap();
    assert_eq!(reason, ReplanReason::Failures { steps: ids(&[1, 2]) });
    assert!(replans.begin(&reason, &run.progress()).is_some());
    assert_eq!(replans.due(&run.progress()), None);
}

/// OP20: a failure that the planner was shown beside an anchor is answered by that plan.
#[test]
fn op20_a_failure_that_was_shown_is_answered() {
    let mut run = Run::new(vec![step(1, &[]), step(2, &[]), anchor(3, &[2])]);
    let mut replans = Replans::new(3);
    run.end(1, error());
    run.end(2, success());
    let reason = replans.due(&run.progress()).unwrap();
    assert!(matches!(reason, ReplanReason::Anchor { step: StepId(3), .. }));
    replans.begin(&reason, &run.progress()).unwrap();
    assert_eq!(replans.due(&run.progress()), None);
}

/// OP13: the last plan is marked, and there is none after it.
#[test]
fn op13_the_budget_ends() {
    let run = at_anchor();
    let reason = ReplanReason::Failures { steps: ids(&[1]) };
    let mut replans = Replans::new(2);
    let progress = run.progress();
    assert_eq!(replans.begin(&reason, &progress), Some(Round { number: 1, is_last: false }));
    assert_eq!(replans.begin(&reason, &progress), Some(Round { number: 2, is_last: true }));
    assert_eq!(replans.begin(&reason, &progress), None);
    assert_eq!(replans.used(), 2);
    assert_eq!(Replans::new(0).begin(&reason, &progress), None);
}

/// OP12: what a planner is shown: what was done, with results, what was skipped, what still runs.
#[test]
fn op12_progress_tells_what_was_done() {
    let mut run =
        Run::new(vec![step(1, &[]), step(2, &[]), step(3, &[2]), step(4, &[]), anchor(5, &[4])]);
    run.end(1, success());
    run.end(2, error());
    let progress = run.progress();
    let ended: Vec<_> =
        progress.ended().map(|(step, result)| (step.id.0, result.clone())).collect();
    let skipped = StepResult::Skipped { because: StepId(2) };
    assert_eq!(ended, [(1, success()), (2, error()), (3, skipped)]);
    assert_eq!(progress.under_way().map(|step| step.id.0).collect::<Vec<_>>(), [4]);
    assert_eq!(progress.next_number(), StepId(6));
    assert_eq!(Progress::default().next_number(), StepId(1));
}

/// OP12: a new plan that continues counting keeps its numbers, and names old results by theirs.
#[test]
fn op12_a_plan_that_goes_on_counting() {
    let run = at_anchor();
    let refer = call(4, "search", object([("q", whole(1, &[])), ("r", whole(3, &[]))]), &[1, 3]);
    let merged = run.merge(vec![delivery(3, &[1]), refer.clone()]);
    assert!(merged.findings.is_empty(), "{}", merged.findings);
    assert_eq!(merged.plan.steps, [delivery(3, &[1]), refer]);
    let mut schedule = run.schedule;
    schedule.extend(&merged.plan.steps).unwrap();
    assert_eq!(schedule.ready().collect::<Vec<_>>(), ids(&[3]));
}

/// OP12, OP9: a new plan that writes the old one again, with the anchor replaced: what is done does
/// not run again, and what is new gets a new number.
#[test]
fn op12_a_plan_that_begins_again() {
    let run = at_anchor();
    let refer = call(3, "search", object([("q", whole(1, &[])), ("r", whole(2, &[]))]), &[2]);
    let merged = run.merge(vec![weather(1), delivery(2, &[1]), refer]);
    assert!(!merged.findings.has_errors(), "{}", merged.findings);
    assert_eq!(numbers(&merged.plan), [3, 4]);
    assert_eq!(
        merged.plan.to_string(),
        "step3 = food_delivery {\"dish\": \"黄焖鸡\"} after step1\n\
         step4 = search {\"q\": \"$$step1.result$$\", \"r\": \"$$step3.result$$\"} after step1, \
         step3\n"
    );
    let notes: Vec<String> = merged.findings.notes().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "note: step1: step1 already exists; it does not run again",
            "note: step3: it was written as step2; numbers up to step2 belong to earlier steps",
            "note: step4: it refers to the result of step1, so it waits for it; the dependence was \
             added",
            "note: step4: it was written as step3; numbers up to step2 belong to earlier steps",
        ]
    );
}

/// OP12: a number means an earlier step of the new plan, else an old one.
#[test]
fn op12_numbers_mean_the_nearest_step_before() {
    let run = at_anchor();
    let ask = |id, of, after: &[u32]| call(id, "search", object([("q", whole(of, &[]))]), after);
    // The new step1 refers to the old step1; the new step2 to the new step1.
    let merged = run.merge(vec![ask(1, 1, &[1]), ask(2, 1, &[1])]);
    assert!(!merged.findings.has_errors(), "{}", merged.findings);
    assert_eq!(merged.plan.steps, [ask(3, 1, &[1]), ask(4, 3, &[3])]);
    // A later step of the new plan is not meant where an old one is; else it is an error.
    let merged = run.merge(vec![ask(2, 3, &[]), weather(3)]);
    let found: Vec<_> = merged.findings.errors().map(|f| (f.kind, f.step)).collect();
    assert_eq!(found, [(FindingKind::ForwardDependence, Some(StepId(3)))]);
}

/// OP12: a number that refers to no step still refers to none when steps are renumbered.
#[test]
fn op12_unknown_numbers_stay_unknown() {
    let run = at_anchor();
    let merged = run.merge(vec![delivery(1, &[]), delivery(2, &[3])]);
    assert_eq!(numbers(&merged.plan), [4, 5]);
    let errors: Vec<_> = merged.findings.errors().map(|f| (f.kind, f.step)).collect();
    assert_eq!(errors, [(FindingKind::UnknownStep, Some(StepId(5)))]);
}

/// OP12: a dependence on a step that is over is dropped; its result cannot be referred to.
#[test]
fn op12_what_brought_nothing_cannot_be_referred_to() {
    let mut run = Run::new(vec![step(1, &[]), step(2, &[1]), anchor(3, &[]), step(4, &[])]);
    run.end(1, error());
    run.end(4, success());
    run.schedule.replanned(StepId(3)).unwrap();
    let merged = run.merge(vec![delivery(5, &[1, 2, 3, 4])]);
    assert_eq!(kinds(&merged), [FindingKind::DroppedDependence; 3]);
    assert_eq!(merged.plan.steps[0].after, ids(&[4]));
    for on in [1, 2, 3] {
        let merged = run.merge(vec![call(5, "search", object([("q", whole(on, &[]))]), &[on])]);
        assert_eq!(kinds(&merged), [FindingKind::NoResult], "{}", merged.findings);
    }
    // Under `continue_with_error` the error is a result.
    let mut run = Run::new(vec![step_with(1, &[], FailurePolicy::ContinueWithError)]);
    run.end(1, error());
    let merged = run.merge(vec![call(5, "search", object([("q", whole(1, &[]))]), &[1])]);
    assert!(merged.findings.is_empty(), "{}", merged.findings);
}

/// OP12: a failed step that is written again is tried again, under a new number.
#[test]
fn op12_a_failed_step_may_be_tried_again() {
    let mut run = Run::new(vec![delivery(1, &[]), step(2, &[1])]);
    run.end(1, error());
    let merged = run.merge(vec![delivery(1, &[]), step(2, &[1])]);
    assert!(!merged.findings.has_errors(), "{}", merged.findings);
    assert_eq!(merged.plan.steps, [delivery(3, &[]), step(4, &[3])]);
}

/// OP12: a call with an effect is not repeated under another number; with other arguments it may be.
#[test]
fn op12_an_effect_is_not_repeated() {
    let mut run = Run::new(vec![delivery(1, &[]), weather(2), anchor(3, &[2])]);
    run.end(1, success());
    run.end(2, success());
    run.schedule.replanned(StepId(3)).unwrap();
    let merged = run.merge(vec![delivery(4, &[])]);
    let kinds: Vec<_> = merged.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::RepeatedEffect]);
    let told = merged.findings.to_string();
    assert!(told.starts_with("- step4: step1 does exactly this already"), "{told}");
    let other = call(4, "food_delivery", object([("dish", text("小笼包"))]), &[]);
    assert!(run.merge(vec![other]).findings.is_empty());
    // What only reads may be read again.
    assert!(run.merge(vec![weather(4)]).findings.is_empty());
}

/// OP12: calls with the same meaning are the same call, however their keys are ordered and their
/// numbers written.
#[test]
fn op12_an_effect_is_not_repeated_in_other_words() {
    let pay = |id, members: [(&str, Template); 3]| call(id, "pay", object(members), &[]);
    let list = |last: &str| Template::Array(vec![text("a"), object([("n", number(last))])]);
    let first = pay(1, [("收款人", text("王")), ("eur", number("5")), ("for", list("100"))]);
    let mut run = Run::new(vec![first, anchor(2, &[1])]);
    run.end(1, success());
    run.schedule.replanned(StepId(2)).unwrap();
    for (eur, last) in [("5", "100"), ("5.0", "1e2"), ("50e-1", "100.00")] {
        let again =
            |id| pay(id, [("for", list(last)), ("eur", number(eur)), ("收款人", text("王"))]);
        let merged = run.merge(vec![again(1)]);
        assert_eq!(kinds(&merged), [FindingKind::AlreadyDone], "{}", merged.findings);
        assert!(merged.plan.steps.is_empty());
        let merged = run.merge(vec![again(3)]);
        assert_eq!(kinds(&merged), [FindingKind::RepeatedEffect], "{eur} {last}");
    }
    // A different meaning is a different call.
    for (eur, last, to) in [("5.01", "100", "王"), ("5", "101", "王"), ("5", "100", "汪")] {
        let other = pay(3, [("for", list(last)), ("eur", number(eur)), ("收款人", text(to))]);
        assert!(run.merge(vec![other]).findings.is_empty(), "{eur} {last} {to}");
    }
    let more = object([
        ("收款人", text("王")),
        ("eur", number("5")),
        ("for", list("100")),
        ("memo", text("二")),
    ]);
    assert!(run.merge(vec![call(3, "pay", more, &[])]).findings.is_empty());
}

/// OP12: a call is the same one, whether its arguments are written as values, as references to them, or as
/// references to another result with the same value.
#[test]
fn op12_an_effect_is_not_repeated_by_its_value() {
    let answered =
        |text: &str| StepResult::Success { data: Data { text: text.to_owned(), structured: None } };
    let quote = |id| call(id, "search", object([("q", text("报价"))]), &[]);
    let pay = |id, eur, memo, to, after: &[u32]| {
        call(id, "pay", object([("eur", eur), ("memo", memo), ("to", to)]), after)
    };
    let first = pay(2, whole(1, &["价"]), mixed("房租", 1, &["价"]), whole(4, &[]), &[1, 4]);
    let mut run = Run::new(vec![quote(1), first, quote(3), quote(4)]);
    run.end(1, answered(r#"{"价": 100}"#));
    run.end(3, answered(r#"{"价": 1e2, "另": 101}"#));
    let check = |run: &Run, to: &dyn Fn() -> Template| {
        let same = [
            (number("100.0"), text("房租100")),
            (whole(3, &["价"]), text("房租100")),
            (number("100"), mixed("房租", 1, &["价"])),
        ];
        for (eur, memo) in same {
            let merged = run.merge(vec![pay(5, eur, memo, to(), &[1, 3, 4])]);
            assert!(kinds(&merged).contains(&FindingKind::RepeatedEffect), "{}", merged.findings);
        }
        let other = [
            (number("101"), text("房租100")),
            (whole(3, &["另"]), text("房租100")),
            (number("100"), text("房租")),
        ];
        for (eur, memo) in other {
            let merged = run.merge(vec![pay(5, eur, memo, to(), &[1, 3, 4])]);
            assert!(!merged.findings.has_errors(), "{}", merged.findings);
        }
    };
    // A reference whose step has no result yet is the same as itself.
    check(&run, &|| whole(4, &[]));
    run.end(4, answered("王"));
    let failure = Failure { kind: FailureKind::Timeout, message: String::new() };
    run.end(2, StepResult::Error { failure });
    check(&run, &|| text("王"));
}

/// OP12: a call that may have taken effect, although it brought no answer, is not simply repeated.
#[test]
fn op12_what_may_have_taken_effect_is_checked_first() {
    let ended = |step: Step, kind| {
        let mut run = Run::new(vec![step]);
        let failure = Failure { kind, message: String::new() };
        run.end(1, StepResult::Error { failure });
        run
    };
    for kind in [
        FailureKind::Timeout,
        FailureKind::UnknownOutcome,
        FailureKind::Cancelled,
        // The tool was called, and its answer was too large.
        FailureKind::Quota,
    ] {
        let run = ended(delivery(1, &[]), kind);
        for number in [1, 2] {
            let merged = run.merge(vec![delivery(number, &[])]);
            let errors: Vec<_> = merged.findings.errors().collect();
            let [error] = errors.as_slice() else { panic!("{kind:?}: {}", merged.findings) };
            assert_eq!(error.kind, FindingKind::RepeatedEffect, "{kind:?}");
            let told = error.to_string();
            assert!(told.starts_with("step2: step1 was exactly this"), "{kind:?}: {told}");
            assert!(told.contains("outcome is unknown"), "{kind:?}: {told}");
        }
        // What has no effect may be tried again.
        assert!(!ended(weather(1), kind).merge(vec![weather(1)]).findings.has_errors());
    }
    // The tool answered that it did not work, or was never called.
    for kind in [FailureKind::Tool, FailureKind::Arguments, FailureKind::Denied] {
        let run = ended(delivery(1, &[]), kind);
        assert!(!run.merge(vec![delivery(1, &[])]).findings.has_errors(), "{kind:?}");
    }
}

/// OP12: a poll is asked again under a new number, as often as it takes, if its tool says that this
/// does no harm.
#[test]
fn op12_a_poll_is_repeated_under_a_new_number() {
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let catalog: Catalog = [tool("poll", "{}", None).with_effect(effect)].into_iter().collect();
        let poll = |id| call(id, "poll", object([("订单", text("A-1"))]), &[]);
        let mut run = Run::new(vec![poll(1), anchor(2, &[1])]);
        run.end(1, success());
        run.schedule.replanned(StepId(2)).unwrap();
        let merge = |steps| run.progress().merge(plan(steps), &Validator::new(&catalog));
        let merged = merge(vec![poll(3), anchor(4, &[3])]);
        assert!(merged.findings.is_empty(), "{}", merged.findings);
        assert_eq!(numbers(&merged.plan), [3, 4]);
        // Under its old number it is the step that is done.
        assert_eq!(kinds(&merge(vec![poll(1)])), [FindingKind::AlreadyDone]);
    }
}

/// OP12: a step that refers to a step that is new is new, although it is written like an old one.
#[test]
fn op12_a_step_is_the_old_one_only_where_its_references_are() {
    let pay = |id| call(id, "pay", object([("to", whole(1, &[]))]), &[1]);
    let find = |q: &str| call(1, "search", object([("q", text(q))]), &[]);
    let mut run = Run::new(vec![find("张"), pay(2), anchor(3, &[2])]);
    run.end(1, success());
    run.end(2, success());
    run.schedule.replanned(StepId(3)).unwrap();
    let merged = run.merge(vec![find("张"), pay(2)]);
    assert!(merged.plan.steps.is_empty());
    let merged = run.merge(vec![find("李"), pay(2)]);
    assert!(!merged.findings.has_errors(), "{}", merged.findings);
    assert_eq!(
        merged.plan.to_string(),
        "step4 = search {\"q\": \"李\"}\nstep5 = pay {\"to\": \"$$step4.result$$\"} after step4\n"
    );
}

/// OP12, OP6: a finding about a step that was renumbered has the place where it was written.
#[test]
fn op12_findings_of_a_new_plan_have_places() {
    let text = "{\"action_plan\": {\n  \"step1\": {\"function\": \"search\"},\n  \
                \"step2\": {\"function\": \"没有\"}}}";
    let one_plan = parse_one_plan(text).unwrap();
    let Intent::Plan(new) = one_plan.intent else { panic!("a plan") };
    let merged = at_anchor().merge(new.steps);
    assert_eq!(merged.written, [(StepId(3), StepId(1)), (StepId(4), StepId(2))].into());
    let places = merged.places(&one_plan.places);
    let findings = merged.findings.placed(&places);
    let found: Vec<_> =
        findings.errors().map(|finding| (finding.step, finding.at.map(|at| at.line))).collect();
    assert_eq!(found, [(Some(StepId(4)), Some(3))]);
}

/// OP12: an anchor that was answered is not asked again when the plan is written again.
#[test]
fn op12_an_answered_anchor_is_left_out() {
    let run = at_anchor();
    let merged = run.merge(vec![weather(1), anchor(2, &[1])]);
    assert!(merged.plan.steps.is_empty());
    assert_eq!(kinds(&merged), [FindingKind::AlreadyDone; 2]);
}

/// S10: the steps of all plans are counted together.
#[test]
fn s10_new_plans_count_with_the_old() {
    let run = at_anchor();
    let catalog = catalog();
    let limits = Limits::default().with_steps(3);
    let validator = Validator::new(&catalog).within(limits);
    let merge = |steps| run.progress().merge(plan(steps), &validator);
    assert!(merge(vec![delivery(3, &[])]).findings.is_empty());
    let merged = merge(vec![delivery(3, &[]), weather(4)]);
    assert_eq!(kinds(&merged), [FindingKind::OverLimit]);
}

/// However a new plan is numbered, the steps that are left are new, in order, and name only existing
/// steps.
#[test]
fn op12_merged_plans_can_be_scheduled() {
    let run = at_anchor();
    for first in 1..6 {
        let steps = vec![
            delivery(first, &[]),
            call(first + 1, "pay", object([("for", whole(first, &[]))]), &[first]),
            anchor(first + 3, &[first, first + 1]),
        ];
        let merged = run.merge(steps);
        assert!(!merged.findings.has_errors(), "{first}: {}", merged.findings);
        let new = numbers(&merged.plan);
        assert!(new.iter().all(|id| *id > 2), "{new:?}");
        let Action::Call { arguments, .. } = &merged.plan.steps[1].action else { panic!() };
        assert_eq!(arguments.references()[0].step.0, new[0]);
        let mut schedule = run.schedule.clone();
        schedule.extend(&merged.plan.steps).unwrap();
        assert_eq!(schedule.ready().collect::<Vec<_>>(), ids(&new[..1]));
    }
}
