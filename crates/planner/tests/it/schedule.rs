//! Which steps may start, given what happens to them.

use crate::steps::{anchor, ids, plan, step, step_with};
use foldback_planner::{
    Cycle, Failure, FailurePolicy, Schedule, ScheduleError, Step, StepId, StepResult, StepState,
};
use foldback_tool::{Data, FailureKind};
use std::collections::BTreeSet;
use std::time::Duration;

fn schedule(steps: Vec<Step>) -> Schedule {
    Schedule::new(&plan(steps)).unwrap()
}

fn ready(schedule: &Schedule) -> Vec<u32> {
    schedule.ready().map(|id| id.0).collect()
}

fn state(schedule: &Schedule, id: u32) -> StepState {
    schedule.state(StepId(id)).unwrap()
}

fn finish(schedule: &mut Schedule, id: u32) -> Vec<StepId> {
    schedule.start(StepId(id)).unwrap();
    schedule.finish(StepId(id)).unwrap()
}

fn fail(schedule: &mut Schedule, id: u32) -> Vec<StepId> {
    schedule.start(StepId(id)).unwrap();
    schedule.fail(StepId(id)).unwrap()
}

fn skipped(because: u32) -> StepState {
    StepState::Skipped { because: StepId(because) }
}

pub(crate) fn success() -> StepResult {
    StepResult::Success { data: Data::default() }
}

pub(crate) fn error() -> StepResult {
    let failure = Failure { kind: FailureKind::Tool, message: "断网".to_owned() };
    StepResult::Error { failure }
}

/// OP7: all steps whose dependences have ended are ready together, ascending by number.
#[test]
fn op7_ready_steps_are_ready_together_and_in_order() {
    let mut schedule =
        schedule(vec![step(1, &[]), step(2, &[]), step(3, &[1]), step(10, &[]), step(11, &[2, 3])]);
    assert_eq!(ready(&schedule), [1, 2, 10]);
    assert_eq!(state(&schedule, 11), StepState::Waiting { left: 2 });
    finish(&mut schedule, 2);
    assert_eq!(ready(&schedule), [1, 10]);
    assert_eq!(state(&schedule, 11), StepState::Waiting { left: 1 });
    finish(&mut schedule, 1);
    assert_eq!(ready(&schedule), [3, 10]);
    finish(&mut schedule, 3);
    finish(&mut schedule, 11);
    assert!(!schedule.is_done());
    finish(&mut schedule, 10);
    assert!(schedule.is_done());
    let numbers: Vec<u32> = schedule.states().iter().map(|state| state.0.0).collect();
    assert_eq!(numbers, [1, 2, 3, 10, 11]);
}

/// B6: the reference implementation stops at nine evidences and runs them one after the other; here
/// fifteen are ready at once, and the sixteenth sees them all.
#[test]
fn b6_more_than_nine_steps_run_at_once() {
    let mut steps: Vec<Step> = (1..=15).map(|id| step(id, &[])).collect();
    steps.push(step(16, &(1..=15).collect::<Vec<_>>()));
    let mut schedule = schedule(steps);
    assert_eq!(ready(&schedule), (1..=15).collect::<Vec<_>>());
    for id in (1..=15).rev() {
        finish(&mut schedule, id);
    }
    assert_eq!(ready(&schedule), [16]);
}

/// B5: the reference implementation runs independent tasks one by one; here starting one leaves the
/// others ready.
#[test]
fn b5_starting_a_step_does_not_hold_others_back() {
    let mut schedule = schedule(vec![step(1, &[]), step(2, &[]), step(3, &[])]);
    schedule.start(StepId(1)).unwrap();
    schedule.start(StepId(3)).unwrap();
    assert_eq!(ready(&schedule), [2]);
    assert_eq!(schedule.running(), 2);
}

/// P13, OP7: a graph of a hundred steps takes exactly as long as its critical path, and the schedule is
/// asked at most twice per step: nothing is scanned again.
#[test]
fn p13_a_hundred_steps_take_as_long_as_their_longest_way() {
    let steps = (1..=100_u32).map(|id| {
        let mut after: Vec<u32> = [id / 2, id * 2 / 3, id.saturating_sub(3)].to_vec();
        after.retain(|on| *on > 0 && *on < id);
        after.sort_unstable();
        after.dedup();
        step(id, &after)
    });
    let plan = plan(steps.collect());
    let takes = |id: StepId| u64::from(id.0 * 7 % 13 + 1);
    let mut schedule = Schedule::new(&plan).unwrap();
    // What runs, by the time of its end.
    let mut running = BTreeSet::new();
    let (mut now, mut asked) = (0, 0);
    while !schedule.is_done() {
        loop {
            asked += 1;
            let Some(id) = schedule.next_ready() else { break };
            schedule.start(id).unwrap();
            running.insert((now + takes(id), id));
        }
        let (end, id) = running.pop_first().unwrap();
        now = end;
        schedule.finish(id).unwrap();
    }
    let longest = plan.graph().critical_path(|id| Duration::from_secs(takes(id))).length;
    assert_eq!(Duration::from_secs(now), longest);
    assert!(asked <= 200, "{asked}");
}

/// OP16: by default steps that wait for a failed step are skipped, however far away, and names the step
/// that failed; its siblings are kept.
#[test]
fn op16_dependents_are_skipped_because_of_the_root_and_siblings_are_kept() {
    let mut schedule = schedule(vec![
        step(1, &[]),
        step(2, &[]),
        step(3, &[1]),
        step(4, &[3]),
        step(5, &[2]),
        step(6, &[4, 5]),
    ]);
    assert_eq!(fail(&mut schedule, 1), ids(&[3, 4]));
    assert_eq!(state(&schedule, 4), skipped(1));
    assert_eq!(ready(&schedule), [2]);
    finish(&mut schedule, 2);
    assert_eq!(finish(&mut schedule, 5), ids(&[6]));
    assert_eq!(state(&schedule, 6), skipped(1));
    assert_eq!(state(&schedule, 5), StepState::Done);
    assert!(schedule.is_done());
}

/// OP16: of two failures the lower number is named, whichever came first.
#[test]
fn op16_the_reason_does_not_depend_on_time() {
    for order in [[1, 2], [2, 1]] {
        let mut schedule = schedule(vec![step(1, &[]), step(2, &[]), step(3, &[1, 2])]);
        assert_eq!(fail(&mut schedule, order[0]), []);
        assert_eq!(fail(&mut schedule, order[1]), ids(&[3]));
        assert_eq!(state(&schedule, 3), skipped(1));
    }
}

/// OP16: after a `fail_fast` step failed nothing is started; what runs may end.
#[test]
fn op16_fail_fast_starts_nothing_more() {
    let fatal = FailurePolicy::FailFast;
    let mut schedule = schedule(vec![
        step_with(1, &[], fatal),
        step(2, &[]),
        step(3, &[]),
        step(4, &[2]),
        anchor(5, &[]),
    ]);
    schedule.start(StepId(2)).unwrap();
    assert_eq!(fail(&mut schedule, 1), ids(&[3, 4, 5]));
    assert_eq!(schedule.next_ready(), None);
    assert_eq!(schedule.anchors_reached().next(), None);
    assert_eq!(schedule.finish(StepId(2)).unwrap(), []);
    assert_eq!(state(&schedule, 4), skipped(1));
    assert!(schedule.is_done());
}

/// OP16: with `continue_with_error` dependents run.
#[test]
fn op16_continue_with_error_lets_dependents_run() {
    let mut schedule = schedule(vec![
        step_with(1, &[], FailurePolicy::ContinueWithError),
        step(2, &[1]),
        step(3, &[2]),
    ]);
    assert_eq!(fail(&mut schedule, 1), []);
    assert_eq!(ready(&schedule), [2]);
    assert_eq!(fail(&mut schedule, 2), ids(&[3]));
    assert_eq!(state(&schedule, 3), skipped(2));
}

/// B3: the reference implementation never returns after a failure; here every step has ended.
#[test]
fn b3_a_failure_at_any_place_ends_the_run() {
    for broken in 1..=4 {
        let mut schedule =
            schedule(vec![step(1, &[]), step(2, &[1]), step(3, &[1]), step(4, &[2, 3])]);
        while let Some(id) = schedule.next_ready() {
            if id == StepId(broken) {
                fail(&mut schedule, id.0);
            } else {
                finish(&mut schedule, id.0);
            }
        }
        assert!(schedule.is_done(), "step {broken} failed");
    }
}

/// OP6, B3: a cycle is refused before anything may start, and named.
#[test]
fn op6_a_cycle_is_refused_before_anything_starts() {
    let error = Schedule::new(&plan(vec![step(1, &[]), step(2, &[3]), step(3, &[2])])).unwrap_err();
    let ring = |steps: &[u32]| {
        ScheduleError::Cycle(Cycle { steps: steps.iter().copied().map(StepId).collect() })
    };
    assert_eq!(error, ring(&[2, 3]));
    let error = Schedule::new(&plan(vec![step(4, &[4])])).unwrap_err();
    assert_eq!(error, ring(&[4]));
    assert!(error.to_string().ends_with("step4 -> step4"), "{error}");
}

/// OP6: a duplicate number, and a missing one.
#[test]
fn op6_duplicates_and_unknown_steps_are_refused() {
    let error = Schedule::new(&plan(vec![step(1, &[]), step(1, &[])])).unwrap_err();
    assert_eq!(error, ScheduleError::DuplicateStep { step: StepId(1) });
    let error = Schedule::new(&plan(vec![step(1, &[7])])).unwrap_err();
    assert_eq!(error, ScheduleError::UnknownDependence { step: StepId(1), after: StepId(7) });
}

/// A step is started once and ended once; any other request is an error, and changes nothing.
#[test]
fn misuse_is_typed_and_changes_nothing() {
    let mut schedule = schedule(vec![step(1, &[]), step(2, &[1]), anchor(3, &[])]);
    let wrong = |id, change, state| ScheduleError::State { step: StepId(id), change, state };
    let waiting = StepState::Waiting { left: 1 };
    assert_eq!(schedule.start(StepId(2)), Err(wrong(2, "start", waiting)));
    assert_eq!(schedule.finish(StepId(1)), Err(wrong(1, "finish", StepState::Ready)));
    schedule.start(StepId(1)).unwrap();
    assert_eq!(schedule.start(StepId(1)), Err(wrong(1, "start", StepState::Running)));
    assert_eq!(schedule.replanned(StepId(1)), Err(wrong(1, "be replanned", StepState::Running)));
    assert_eq!(schedule.start(StepId(3)), Err(wrong(3, "start", StepState::AnchorReached)));
    assert_eq!(schedule.fail(StepId(9)), Err(ScheduleError::UnknownStep { step: StepId(9) }));
    schedule.finish(StepId(1)).unwrap();
    assert_eq!(schedule.finish(StepId(1)), Err(wrong(1, "finish", StepState::Done)));
    let before = schedule.states();
    assert!(schedule.extend(&[step(4, &[]), step(2, &[])]).is_err());
    assert!(schedule.extend(&[step(4, &[5]), step(5, &[4])]).is_err());
    assert_eq!(schedule.states(), before);
}

/// OP9: an anchor is reached when what it waits for has ended, runs nothing, and is answered once.
#[test]
fn op9_an_anchor_is_reached_once() {
    let mut schedule = schedule(vec![step(1, &[]), anchor(2, &[1])]);
    assert_eq!(schedule.anchors_reached().next(), None);
    assert!(!schedule.is_stalled());
    finish(&mut schedule, 1);
    assert_eq!(schedule.anchors_reached().collect::<Vec<_>>(), ids(&[2]));
    assert!(schedule.is_stalled() && !schedule.is_done());
    assert_eq!(schedule.replanned(StepId(2)).unwrap(), []);
    assert_eq!(schedule.anchors_reached().next(), None);
    assert!(schedule.is_done());
    assert!(schedule.replanned(StepId(2)).is_err());
}

/// OP9: what waited for the anchor is skipped when a new plan answers it, and the new plan runs.
#[test]
fn op9_a_new_plan_stands_in_for_what_waited_for_the_anchor() {
    let mut schedule = schedule(vec![step(1, &[]), anchor(2, &[1]), step(3, &[2]), step(4, &[3])]);
    finish(&mut schedule, 1);
    assert_eq!(schedule.replanned(StepId(2)).unwrap(), ids(&[3, 4]));
    assert_eq!(state(&schedule, 4), skipped(2));
    assert_eq!(schedule.extend(&[step(5, &[1, 2]), step(6, &[5])]).unwrap(), []);
    assert_eq!(ready(&schedule), [5]);
    finish(&mut schedule, 5);
    finish(&mut schedule, 6);
    assert!(schedule.is_done());
}

/// OP10: steps that do not wait for the anchor start and end while it is being answered.
#[test]
fn op10_independent_steps_go_on_beside_an_anchor() {
    let mut schedule =
        schedule(vec![step(1, &[]), anchor(2, &[1]), step(3, &[]), step(4, &[3]), step(5, &[2])]);
    finish(&mut schedule, 1);
    assert_eq!(schedule.anchors_reached().collect::<Vec<_>>(), ids(&[2]));
    assert_eq!(ready(&schedule), [3]);
    assert!(!schedule.is_stalled());
    finish(&mut schedule, 3);
    assert_eq!(ready(&schedule), [4]);
    schedule.start(StepId(4)).unwrap();
    schedule.replanned(StepId(2)).unwrap();
    schedule.extend(&[step(6, &[4])]).unwrap();
    assert_eq!(state(&schedule, 6), StepState::Waiting { left: 1 });
    schedule.finish(StepId(4)).unwrap();
    assert_eq!(ready(&schedule), [6]);
}

/// OP12: a new plan may wait for old steps: done ones hold, failed ones skip it.
#[test]
fn op12_a_new_plan_may_name_old_steps() {
    let mut schedule = schedule(vec![step(1, &[]), step(2, &[]), step(3, &[2])]);
    finish(&mut schedule, 1);
    fail(&mut schedule, 2);
    let skips = schedule.extend(&[step(4, &[1]), step(5, &[3]), step(6, &[5])]).unwrap();
    assert_eq!(skips, ids(&[5, 6]));
    assert_eq!(state(&schedule, 6), skipped(2));
    assert_eq!(ready(&schedule), [4]);
}

/// OP16: a new plan runs after the old one ended by `fail_fast`.
#[test]
fn op16_a_new_plan_runs_after_fail_fast() {
    let mut schedule = schedule(vec![step_with(1, &[], FailurePolicy::FailFast), step(2, &[])]);
    fail(&mut schedule, 1);
    schedule.extend(&[step(3, &[])]).unwrap();
    assert_eq!(ready(&schedule), [3]);
}

/// OP8: a step is ready as soon as it has been added and its dependences have ended, in whatever order
/// steps are added.
#[test]
fn op8_steps_start_while_the_plan_is_still_written() {
    let mut schedule = Schedule::open();
    schedule.extend(&[step(2, &[1])]).unwrap();
    assert_eq!(state(&schedule, 2), StepState::Waiting { left: 1 });
    schedule.extend(&[step(1, &[])]).unwrap();
    finish(&mut schedule, 1);
    assert_eq!(ready(&schedule), [2]);
    schedule.extend(&[step(3, &[1])]).unwrap();
    assert_eq!(ready(&schedule), [2, 3]);
    finish(&mut schedule, 2);
    finish(&mut schedule, 3);
    assert!(!schedule.is_done());
    schedule.seal().unwrap();
    assert!(schedule.is_done());
}

/// OP8, B3: a step that was never added, and a ring that was written piece by piece, are refused at the
/// end; the run can be cancelled.
#[test]
fn op8_a_plan_that_ends_wrong_is_refused() {
    let mut open = Schedule::open();
    open.extend(&[step(1, &[]), step(3, &[2])]).unwrap();
    let error = open.seal().unwrap_err();
    assert_eq!(error, ScheduleError::UnknownDependence { step: StepId(3), after: StepId(2) });
    open.extend(&[step(2, &[3])]).unwrap();
    let error = open.seal().unwrap_err();
    assert!(error.to_string().ends_with("step2 -> step3 -> step2"), "{error}");
    assert_eq!(open.cancel_rest(), ids(&[1, 2, 3]));
    open.seal().unwrap();
    assert!(open.is_done());
}

/// OP16: after a `fail_fast` step failed, steps that are still being written are skipped as they
/// arrive.
#[test]
fn op16_fail_fast_holds_for_steps_that_come_later() {
    let mut schedule = Schedule::open();
    schedule.extend(&[step_with(1, &[], FailurePolicy::FailFast)]).unwrap();
    fail(&mut schedule, 1);
    assert_eq!(schedule.extend(&[step(2, &[]), step(3, &[9])]).unwrap(), ids(&[2, 3]));
    assert_eq!(state(&schedule, 3), skipped(1));
    schedule.seal().unwrap();
    assert!(schedule.is_done());
}

/// Cancelling the rest keeps what runs and what has ended.
#[test]
fn cancelling_keeps_what_runs() {
    let mut schedule = schedule(vec![step(1, &[]), step(2, &[]), step(3, &[1]), anchor(4, &[])]);
    schedule.start(StepId(1)).unwrap();
    assert_eq!(schedule.cancel_rest(), ids(&[2, 3, 4]));
    assert!(!schedule.is_done());
    assert_eq!(schedule.finish(StepId(1)).unwrap(), []);
    assert!(schedule.is_done());
    assert_eq!(state(&schedule, 3), StepState::Cancelled);
    assert_eq!(schedule.cancel_rest(), []);
}

/// R12: steps with a recorded result have ended and are not ready again; a step that was under way
/// without a result is.
#[test]
fn r12_recorded_results_are_not_run_again() {
    let steps = vec![step(1, &[]), step(2, &[1]), step(3, &[1]), step(4, &[2, 3]), step(5, &[])];
    let mut schedule = schedule(steps);
    let (success, error) = (success(), error());
    let records = [(StepId(2), &error), (StepId(1), &success)];
    assert_eq!(schedule.restore(records).unwrap(), []);
    assert_eq!(ready(&schedule), [3, 5]);
    assert_eq!(finish(&mut schedule, 3), ids(&[4]));
    // The same records again change nothing; a contradiction does not either.
    let before = schedule.states();
    assert_eq!(schedule.restore(records).unwrap(), []);
    assert!(schedule.restore([(StepId(5), &error), (StepId(1), &error)]).is_err());
    assert!(schedule.restore([(StepId(5), &error), (StepId(5), &success)]).is_err());
    assert!(schedule.restore([(StepId(5), &error), (StepId(8), &success)]).is_err());
    assert_eq!(schedule.states(), before);
}

/// R12: an answered anchor stays answered, and what was skipped stays skipped.
#[test]
fn r12_an_answered_anchor_is_not_asked_again() {
    let mut schedule = schedule(vec![step(1, &[]), anchor(2, &[1]), step(3, &[2])]);
    let success = success();
    let skips = schedule.restore([(StepId(1), &success), (StepId(2), &success)]).unwrap();
    assert_eq!(skips, ids(&[3]));
    assert_eq!(schedule.anchors_reached().next(), None);
    schedule.extend(&[step(4, &[1])]).unwrap();
    assert_eq!(ready(&schedule), [4]);
}

/// R12: after a recorded failure of a `fail_fast` step nothing is started again, not even what was
/// under way.
#[test]
fn r12_fail_fast_holds_after_a_resume() {
    let steps = vec![step_with(1, &[], FailurePolicy::FailFast), step(2, &[]), step(3, &[])];
    let mut schedule = schedule(steps);
    let (success, error) = (success(), error());
    let records = [(StepId(3), &success), (StepId(1), &error)];
    assert_eq!(schedule.restore(records).unwrap(), ids(&[2]));
    assert_eq!(state(&schedule, 3), StepState::Done);
    assert!(schedule.is_done());
}
