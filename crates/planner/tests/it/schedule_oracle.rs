//! Any plan, any outcomes, any order of events: the schedule agrees with a recomputation from scratch,
//! every run ends, and the order in which steps end does not matter.

use crate::schedule::{error, success};
use crate::steps::{anchor, plan, step_with};
use foldback_planner::{FailurePolicy, Schedule, Step, StepId, StepResult, StepState};
use foldback_testkit::effort;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A plan and what happens to it.
#[derive(Clone, Debug)]
struct Run {
    steps: Vec<Step>,
    fails: BTreeSet<StepId>,
    /// Which of the possible events comes next, one number an event.
    choices: Vec<usize>,
    /// Whether the steps are added one by one.
    streamed: bool,
}

impl Run {
    fn without_fail_fast(mut self) -> Self {
        for step in &mut self.steps {
            if step.on_failure == FailurePolicy::FailFast {
                step.on_failure = FailurePolicy::SkipDependents;
            }
        }
        self
    }
}

fn runs() -> impl Strategy<Value = Run> {
    let node = (any::<u32>(), 0..10_u32, 0..6_u32, any::<bool>());
    (
        prop::collection::vec(node, 1..12),
        prop::collection::vec(any::<usize>(), 80),
        any::<bool>(),
        Just((1..12_u32).collect::<Vec<_>>()).prop_shuffle(),
    )
        .prop_map(|(nodes, choices, streamed, order)| {
            let ids: Vec<u32> = order.into_iter().take(nodes.len()).collect();
            let mut fails = BTreeSet::new();
            let mut steps = Vec::new();
            for (at, (edges, kind, policy, is_ok)) in nodes.into_iter().enumerate() {
                // A step waits for some of those before it in a hidden order, sparsely.
                let mut after: Vec<u32> =
                    (0..at).filter(|on| edges >> (2 * on) & 3 == 0).map(|on| ids[on]).collect();
                after.sort_unstable();
                let policy = match policy {
                    0 => FailurePolicy::FailFast,
                    1 | 2 => FailurePolicy::ContinueWithError,
                    _ => FailurePolicy::SkipDependents,
                };
                if kind == 0 {
                    steps.push(anchor(ids[at], &after));
                } else {
                    if !is_ok {
                        fails.insert(StepId(ids[at]));
                    }
                    steps.push(step_with(ids[at], &after, policy));
                }
            }
            Run { steps, fails, choices, streamed }
        })
}

/// Everything that has happened, from which states are recomputed.
#[derive(Clone, Default)]
struct Events {
    known: BTreeMap<StepId, Step>,
    running: BTreeSet<StepId>,
    ended: BTreeMap<StepId, StepState>,
    halted: Option<StepId>,
}

impl Events {
    fn states(&self) -> BTreeMap<StepId, StepState> {
        let mut states = BTreeMap::new();
        for &id in self.known.keys() {
            self.state(id, &mut states);
        }
        states
    }

    fn state(&self, id: StepId, states: &mut BTreeMap<StepId, StepState>) -> Option<StepState> {
        let step = self.known.get(&id)?;
        if let Some(state) = states.get(&id) {
            return Some(*state);
        }
        let after: Vec<Option<StepState>> =
            step.after.iter().map(|&on| self.state(on, states)).collect();
        let left = after.iter().filter(|state| !state.is_some_and(StepState::has_ended)).count();
        let roots = step.after.iter().zip(&after).filter_map(|(&on, state)| {
            let on = self.known.get(&on)?;
            match (*state)? {
                StepState::Failed if on.on_failure == FailurePolicy::ContinueWithError => None,
                StepState::Failed => Some(on.id),
                StepState::Done if is_anchor(on) => Some(on.id),
                StepState::Skipped { because } => Some(because),
                _ => None,
            }
        });
        let state = match (self.ended.get(&id), self.halted, roots.min()) {
            (Some(state), _, _) => *state,
            _ if self.running.contains(&id) => StepState::Running,
            (_, Some(because), _) => StepState::Skipped { because },
            _ if left > 0 => StepState::Waiting { left },
            (_, _, Some(because)) => StepState::Skipped { because },
            _ if is_anchor(step) => StepState::AnchorReached,
            _ => StepState::Ready,
        };
        states.insert(id, state);
        Some(state)
    }
}

fn is_anchor(step: &Step) -> bool {
    matches!(step.action, foldback_planner::Action::Anchor { .. })
}

enum Event {
    Start(StepId),
    End(StepId),
    Replan(StepId),
    Arrive(Step),
}

/// Runs a plan, asking `check` after every event, and returns the schedule.
fn go(run: &Run, check: &mut impl FnMut(&Schedule, &Events, &[StepId])) -> Schedule {
    let mut events = Events::default();
    let mut to_come: Vec<Step> = run.steps.clone();
    let mut schedule = if run.streamed {
        Schedule::open()
    } else {
        let mut sorted = run.steps.clone();
        sorted.sort_by_key(|step| step.id);
        events.known = std::mem::take(&mut to_come).into_iter().map(|s| (s.id, s)).collect();
        Schedule::new(&plan(sorted)).unwrap()
    };
    check(&schedule, &events, &[]);
    let mut turn = 0;
    loop {
        let mut possible: Vec<Event> = schedule.ready().map(Event::Start).collect();
        possible.extend(schedule.anchors_reached().map(Event::Replan));
        possible.extend(events.running.iter().map(|&id| Event::End(id)));
        possible.extend(to_come.last().cloned().map(Event::Arrive));
        if possible.is_empty() {
            break;
        }
        let choice = run.choices[turn % run.choices.len()] % possible.len();
        turn += 1;
        let closed = match possible.swap_remove(choice) {
            Event::Start(id) => {
                schedule.start(id).unwrap();
                events.running.insert(id);
                Vec::new()
            }
            Event::End(id) => {
                events.running.remove(&id);
                if run.fails.contains(&id) {
                    // What this failure decides stays; the halt closes the rest.
                    events.ended.insert(id, StepState::Failed);
                    let fatal = events.known[&id].on_failure == FailurePolicy::FailFast;
                    if fatal && events.halted.is_none() {
                        let ended = events.states().into_iter().filter(|s| s.1.has_ended());
                        events.ended.extend(ended);
                        events.halted = Some(id);
                    }
                    schedule.fail(id).unwrap()
                } else {
                    events.ended.insert(id, StepState::Done);
                    schedule.finish(id).unwrap()
                }
            }
            Event::Replan(id) => {
                events.ended.insert(id, StepState::Done);
                schedule.replanned(id).unwrap()
            }
            Event::Arrive(step) => {
                to_come.pop();
                events.known.insert(step.id, step.clone());
                schedule.extend([&step]).unwrap()
            }
        };
        check(&schedule, &events, &closed);
        assert!(turn <= 4 * run.steps.len(), "a run has at most three events a step");
    }
    if run.streamed {
        schedule.seal().unwrap();
    }
    schedule
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(effort(2_000)))]

    /// OP7, OP9, OP10, OP16: after every event the states, the ready steps, the reached anchors and
    /// the newly skipped are what a recomputation from scratch says; and each step ends once.
    #[test]
    fn op16_schedule_equals_a_recomputation_from_scratch(run in runs()) {
        let mut closed_before = BTreeSet::new();
        let schedule = go(&run, &mut |schedule, events, closed| {
            let expected = events.states();
            let states: BTreeMap<_, _> = schedule.states().into_iter().collect();
            assert_eq!(states, expected);
            let of = |wanted| expected.iter().filter(move |s| *s.1 == wanted).map(|s| *s.0);
            assert!(schedule.ready().eq(of(StepState::Ready)));
            assert!(schedule.anchors_reached().eq(of(StepState::AnchorReached)));
            assert_eq!(schedule.running(), of(StepState::Running).count());
            for id in closed {
                assert!(closed_before.insert(*id), "{id} was skipped twice");
            }
            let skipped = expected.iter().filter(|s| matches!(s.1, StepState::Skipped { .. }));
            assert!(skipped.map(|s| s.0).eq(&closed_before));
        });
        prop_assert!(schedule.is_done());
        prop_assert!(schedule.states().iter().all(|(_, state)| state.has_ended()));
    }

    /// OP7, ET13: without `fail_fast` the same outcomes give the same states in whatever order steps
    /// come, start and end.
    #[test]
    fn op7_the_order_of_events_does_not_matter(
        run in runs(), other in prop::collection::vec(any::<usize>(), 80), streamed in any::<bool>(),
    ) {
        let run = run.without_fail_fast();
        let again = Run { choices: other, streamed, ..run.clone() };
        let ignore = &mut |_: &Schedule, _: &Events, _: &[StepId]| {};
        prop_assert_eq!(go(&run, ignore).states(), go(&again, ignore).states());
    }

    /// R12: a run that is interrupted anywhere and restored from its results, in any order and again,
    /// is in its previous state; what was running is ready.
    #[test]
    fn r12_a_restored_schedule_stands_where_it_stood(run in runs(), rotate in 0..12_usize) {
        let run = Run { streamed: false, ..run.without_fail_fast() };
        let mut steps = run.steps.clone();
        steps.sort_by_key(|step| step.id);
        go(&run, &mut |schedule, _, _| {
            let results = schedule.states().into_iter().filter_map(|(id, state)| match state {
                StepState::Done => Some((id, success())),
                StepState::Failed => Some((id, error())),
                StepState::Skipped { because } => Some((id, StepResult::Skipped { because })),
                _ => None,
            });
            let mut results: Vec<_> = results.collect();
            let middle = rotate.min(results.len());
            results.rotate_left(middle);
            let mut restored = Schedule::new(&plan(steps.clone())).unwrap();
            let results: Vec<_> = results.iter().map(|(id, result)| (*id, result)).collect();
            assert_eq!(restored.restore(results.clone()).unwrap(), []);
            let expected: Vec<_> = schedule.states().into_iter().map(|(id, state)| {
                (id, if state == StepState::Running { StepState::Ready } else { state })
            }).collect();
            assert_eq!(restored.states(), expected);
            assert_eq!(restored.restore(results).unwrap(), []);
            assert!(restored.anchors_reached().eq(schedule.anchors_reached()));
            let ready = expected.iter().filter(|state| state.1 == StepState::Ready);
            assert!(restored.ready().eq(ready.map(|state| state.0)));
            assert_eq!(restored.is_done(), schedule.is_done());
        });
    }
}
