//! Propagates the end of a step to other steps.

use super::Schedule;
use super::node::Halt;
use super::state::StepState;
use crate::StepId;

impl Schedule {
    /// Ends a step, and everything that ends with it. Returns the steps that were skipped, ascending.
    pub(super) fn end(&mut self, place: usize, state: StepState) -> Vec<StepId> {
        let mut closed = Vec::new();
        self.nodes[place].state = state;
        self.ended += 1;
        self.release(place, &mut closed);
        let node = &self.nodes[place];
        if node.is_fatal() && self.halted.is_none() {
            let halt = Halt::Failure(node.id);
            self.halted = Some(halt);
            self.halt(halt, 0, &mut closed);
        }
        closed.sort_unstable();
        closed
    }

    /// Informs the steps that wait for a step that it has ended, and so on as long as steps are
    /// skipped.
    pub(super) fn release(&mut self, place: usize, closed: &mut Vec<StepId>) {
        let mut ended = vec![place];
        while let Some(place) = ended.pop() {
            let root = self.nodes[place].root();
            for dependent in std::mem::take(&mut self.nodes[place].dependents) {
                let node = &mut self.nodes[dependent];
                node.left -= 1;
                node.doom(root);
                if node.may_be_admitted() && self.admit(dependent, closed) {
                    ended.push(dependent);
                }
            }
        }
    }

    /// Marks a step that has nothing left to wait for as ready, reached or skipped; returns whether it was
    /// skipped.
    pub(super) fn admit(&mut self, place: usize, closed: &mut Vec<StepId>) -> bool {
        let node = &mut self.nodes[place];
        if let Some(because) = node.doomed {
            node.state = StepState::Skipped { because };
            self.ended += 1;
            closed.push(node.id);
            return true;
        }
        if node.is_anchor {
            node.state = StepState::AnchorReached;
            self.reached.insert(node.id);
        } else {
            node.state = StepState::Ready;
            self.ready.insert(node.id);
        }
        false
    }

    /// Ends every step from a place on that has not started.
    pub(super) fn halt(&mut self, halt: Halt, from: usize, closed: &mut Vec<StepId>) {
        for node in &mut self.nodes[from..] {
            if node.state.has_ended() || node.state == StepState::Running {
                continue;
            }
            node.state = match halt {
                Halt::Failure(because) => StepState::Skipped { because },
                Halt::Cancelled => StepState::Cancelled,
            };
            self.ready.remove(&node.id);
            self.reached.remove(&node.id);
            self.ended += 1;
            closed.push(node.id);
        }
    }
}
