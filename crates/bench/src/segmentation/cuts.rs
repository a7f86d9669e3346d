//! The cuts of a conversation: by the memory, and by the methods that it is compared with.

use crate::{BenchError, Case};
use foldback::{Close, Memory, Options};
use foldback_core::{Timestamp, TodoId};

/// The cuts that the memory made in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryCuts {
    /// The messages before which a topic ended: the previous block closed by topic, gap or switch.
    pub(super) topics: Vec<usize>,
    /// The messages before which any block ended.
    pub(super) blocks: Vec<usize>,
}

impl MemoryCuts {
    /// Records a conversation into a memory as an import does it, message by message, and reads its
    /// blocks.
    pub(super) fn of(case: &Case, options: &Options) -> Result<Self, BenchError> {
        // Messages without a time get this one, so that no clock influences a result.
        let memory = Memory::in_memory(options.clone().with_clock(|| Timestamp(0)))?;
        let todo = TodoId::from_foreign(&case.id);
        memory.conversations().import(&todo, &case.conversation)?;
        // An import leaves a call open whose result may come; this conversation is over.
        memory.session(&todo)?.close(Close::End)?;
        let mut cuts = Self::default();
        let end = case.conversation.messages.len();
        for block in memory.blocks(&todo, 0, usize::MAX)? {
            let at = usize::try_from(block.range.last().0 + 1).unwrap_or(usize::MAX);
            if at < end {
                cuts.blocks.push(at);
                if block.close_reason.is_topic_cut() {
                    cuts.topics.push(at);
                }
            }
        }
        Ok(cuts)
    }
}

/// Returns as many cuts as are given, evenly spaced: this method knows how many there are.
pub(super) fn even(n: usize, given: usize) -> Vec<usize> {
    let segments = given + 1;
    let place = |at: usize| (at as f64 * n as f64 / segments as f64).round() as usize;
    let mut cuts: Vec<usize> = (1..segments).map(place).filter(|at| (1..n).contains(at)).collect();
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::even;

    #[test]
    fn even_cuts_lie_in_equal_distances() {
        assert_eq!(even(12, 2), [4, 8]);
        assert_eq!(even(10, 0), [0_usize; 0]);
        assert_eq!(even(2, 5), [1]);
    }
}
