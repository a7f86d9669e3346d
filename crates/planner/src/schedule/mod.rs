//! The schedule of a plan: which steps may start now.

mod endings;
mod error;
mod node;
mod restore;
mod state;

pub use error::ScheduleError;
pub use state::StepState;

use crate::{Action, Graph, Plan, Step, StepId};
use node::{Halt, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A schedule that is given what happens to the steps of a plan and says which may start.
///
/// For each step, it counts the dependences that have not ended yet. Each event touches only the steps
/// that wait for the one concerned, so that a whole run takes time in proportion to steps plus
/// dependences, whatever the shape of the plan.
///
/// A step that will be skipped is skipped when the last step that it waits for has ended, not before.
/// So the order in which steps end does not matter: the same outcomes give the same states. (`FailFast`
/// is the exception: what had started before the failure depends on timing.)
///
/// How many steps run at once, and alongside which others, is not the schedule's concern.
///
/// ```
/// use foldback_planner::{Action, FailurePolicy, Form, Plan, Schedule, Step, StepId, Template};
///
/// let step = |id, after: &[u32]| Step {
///     id: StepId(id),
///     action: Action::Call { function: "search".into(), arguments: Template::Object(vec![]) },
///     after: after.iter().map(|&id| StepId(id)).collect(),
///     on_failure: FailurePolicy::default(),
/// };
/// let steps = vec![step(1, &[]), step(2, &[]), step(3, &[1, 2])];
/// let mut schedule = Schedule::new(&Plan { form: Form::Native, steps })?;
/// assert_eq!(schedule.ready().collect::<Vec<_>>(), [StepId(1), StepId(2)]);
///
/// schedule.start(StepId(1))?;
/// schedule.start(StepId(2))?;
/// schedule.finish(StepId(2))?;
/// assert_eq!(schedule.ready().next(), None);
/// let skipped = schedule.fail(StepId(1))?;
/// assert_eq!(skipped, [StepId(3)]);
/// assert!(schedule.is_done());
/// # Ok::<(), foldback_planner::ScheduleError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    nodes: Vec<Node>,
    places: FxHashMap<StepId, usize>,
    ready: BTreeSet<StepId>,
    reached: BTreeSet<StepId>,
    /// Steps that have not been added yet, and the places of those that wait for them.
    awaited: BTreeMap<StepId, Vec<usize>>,
    running: usize,
    ended: usize,
    sealed: bool,
    halted: Option<Halt>,
}

impl Schedule {
    /// Returns the schedule of a whole plan.
    ///
    /// # Errors
    /// When a number occurs twice, a step waits for a missing one, or steps wait for each other.
    pub fn new(plan: &Plan) -> Result<Self, ScheduleError> {
        let mut schedule = Self { sealed: true, ..Self::default() };
        schedule.extend(&plan.steps)?;
        Ok(schedule)
    }

    /// Returns the schedule of a plan that is still being written: [`extend`](Self::extend) adds steps,
    /// and [`seal`](Self::seal) ends it.
    #[must_use]
    pub fn open() -> Self {
        Self::default()
    }

    /// Adds steps, and returns those that are skipped or cancelled at once.
    ///
    /// While the schedule is open, they may wait for steps that have not been added yet. Once it is
    /// sealed, they are a new plan beside the existing one: their dependences exist already or are
    /// among them, and a halt by `FailFast` or [`cancel_rest`](Self::cancel_rest) does not apply to
    /// them.
    ///
    /// # Errors
    /// When a number exists already, or a sealed schedule is given steps that wait for an unknown one
    /// or for each other. Nothing is added then.
    pub fn extend<'a>(
        &mut self,
        steps: impl IntoIterator<Item = &'a Step>,
    ) -> Result<Vec<StepId>, ScheduleError> {
        let steps: Vec<&Step> = steps.into_iter().collect();
        self.check(&steps)?;
        if self.sealed {
            self.halted = None;
        }
        let first = self.nodes.len();
        self.nodes.reserve(steps.len());
        for step in &steps {
            self.places.insert(step.id, self.nodes.len());
            self.nodes.push(Node {
                id: step.id,
                state: StepState::Waiting { left: 0 },
                left: 0,
                doomed: None,
                is_anchor: matches!(step.action, Action::Anchor { .. }),
                policy: step.on_failure,
                dependents: Vec::new(),
            });
        }
        for (place, step) in (first..).zip(&steps) {
            self.connect(place, step);
        }
        let mut closed = Vec::new();
        for place in first..self.nodes.len() {
            if self.nodes[place].may_be_admitted() && self.admit(place, &mut closed) {
                self.release(place, &mut closed);
            }
        }
        if let Some(halt) = self.halted {
            self.halt(halt, first, &mut closed);
        }
        closed.sort_unstable();
        Ok(closed)
    }

    /// Declares that no more steps of this plan will be added.
    ///
    /// # Errors
    /// When a step waits for one that was never added, or steps wait for each other. Such steps have
    /// not started; the schedule stays open, for [`cancel_rest`](Self::cancel_rest) or more steps.
    pub fn seal(&mut self) -> Result<(), ScheduleError> {
        for (&after, places) in &self.awaited {
            let waiting = places.iter().map(|&place| &self.nodes[place]).filter(|n| n.is_waiting());
            if let Some(step) = waiting.map(|node| node.id).min() {
                return Err(ScheduleError::UnknownDependence { step, after });
            }
        }
        let ids = self.nodes.iter().map(|node| node.id).collect();
        let mut edges = Vec::new();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_waiting()) {
            edges.extend(node.dependents.iter().map(|&dependent| (dependent, place)));
        }
        if let Some(cycle) = Graph::of_edges(ids, edges).cycles().into_iter().next() {
            return Err(ScheduleError::Cycle(cycle));
        }
        self.sealed = true;
        Ok(())
    }

    /// Returns the steps that may start now, ascending.
    pub fn ready(&self) -> impl Iterator<Item = StepId> {
        self.ready.iter().copied()
    }

    /// Returns the lowest of the steps that may start now.
    #[must_use]
    pub fn next_ready(&self) -> Option<StepId> {
        self.ready.first().copied()
    }

    /// Returns the anchors that have been reached, ascending. Each requires one new plan, and remains
    /// here until [`replanned`](Self::replanned) says that there is one.
    pub fn anchors_reached(&self) -> impl Iterator<Item = StepId> {
        self.reached.iter().copied()
    }

    /// Starts a step that is ready.
    ///
    /// # Errors
    /// When there is no such step, or it is not ready.
    pub fn start(&mut self, id: StepId) -> Result<(), ScheduleError> {
        let place = self.expect(id, "start", StepState::Ready)?;
        self.nodes[place].state = StepState::Running;
        self.ready.remove(&id);
        self.running += 1;
        Ok(())
    }

    /// Marks a running step as succeeded. Returns the steps that are skipped now that it has ended:
    /// they waited for it and for another one that failed.
    ///
    /// # Errors
    /// When there is no such step, or it is not running.
    pub fn finish(&mut self, id: StepId) -> Result<Vec<StepId>, ScheduleError> {
        let place = self.expect(id, "finish", StepState::Running)?;
        self.running -= 1;
        Ok(self.end(place, StepState::Done))
    }

    /// Marks a running step as failed, and returns the steps that are skipped now that it has ended.
    ///
    /// # Errors
    /// When there is no such step, or it is not running.
    pub fn fail(&mut self, id: StepId) -> Result<Vec<StepId>, ScheduleError> {
        let place = self.expect(id, "fail", StepState::Running)?;
        self.running -= 1;
        Ok(self.end(place, StepState::Failed))
    }

    /// Marks a reached anchor as answered by a new plan. What waited for the anchor is skipped and
    /// returned: the new plan says what is to be done instead. Steps that do not wait for it continue.
    ///
    /// # Errors
    /// When there is no such step, or it is not a reached anchor.
    pub fn replanned(&mut self, anchor: StepId) -> Result<Vec<StepId>, ScheduleError> {
        let place = self.expect(anchor, "be replanned", StepState::AnchorReached)?;
        self.reached.remove(&anchor);
        Ok(self.end(place, StepState::Done))
    }

    /// Cancels everything that has not started, including reached anchors, and returns those steps.
    /// Running steps continue until they are finished or failed; steps of this plan that are added
    /// later are cancelled at once.
    pub fn cancel_rest(&mut self) -> Vec<StepId> {
        let mut closed = Vec::new();
        self.halted = Some(Halt::Cancelled);
        self.halt(Halt::Cancelled, 0, &mut closed);
        closed.sort_unstable();
        closed
    }

    /// Returns the state of a step; `None` if there is no such step.
    #[must_use]
    pub fn state(&self, id: StepId) -> Option<StepState> {
        self.places.get(&id).map(|&place| self.nodes[place].state())
    }

    /// Returns all steps and their states, ascending by number.
    #[must_use]
    pub fn states(&self) -> Vec<(StepId, StepState)> {
        let mut states: Vec<_> = self.nodes.iter().map(|node| (node.id, node.state())).collect();
        states.sort_unstable_by_key(|state| state.0);
        states
    }

    /// Returns how many steps are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Returns the number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns whether no more steps of this plan will be added.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Returns whether every step has ended and no more will be added.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.sealed && self.ended == self.nodes.len()
    }

    /// Returns whether nothing runs or may start until a reached anchor is answered.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.sealed && self.running == 0 && self.ready.is_empty() && !self.reached.is_empty()
    }

    fn check(&self, steps: &[&Step]) -> Result<(), ScheduleError> {
        let mut new = FxHashSet::default();
        for step in steps {
            if self.places.contains_key(&step.id) || !new.insert(step.id) {
                return Err(ScheduleError::DuplicateStep { step: step.id });
            }
        }
        if !self.sealed {
            return Ok(());
        }
        let mut forward = false;
        for step in steps {
            for after in &step.after {
                if new.contains(after) {
                    forward |= *after >= step.id;
                } else if !self.places.contains_key(after) {
                    let (step, after) = (step.id, *after);
                    return Err(ScheduleError::UnknownDependence { step, after });
                }
            }
        }
        // A cycle contains a step that waits for a higher number.
        if forward
            && let Some(cycle) = Graph::new(steps.iter().copied()).cycles().into_iter().next()
        {
            return Err(ScheduleError::Cycle(cycle));
        }
        Ok(())
    }

    /// Links a new step with the others.
    fn connect(&mut self, place: usize, step: &Step) {
        let is_sorted = step.after.windows(2).all(|pair| pair[0] < pair[1]);
        let once: BTreeSet<StepId> =
            if is_sorted { BTreeSet::new() } else { step.after.iter().copied().collect() };
        let after: &mut dyn Iterator<Item = &StepId> =
            if is_sorted { &mut step.after.iter() } else { &mut once.iter() };
        for on in after {
            let Some(&on_place) = self.places.get(on) else {
                self.awaited.entry(*on).or_default().push(place);
                self.nodes[place].left += 1;
                continue;
            };
            let on = &mut self.nodes[on_place];
            if !on.state.has_ended() {
                on.dependents.push(place);
                self.nodes[place].left += 1;
            } else if !(on.is_anchor && on.state == StepState::Done) {
                // A step that a new plan puts after an answered anchor may run.
                let root = on.root();
                self.nodes[place].doom(root);
            }
        }
        if let Some(waiting) = self.awaited.remove(&step.id) {
            self.nodes[place].dependents.extend(waiting);
        }
    }

    fn place(&self, id: StepId) -> Result<usize, ScheduleError> {
        self.places.get(&id).copied().ok_or(ScheduleError::UnknownStep { step: id })
    }

    fn expect(
        &self,
        id: StepId,
        change: &'static str,
        wanted: StepState,
    ) -> Result<usize, ScheduleError> {
        let place = self.place(id)?;
        let state = self.nodes[place].state();
        if state == wanted {
            Ok(place)
        } else {
            Err(ScheduleError::State { step: id, change, state })
        }
    }
}
