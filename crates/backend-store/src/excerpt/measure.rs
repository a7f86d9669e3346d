//! The cost of bytes in tokens.

use crate::Meta;
use crate::body::{Piece, ceil_char, floor_char};
use foldback_core::{Estimate, PayloadKind, TokenCounter};
use std::ops::Range;

/// The cost of bytes in tokens.
pub(super) struct Measure {
    pub(super) text: bool,
}

impl Measure {
    /// One token never stands for more bytes than this, whatever an estimate says.
    const BYTES: usize = 16;

    pub(super) fn of(meta: &Meta) -> Self {
        Self { text: meta.kind != PayloadKind::Binary }
    }

    /// Returns the tokens of these bytes, if they are at most `left`.
    pub(super) fn cost(&self, bytes: &[u8], left: usize) -> Option<usize> {
        if bytes.len() > left.saturating_mul(Self::BYTES) {
            return None;
        }
        let cost = if self.text {
            Estimate.count(&String::from_utf8_lossy(bytes))
        } else {
            // Base64 and hexadecimal digits are about two to a token.
            bytes.len().div_ceil(2)
        };
        (cost <= left).then_some(cost)
    }

    /// Returns the length of the longest beginning that costs at most `left`; at least one character.
    pub(super) fn longest(&self, bytes: &[u8], left: usize) -> usize {
        let floor = |at| if self.text { floor_char(bytes, at) } else { at };
        let (mut low, mut high) = (0, bytes.len().min(left.saturating_mul(Self::BYTES)));
        while low < high {
            let middle = (low + high).div_ceil(2);
            let fits = self.cost(bytes.get(..floor(middle)).unwrap_or_default(), left).is_some();
            if fits {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        match floor(low) {
            0 if self.text => ceil_char(bytes, 1),
            0 => bytes.len().min(1),
            end => end,
        }
    }
}

pub(super) fn window_cost(
    measure: &Measure,
    piece: &Piece<'_>,
    window: &Range<usize>,
    left: usize,
) -> Option<usize> {
    measure.cost(piece.bytes.get(window.clone()).unwrap_or_default(), left)
}
