//! Records of a range, and which of them cannot be read.

use crate::WhyUnsearched;
use crate::omission::{Omission, OmissionPart};
use crate::vectors::{self, MessageVectors};
use foldback_core::{Block, StoredMessage};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The records of a range.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) found: BTreeMap<u64, Vec<u8>>,
    /// The numbers of those that are damaged.
    pub(crate) damaged: BTreeSet<u64>,
}

/// Returns the messages of a block that can be read. Those that cannot go to `omissions`, of the block `n`.
pub(super) fn messages_of(
    n: u32,
    block: &Block,
    records: &Scanned,
    omissions: &mut Vec<Omission>,
) -> Vec<StoredMessage> {
    let mut omission = |first, last, why| {
        omissions.push(Omission { block: n, part: OmissionPart::Messages(first, last), why });
    };
    let mut lack = |range: Range<u64>| {
        let mut next = range.start;
        for &seq in records.damaged.range(range.clone()) {
            if next < seq {
                omission(next, seq - 1, WhyUnsearched::Missing);
            }
            omission(seq, seq, WhyUnsearched::Damaged);
            next = seq + 1;
        }
        if next < range.end {
            omission(next, range.end - 1, WhyUnsearched::Missing);
        }
    };
    let range = block.range.as_u64();
    let mut messages = Vec::new();
    let mut next = range.start;
    let mut unread = Vec::new();
    for (&seq, bytes) in records.found.range(range.clone()) {
        if next < seq {
            lack(next..seq);
        }
        next = seq + 1;
        match rmp_serde::from_slice(bytes) {
            Ok(message) => messages.push(message),
            Err(_) => unread.push(seq),
        }
    }
    if next < range.end {
        lack(next..range.end);
    }
    unread.into_iter().for_each(|seq| omission(seq, seq, WhyUnsearched::Damaged));
    messages
}

/// Returns the vectors of a block's messages that can be read. Those that cannot go to `omissions`, of the block `n`.
pub(super) fn vectors_of(
    n: u32,
    block: &Block,
    records: &Scanned,
    omissions: &mut Vec<Omission>,
) -> Vec<(u64, MessageVectors)> {
    let mut omission = |seq| {
        omissions.push(Omission {
            block: n,
            part: OmissionPart::Vectors(seq),
            why: WhyUnsearched::Damaged,
        });
    };
    let mut all = Vec::new();
    for (&seq, bytes) in records.found.range(block.range.as_u64()) {
        match vectors::decode(bytes) {
            Ok(vectors) => all.push((seq, vectors)),
            Err(_) => omission(seq),
        }
    }
    records.damaged.range(block.range.as_u64()).for_each(|seq| omission(*seq));
    all
}
