//! The phase and the complexity of a task: pure functions of what was said so far.

use serde::{Deserialize, Serialize};

/// The phase of a task. Blocks are finer at its beginning and its end, as far as their
/// [sizes](crate::ChunkerConfig::with_sizes) leave room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Its first ten messages: blocks of 3 to 5.
    Opening,
    /// The time between. Blocks of 5 to 8 while tools are at work, otherwise of 3 to 6.
    Middle,
    /// The todo list says that it is being wrapped up: blocks of 3 to 5.
    Closing,
}

/// The complexity of a task, counted over what was said since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Complexity {
    /// Different tools that were called, counted up to 16.
    pub tools: u8,
    /// The longest chain of calls without a word of the user between them.
    pub nesting: u16,
    /// The most calls in one message.
    pub parallel: u16,
    /// Items of the todo list that are open.
    pub open_items: u32,
}

impl Complexity {
    /// Returns whether the task counts as complex: three tools or more, parallel calls, three calls
    /// in a row or more, or two open items or more. Complex tasks keep five loose messages in view
    /// and search more widely; simple ones keep three.
    #[must_use]
    pub fn is_complex(&self) -> bool {
        self.tools >= 3 || self.parallel >= 2 || self.nesting >= 3 || self.open_items >= 2
    }
}

/// The data kept about a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Messages since it began, instructions not counted.
    spoken: u64,
    closing: bool,
    tools: Vec<u32>,
    chain: u16,
    complexity: Complexity,
    /// One bit for each of the last messages: whether it called a tool or answered a call.
    recent: u8,
}

const OPENING: u64 = 10;
const TOOLS_KEPT: usize = 16;

impl Task {
    /// Takes a message that is not an instruction. `calls` are the hashes of the tools that it
    /// calls.
    pub(crate) fn observe(&mut self, is_tool: bool, is_user: bool, calls: &[u32]) {
        self.spoken = self.spoken.saturating_add(1);
        self.recent = self.recent << 1 | u8::from(is_tool || !calls.is_empty());
        if is_user {
            self.chain = 0;
        }
        if calls.is_empty() {
            return;
        }
        for call in calls {
            if self.tools.len() < TOOLS_KEPT && !self.tools.contains(call) {
                self.tools.push(*call);
            }
        }
        self.chain = self.chain.saturating_add(1);
        self.complexity.tools = self.tools.len() as u8;
        self.complexity.nesting = self.complexity.nesting.max(self.chain);
        let parallel = u16::try_from(calls.len()).unwrap_or(u16::MAX);
        self.complexity.parallel = self.complexity.parallel.max(parallel);
    }

    pub(crate) fn set_open_items(&mut self, items: u32) {
        self.complexity.open_items = items;
    }

    pub(crate) fn set_closing(&mut self, closing: bool) {
        self.closing = closing;
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.closing {
            Phase::Closing
        } else if self.spoken <= OPENING {
            Phase::Opening
        } else {
            Phase::Middle
        }
    }

    /// Returns whether half or more of the last eight messages belong to tool calls.
    pub(crate) fn is_tool_heavy(&self) -> bool {
        self.recent.count_ones() >= 4
    }

    pub(crate) fn complexity(&self) -> Complexity {
        self.complexity
    }

    /// Messages since the task began, instructions not counted.
    pub(crate) fn spoken(&self) -> u64 {
        self.spoken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bl9_the_closing_phase_comes_from_the_todo_list_only() {
        let mut task = Task::default();
        for _ in 0..500 {
            assert_ne!(task.phase(), Phase::Closing);
            task.observe(false, true, &[]);
        }
        assert_eq!(task.phase(), Phase::Middle);
        task.set_closing(true);
        assert_eq!(task.phase(), Phase::Closing);
        task.set_closing(false);
        assert_eq!(task.phase(), Phase::Middle, "there is more to do after all");
    }

    #[test]
    fn bl9_complexity_counts_tools_nesting_and_side_by_side() {
        let mut task = Task::default();
        task.observe(false, true, &[]);
        task.observe(false, false, &[1]);
        task.observe(true, false, &[]);
        assert!(!task.complexity().is_complex());
        task.observe(false, false, &[1, 2]);
        let found = task.complexity();
        assert_eq!((found.tools, found.nesting, found.parallel), (2, 2, 2));
        assert!(found.is_complex());
        let mut simple = Task::default();
        simple.set_open_items(2);
        assert!(simple.complexity().is_complex());
    }
}
