//! The proof that nothing was lost: every message rebuilt from the store and compared with its
//! source, blocks and open tail against the sequence, every payload against its hash.

use crate::walk;
use foldback::{Error, Memory};
use foldback_core::{Message, Pairing, PairingTracker, TodoId};

/// What was compared, and what did not agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Messages that were rebuilt and compared.
    pub(crate) messages: u64,
    /// Their bytes, and those of the payloads.
    pub(crate) bytes: u64,
    /// Payloads whose hash was checked.
    pub(crate) payloads: u64,
    /// Their bytes.
    pub(crate) payload_bytes: u64,
    /// Calls that a block boundary separates from their results.
    pub(crate) units_cut: u64,
    /// The differences, in sentences.
    pub(crate) problems: Vec<String>,
    /// Further problems.
    pub(crate) untold: u64,
}

/// Messages and payloads are read in steps of this size.
const STEP: usize = 256;

/// Further problems are counted, not reported.
const PROBLEMS_MOST: usize = 20;

impl Proof {
    pub(crate) fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MOST {
            self.problems.push(what());
        } else {
            self.untold += 1;
        }
    }
}

/// Compares the store's contents for `todo` with `source`.
///
/// # Errors
/// When the store cannot be read at all; wrong contents are a problem of the proof.
pub(crate) fn prove(memory: &Memory, todo: &TodoId, source: &[Message]) -> Result<Proof, Error> {
    let mut proof = Proof::default();
    let len = memory.len(todo)?;
    if len != source.len() as u64 {
        proof.problem(|| {
            format!("{len} messages are recorded, but the source has {}", source.len())
        });
    }
    compare(memory, todo, source, &mut proof);
    let first_of_block = partition(memory, todo, len, &mut proof)?;
    proof.units_cut = units_cut(source, &first_of_block);
    let handle = memory.find(todo)?;
    for finding in memory.payloads().verify(&handle)? {
        proof.problem(|| finding.to_string());
    }
    let mut after = 0;
    loop {
        let metas = memory.payloads().metas(&handle, after, STEP)?;
        let Some(last) = metas.last() else { break };
        after = last.n;
        proof.payloads += metas.len() as u64;
        proof.payload_bytes += metas.iter().map(|meta| meta.bytes).sum::<u64>();
    }
    proof.bytes += proof.payload_bytes;
    Ok(proof)
}

fn compare(memory: &Memory, todo: &TodoId, source: &[Message], proof: &mut Proof) {
    let mut seq = 0;
    for step in source.chunks(STEP) {
        let to = seq + step.len() as u64;
        match memory.messages(todo, seq..to) {
            Ok(held) => {
                if held.len() != step.len() {
                    proof.problem(|| format!("messages {seq} to {to} are not all there"));
                }
                for (at, (held, source)) in (seq..).zip(held.iter().zip(step)) {
                    proof.messages += 1;
                    proof.bytes += source.json().len() as u64;
                    if held.json() != source.json() {
                        proof.problem(|| format!("message {at} is not what was recorded"));
                    }
                }
            }
            Err(error) => proof.problem(|| error.to_string()),
        }
        seq = to;
    }
}

/// Returns the first message of each block. Blocks have to follow each other without gap or
/// overlap, and end before the open tail.
fn partition(
    memory: &Memory,
    todo: &TodoId,
    len: u64,
    proof: &mut Proof,
) -> Result<Vec<u64>, Error> {
    let mut next = 0;
    let mut firsts = Vec::new();
    for block in walk::blocks(memory, todo) {
        let block = block?;
        let (first, id) = (block.range.first().0, &block.header.block_id);
        if first != next {
            proof.problem(|| format!("block {id} begins at message {first}, not at {next}"));
        }
        next = block.range.last().0 + 1;
        firsts.push(first);
    }
    if next > len {
        proof.problem(|| format!("the last block ends after the last message, at {next}"));
    }
    // The open tail is what follows the last block.
    firsts.push(next);
    Ok(firsts)
}

/// How many results are in another block than their call.
fn units_cut(source: &[Message], first_of_block: &[u64]) -> u64 {
    let block_of = |seq: u64| first_of_block.partition_point(|first| *first <= seq);
    let mut tracker = PairingTracker::default();
    let mut caller = 0;
    let mut cut = 0;
    for (seq, message) in (0..).zip(source) {
        match tracker.observe(message) {
            Pairing::Calls { .. } => caller = seq,
            Pairing::Answers if block_of(seq) != block_of(caller) => cut += 1,
            _ => {}
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{ToolCall, ToolCallId};

    #[test]
    fn a_boundary_between_call_and_result_is_seen() {
        let call = ToolCall::new("c", "t", "{}");
        let source = [
            Message::user("q"),
            Message::calls("", vec![call]),
            Message::tool_result(&ToolCallId::new("c"), "r"),
            Message::assistant("a"),
        ];
        assert_eq!(units_cut(&source, &[0, 2]), 1);
        assert_eq!(units_cut(&source, &[0, 1, 3]), 0);
        assert_eq!(units_cut(&source, &[0]), 0);
    }

    #[test]
    fn problems_are_counted_beyond_those_that_are_told() {
        let mut proof = Proof::default();
        for at in 0..PROBLEMS_MOST + 3 {
            proof.problem(|| at.to_string());
        }
        assert_eq!((proof.problems.len(), proof.untold), (PROBLEMS_MOST, 3));
        assert!(!proof.holds());
    }
}
