//! Restores the schedule of an interrupted run.

use super::{Halt, Schedule, ScheduleError, StepState};
use crate::{StepId, StepResult};

impl Schedule {
    /// Takes over recorded results, in any order, before anything is started. Their steps have ended
    /// and do not run again; returns the other steps that are skipped because of them. A step that
    /// already has the same result is left unchanged, so that the records of a run may be given
    /// repeatedly.
    ///
    /// A run with several plans is restored in its original order: the first plan, its results, the
    /// next plan, and so on. The result of an answered anchor is a success. After a recorded failure
    /// with `FailFast` a call that had begun is not begun again: it is skipped like the rest. A
    /// recorded result outranks such a halt: the step had been started before it.
    ///
    /// # Errors
    /// When a result belongs to an unknown step, or contradicts the schedule. Nothing is changed then.
    pub fn restore<'a>(
        &mut self,
        results: impl IntoIterator<Item = (StepId, &'a StepResult)>,
    ) -> Result<Vec<StepId>, ScheduleError> {
        self.restore_beside(results, &[])
    }

    /// Does the same for a run that went on to answer `anchors` before it was halted: a recorded
    /// failure with `FailFast` leaves them, and the steps before and after them, unchanged, until
    /// [`replanned`](Self::replanned) says again that they were answered.
    ///
    /// # Errors
    /// As [`restore`](Self::restore).
    pub fn restore_beside<'a>(
        &mut self,
        results: impl IntoIterator<Item = (StepId, &'a StepResult)>,
        anchors: &[StepId],
    ) -> Result<Vec<StepId>, ScheduleError> {
        let by_halt = self.halted.map(Halt::state);
        let mut given = Vec::new();
        let mut restored = Vec::new();
        for (step, result) in results {
            let place = self.place(step)?;
            let state = match result {
                StepResult::Success { .. } => StepState::Done,
                StepResult::Error { .. } => StepState::Failed,
                StepResult::Skipped { because } => StepState::Skipped { because: *because },
            };
            let now = self.nodes[place].state();
            let is_final = now.has_ended() && Some(now) != by_halt;
            if now == StepState::Running || (is_final && now != state) {
                return Err(ScheduleError::State { step, change: "be restored", state: now });
            }
            if now != state {
                restored.push((place, state));
            }
            given.push(place);
        }
        restored.sort_by_key(|(place, _)| *place);
        restored.dedup();
        if let Some(pair) = restored.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (place, state) = pair[0];
            let step = self.nodes[place].id;
            return Err(ScheduleError::State { step, change: "be restored", state });
        }
        for &(place, state) in &restored {
            let node = &mut self.nodes[place];
            if !node.state.has_ended() {
                self.ended += 1;
            }
            node.state = state;
            self.ready.remove(&node.id);
            self.reached.remove(&node.id);
        }
        let mut closed = Vec::new();
        for &(place, _) in &restored {
            self.release(place, &mut closed);
        }
        let nodes = given.iter().map(|place| &self.nodes[*place]);
        let fatal = nodes.filter(|node| node.is_fatal()).map(|node| node.id).min();
        if let (Some(step), None) = (fatal, self.halted) {
            let halt = Halt::Failure(step);
            self.halted = Some(halt);
            self.halt_around(anchors, halt, &mut closed);
        }
        closed.sort_unstable();
        Ok(closed)
    }

    /// Skips what had not started when a step that is added only later failed with `FailFast`: a step of
    /// a plan beside this one. It leaves the same steps unchanged as
    /// [`restore_beside`](Self::restore_beside), and returns those that are skipped.
    pub fn halt_beside(&mut self, failed: StepId, anchors: &[StepId]) -> Vec<StepId> {
        let mut closed = Vec::new();
        self.halt_around(anchors, Halt::Failure(failed), &mut closed);
        closed.sort_unstable();
        closed
    }

    /// Ends every step that has not started, except these anchors and the steps connected with them.
    fn halt_around(&mut self, anchors: &[StepId], halt: Halt, closed: &mut Vec<StepId>) {
        let mut kept = Vec::new();
        for place in self.bound_up_with(anchors) {
            let node = &mut self.nodes[place];
            kept.push((place, std::mem::replace(&mut node.state, StepState::Running)));
        }
        let before = closed.len();
        self.halt(halt, 0, closed);
        let has_kept = !kept.is_empty();
        for (place, state) in kept {
            self.nodes[place].state = state;
        }
        if has_kept {
            let halted = closed[before..].to_vec();
            for step in halted {
                self.release(self.places[&step], closed);
            }
        }
    }

    /// Returns the places of these anchors, of their dependences and of the steps that wait for them,
    /// directly or not, as far as these have not ended.
    fn bound_up_with(&self, anchors: &[StepId]) -> Vec<usize> {
        let has_not_ended = |place: &usize| !self.nodes[*place].state.has_ended();
        let anchors = anchors.iter().filter_map(|anchor| self.places.get(anchor).copied());
        let anchors: Vec<usize> = anchors.filter(has_not_ended).collect();
        if anchors.is_empty() {
            return anchors;
        }
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            for &dependent in &node.dependents {
                before[dependent].push(place);
            }
        }
        let mut found = vec![false; self.nodes.len()];
        let mut walk = |next: &dyn Fn(usize) -> Vec<usize>| {
            let mut seen = vec![false; self.nodes.len()];
            let mut left = anchors.clone();
            while let Some(place) = left.pop() {
                if !std::mem::replace(&mut seen[place], true) {
                    found[place] = true;
                    left.extend(next(place));
                }
            }
        };
        walk(&|place| before[place].clone());
        walk(&|place| self.nodes[place].dependents.clone());
        (0..self.nodes.len()).filter(|place| found[*place]).filter(has_not_ended).collect()
    }
}

impl Halt {
    /// Returns the state of a step that was ended by it.
    fn state(self) -> StepState {
        match self {
            Self::Failure(because) => StepState::Skipped { because },
            Self::Cancelled => StepState::Cancelled,
        }
    }
}
