//! A run: the steps of a plan in execution.

mod emitted;
mod ending;
mod repeats;
mod results;
mod start;

use self::ending::{Ending, elapsed, patience};
use super::call::{Finished, Surroundings};
use super::claim::Claim;
use super::consent::{Candidate, Consent};
use super::event::{Event, Trace};
use super::lanes::{Lanes, Rest};
use super::{CallReport, Outcome, RunError};
use crate::journal::{Past, PastPlan};
use crate::{JournalError, Record};
use foldback_planner::{Progress, Quantity, Schedule, Step, StepId, StepResult};
use foldback_tool::{CancellationToken, Data, FailureKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, Sleep};

/// The steps of a plan in execution.
///
/// Calls that were started continue by themselves; ready steps are started while the run is
/// [asked for its next event](Self::next), and when it is given steps. Dropping a run cancels it.
pub struct Run {
    around: Arc<Surroundings>,
    past: Past,
    schedule: Schedule,
    steps: BTreeMap<StepId, Step>,
    results: BTreeMap<StepId, StepResult>,
    calls: BTreeMap<StepId, CallReport>,
    /// Steps that are ready and have not been started.
    admitted: BTreeSet<StepId>,
    /// Those of them whose calls wait for the plan to be written to its end.
    held: Vec<Candidate>,
    consent: Consent,
    lanes: Lanes,
    /// Steps whose calls are being made.
    in_flight: BTreeMap<StepId, task::Id>,
    /// Those of them that occupy no place until their next attempt, and the channel that reports them.
    resting: BTreeSet<StepId>,
    rests: mpsc::UnboundedReceiver<Rest>,
    tasks: JoinSet<Finished>,
    announced: BTreeSet<StepId>,
    events: VecDeque<Event>,
    trace: Trace,
    began: Instant,
    /// The number of calls that were started, and the bytes of their answers.
    call_count: usize,
    output_bytes: usize,
    wall: Option<Pin<Box<Sleep>>>,
    ending: Option<Ending>,
    error: Option<Arc<JournalError>>,
    /// Recorded failures with `FailFast`, each with the number of its record.
    halts: Vec<(usize, StepId, StepResult)>,
    /// The number of the current plan, and the one that each step belongs to.
    plan: u32,
    plan_of: BTreeMap<StepId, u32>,
    _claim: Option<Claim>,
    _cancel_on_drop: CancelOnDrop,
}

/// Cancels a run that is dropped.
struct CancelOnDrop(CancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Run {
    pub(super) fn new(
        schedule: Schedule,
        past: Past,
        around: Surroundings,
        rests: mpsc::UnboundedReceiver<Rest>,
        claim: Option<Claim>,
    ) -> Self {
        let began = Instant::now();
        // A limit beyond the range of the clock is no limit.
        let wall = around.shared.settings.quota.wall_time.and_then(|wall| began.checked_add(wall));
        let wall = wall.into_iter().chain(around.log.spend().deadline()).min();
        Self {
            _cancel_on_drop: CancelOnDrop(around.cancelled.clone()),
            around: Arc::new(around),
            past,
            schedule,
            steps: BTreeMap::new(),
            results: BTreeMap::new(),
            calls: BTreeMap::new(),
            admitted: BTreeSet::new(),
            held: Vec::new(),
            consent: Consent::default(),
            lanes: Lanes::default(),
            in_flight: BTreeMap::new(),
            resting: BTreeSet::new(),
            rests,
            tasks: JoinSet::new(),
            announced: BTreeSet::new(),
            events: VecDeque::new(),
            trace: Trace::default(),
            began,
            call_count: 0,
            output_bytes: 0,
            wall: wall.map(|end| Box::pin(tokio::time::sleep_until(end))),
            ending: None,
            error: None,
            halts: Vec::new(),
            plan: 0,
            plan_of: BTreeMap::new(),
            _claim: claim,
        }
    }

    /// Waits for the next event. `None` when nothing is in progress: all steps have ended, or only a new
    /// plan, more steps or the end of the plan can cause further events.
    ///
    /// Loses nothing when it is dropped, so that it may be used in a `select!` beside a model's answer.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            self.pump();
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.in_flight.is_empty() && !self.consent.is_asking() {
                return None;
            }
            let cancelled = self.around.cancelled.clone();
            let is_ending = self.ending.is_some();
            tokio::select! {
                biased;
                () = cancelled.cancelled(), if !is_ending => self.end_by_cancellation(),
                () = elapsed(&mut self.wall), if !is_ending => self.end_by_wall_time(),
                () = patience(&mut self.ending), if is_ending => self.abandon(),
                decided = self.consent.answer() => self.take_decisions(decided),
                Some(rest) = self.rests.recv() => self.take_rest(rest),
                Some(joined) = self.tasks.join_next() => self.take_results(joined),
            }
        }
    }

    /// Adds steps: of a plan that is still being written, or of a new plan beside the existing steps. Ready
    /// steps start at once.
    ///
    /// # Errors
    /// When there would be too many steps, a number is taken, a step waits for one that does not exist,
    /// steps wait for each other, or the journal fails or knows other steps. Nothing is added then.
    pub fn extend(&mut self, steps: &[Step]) -> Result<(), RunError> {
        let limits = self.around.shared.settings.quota.plan;
        limits.check(Quantity::Steps, self.steps.len() + steps.len(), None)?;
        let changed = |step: &&Step| self.past.step(step.id).is_some_and(|past| past != *step);
        if let Some(step) = steps.iter().find(changed) {
            return Err(RunError::Changed { run: self.around.run.clone(), step: step.id });
        }
        let closed = self.schedule.extend(steps)?;
        // The steps of a plan that is still being written are one plan.
        self.plan += u32::from(self.schedule.is_sealed());
        self.plan_of.extend(steps.iter().map(|step| (step.id, self.plan)));
        self.steps.extend(steps.iter().map(|step| (step.id, step.clone())));
        let is_new = |step: &&Step| self.past.step(step.id).is_none();
        let new: Vec<Step> = steps.iter().filter(is_new).cloned().collect();
        let open = !self.schedule.is_sealed();
        if !new.is_empty() || (self.past.is_unfinished && !open) {
            self.note_down(&Record::Steps { steps: new, open })?;
            self.past.is_unfinished = open;
        }
        self.restore(steps, closed)?;
        if self.ending.is_some() {
            self.cancel_rest();
        }
        self.pump();
        Ok(())
    }

    /// Declares the plan complete. Steps that were held back until then start.
    ///
    /// # Errors
    /// When a step waits for one that was never added, or steps wait for each other, none of which have
    /// started; or when the journal fails.
    pub fn seal(&mut self) -> Result<(), RunError> {
        if self.schedule.is_sealed() {
            return Ok(());
        }
        self.schedule.seal()?;
        if self.past.is_unfinished || self.past.plans.is_empty() {
            self.note_down(&Record::Steps { steps: Vec::new(), open: false })?;
            self.past.is_unfinished = false;
        }
        let held = std::mem::take(&mut self.held);
        self.admit(held);
        self.pump();
        Ok(())
    }

    /// Declares that a new plan answers a reached anchor. Steps that waited for it are skipped; the new
    /// plan's steps are added with [`extend`](Self::extend).
    ///
    /// # Errors
    /// When it is not a reached anchor, or the journal fails.
    pub fn replanned(&mut self, anchor: StepId) -> Result<(), RunError> {
        let closed = self.schedule.replanned(anchor)?;
        if !self.past.was_replanned(anchor) {
            self.note_down(&Record::Replanned { step: anchor })?;
        }
        let data = Data::default();
        self.results.insert(anchor, StepResult::Success { data });
        self.close(closed);
        self.pump();
        Ok(())
    }

    /// Returns the reached anchors that no new plan has answered, ascending.
    pub fn anchors_reached(&self) -> impl Iterator<Item = StepId> {
        self.schedule.anchors_reached()
    }

    /// Returns a step, as it was given.
    #[must_use]
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(&id)
    }

    /// Returns the results of the steps that have ended, by number.
    #[must_use]
    pub fn results(&self) -> &BTreeMap<StepId, StepResult> {
        &self.results
    }

    /// Returns the reports on the calls that were started, by the number of their step.
    #[must_use]
    pub fn calls(&self) -> &BTreeMap<StepId, CallReport> {
        &self.calls
    }

    /// Returns the progress so far, as a planner has to know it.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::new(self.steps.values(), &self.schedule, &self.results)
    }

    /// Returns the steps whose calls are in progress, ascending.
    pub fn in_flight(&self) -> impl Iterator<Item = StepId> {
        self.in_flight.keys().copied()
    }

    /// Returns whether every step has ended and no more will come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.schedule.is_done()
    }

    /// Returns the token that cancels the run: tools are asked to stop, have the settings' grace, and are
    /// then dropped.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.around.cancelled.clone()
    }

    /// Writes a note into the journal for a resumed run, such as a model's answer.
    ///
    /// # Errors
    /// When the journal fails.
    pub fn note(&mut self, kind: &str, body: &str) -> Result<(), RunError> {
        self.note_down(&Record::Note { kind: kind.to_owned(), body: body.to_owned() })
    }

    /// Returns the notes from before the run was resumed, in order.
    pub fn past_notes<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.past.notes.iter().filter(move |note| note.0 == kind).map(|note| note.1.as_str())
    }

    /// Runs the existing steps to their end. Steps that can never end, such as anchors that nobody answers,
    /// are cancelled; so each step has a result.
    ///
    /// # Errors
    /// When the journal fails now or failed before; the error holds the outcome of the run.
    pub async fn finish(mut self) -> Result<Outcome, RunError> {
        while self.next().await.is_some() {}
        let reason = "the run ended before it could start".to_owned();
        self.ending.get_or_insert(Ending { kind: FailureKind::Cancelled, reason, patience: None });
        self.cancel_rest();
        if let (None, Some(journal)) = (&self.error, &self.around.shared.journal) {
            self.error = journal.sync().await.err().map(Arc::new);
        }
        let outcome = Outcome {
            results: std::mem::take(&mut self.results),
            calls: std::mem::take(&mut self.calls),
            trace: std::mem::take(&mut self.trace).in_order(),
            elapsed: self.began.elapsed(),
        };
        match self.error.take() {
            Some(error) => Err(RunError::Journal { error, outcome: Some(Box::new(outcome)) }),
            None => Ok(outcome),
        }
    }

    /// Checks that these are the steps of the journal's first plan, or begin with them if that plan was not
    /// written to its end.
    pub(super) fn expect_plan(&self, steps: &[Step]) -> Result<(), RunError> {
        let Some(past) = self.past.first_plan() else { return Ok(()) };
        let given: BTreeMap<StepId, &Step> = steps.iter().map(|step| (step.id, step)).collect();
        let known: BTreeSet<StepId> = past.iter().map(|step| step.id).collect();
        let is_whole = !self.past.is_unfinished || self.past.plans.len() > 1;
        let differs = |step: &&Step| given.get(&step.id) != Some(step);
        let is_added = |step: &&Step| is_whole && !known.contains(&step.id);
        match past.iter().find(differs).or_else(|| steps.iter().find(is_added)) {
            Some(step) => Err(RunError::Changed { run: self.around.run.clone(), step: step.id }),
            None => Ok(()),
        }
    }

    pub(super) fn past_is_unfinished(&self) -> bool {
        self.past.is_unfinished
    }

    pub(crate) fn past_plans(&self) -> Vec<PastPlan> {
        self.past.plans.clone()
    }

    fn note_down(&mut self, record: &Record) -> Result<(), RunError> {
        self.around.append(record).map_err(|error| {
            let error = Arc::new(error);
            self.fail(Arc::clone(&error));
            RunError::Journal { error, outcome: None }
        })
    }

    fn tell(&mut self, event: Event) {
        self.emit(&event);
        self.trace.push(self.began.elapsed(), event.clone());
        self.events.push_back(event);
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("states", &self.schedule.states()).finish_non_exhaustive()
    }
}
