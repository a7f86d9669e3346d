//! The runs of sub-agents in a record: each within the call that it worked for.

use super::{CallRecord, ParentCall, Trajectory};

impl Trajectory {
    /// Iterates over the runs of the sub-agents that worked for this one, in the order of the calls that they
    /// worked for.
    pub fn sub_agents(&self) -> impl Iterator<Item = &Self> {
        self.calls.iter().flat_map(|call| match call {
            CallRecord::Tool(call) => call.sub_agents.as_slice(),
            CallRecord::Model(_) => &[],
        })
    }

    /// Iterates over the same runs, for changes.
    pub fn sub_agents_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.calls.iter_mut().flat_map(|call| match call {
            CallRecord::Tool(call) => call.sub_agents.as_mut_slice(),
            CallRecord::Model(_) => &mut [],
        })
    }

    /// Returns the run and all runs of sub-agents below it as separate records, for a reader that takes one
    /// after the other: each comes before those that worked for it, which have the call in
    /// [`Situation::parent`](super::Situation::parent).
    #[must_use]
    pub fn flattened(mut self) -> Vec<Self> {
        let todo = self.situation.todo.clone();
        let mut below = Vec::new();
        for call in &mut self.calls {
            let CallRecord::Tool(call) = call else { continue };
            for mut run in call.sub_agents.drain(..) {
                let (todo, turn, step) = (todo.clone(), call.turn, call.step);
                run.situation.parent = Some(ParentCall { todo, turn, step });
                below.extend(run.flattened());
            }
        }
        below.insert(0, self);
        below
    }
}
