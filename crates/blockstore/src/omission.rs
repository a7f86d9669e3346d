//! The parts that an index lacks, because they could not be read when it was made.

use crate::WhyUnsearched;
use crate::payload_texts::{PayloadText, READ_BYTES};
use crate::records::Records;
use foldback_kv::Todo;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A part that an index lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Omission {
    /// The number that its block has in the index.
    pub(crate) block: u32,
    pub(crate) part: OmissionPart,
    pub(crate) why: WhyUnsearched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OmissionPart {
    /// The whole block, with all its messages.
    Block,
    /// Messages of the block, the first and the last.
    Messages(u64, u64),
    /// The vectors of a message.
    Vectors(u64),
    /// The text of a payload from a byte on, or less of it if there was no room.
    Payload { text: PayloadText, from: u64 },
}

impl Omission {
    /// Returns the payload whose text is missing.
    pub(crate) fn payload(&self) -> Option<PayloadText> {
        match self.part {
            OmissionPart::Payload { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns how many bytes of a payload are read to try it again.
    fn bytes_tried(&self) -> u64 {
        match self.part {
            OmissionPart::Payload { text, from } if self.why != WhyUnsearched::NoRoom => {
                text.end().saturating_sub(from).min(READ_BYTES)
            }
            _ => 0,
        }
    }
}

/// How many omissions are tried again at once.
pub(crate) const TRIED_AGAIN: usize = 64;

/// Which omission a search tries next. One search at a time tries; the others do not wait for it.
#[derive(Default)]
pub(crate) struct NextTried(Mutex<usize>);

impl NextTried {
    /// Returns whether any of the omissions whose turn it is can be read by now: as many as take no more than one
    /// reading of a payload. Each gets its turn.
    pub(crate) fn any(&self, omissions: &[Omission], can_read: impl Fn(&Omission) -> bool) -> bool {
        let Some(mut next) = self.0.try_lock() else { return false };
        let mut bytes = 0;
        for tried in 0..omissions.len().min(TRIED_AGAIN) {
            let Some(omission) = omissions.get(*next % omissions.len()) else { break };
            bytes += omission.bytes_tried();
            if bytes > READ_BYTES && tried > 0 {
                break;
            }
            *next = (*next + 1) % omissions.len();
            if can_read(omission) {
                return true;
            }
        }
        false
    }
}

impl Records {
    /// Returns whether any part that an index of a todo lacks can be read by now.
    pub(crate) fn can_read_any(&self, todo: &Todo, omissions: &[Omission]) -> bool {
        omissions
            .iter()
            .take(TRIED_AGAIN)
            .any(|omission| self.can_read(todo, omission.block, omission))
    }

    /// Returns whether a part that an index lacks can be read by now. `n` is the number of its block in the todo.
    pub(crate) fn can_read(&self, todo: &Todo, n: u32, omission: &Omission) -> bool {
        match omission.part {
            OmissionPart::Block => matches!(self.block(todo, n), Ok(Some(_))),
            OmissionPart::Messages(first, _) => self.has_message(todo, first),
            OmissionPart::Vectors(seq) => matches!(self.vectors(todo, seq), Ok(Some(_))),
            OmissionPart::Payload { text, from } => {
                omission.why != WhyUnsearched::NoRoom && self.read_text(todo, text, from).is_ok()
            }
        }
    }
}
