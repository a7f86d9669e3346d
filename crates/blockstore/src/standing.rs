//! The evidence for a block that does not depend on its content: its time.

use crate::analysis::cut;
use crate::block_doc::BlockMeta;
use crate::dates::{named_days, nearness};
use crate::parts::Parts;
use crate::rank::Beside;
use crate::{Ranking, SearchRequest};
use foldback_core::BlockType;
use std::ops::RangeInclusive;

/// The share by which the newest block in which tools were called comes nearer to the best.
const RECENT: f64 = 0.7;

/// A block followed by this many others counts half as recent.
const HALF_AGE: f64 = 4.0;

/// Blocks followed by more than this are not recent at all.
const RECENT_BLOCKS: u32 = 32;

/// How dated and how recent the blocks of a todo are. Questions about talk may concern any time; work with tools
/// continues with the ids and paths that it saw last.
pub(crate) struct Standing {
    /// How near each block's time is to the days that the question names, by number from 1. Empty if it names none.
    dated: Vec<f32>,
    /// The share by which the last blocks come nearer to the best, the last one first.
    recent: Vec<f64>,
    /// How many blocks there are.
    blocks: u32,
}

impl Standing {
    pub(crate) fn new(request: &SearchRequest<'_>, parts: &Parts<'_>, blocks: u32) -> Self {
        if request.ranking != Ranking::Fused {
            return Self { dated: Vec::new(), recent: Vec::new(), blocks };
        }
        let days = named_days(cut(request.query, SearchRequest::MAX_QUERY_BYTES));
        let mut dated = Vec::new();
        if !days.is_empty() {
            parts.metas(|_, meta| dated.push(nearness(&days, meta.time.0) as f32));
        }
        let last = (1..=blocks).rev().take(RECENT_BLOCKS as usize);
        let recent = last.zip(0..).map(|(n, age)| recent(parts.meta(n), age)).collect();
        Self { dated, recent, blocks }
    }

    /// Returns whether any block comes nearer to the best.
    pub(crate) fn is_any_recent(&self) -> bool {
        self.recent.iter().any(|recent| *recent > 0.0)
    }

    /// Returns the blocks to which it may apply.
    pub(crate) fn concerned(&self) -> RangeInclusive<u32> {
        let first = if !self.dated.is_empty() {
            1
        } else if self.is_any_recent() {
            self.blocks.saturating_sub(RECENT_BLOCKS).max(1)
        } else {
            self.blocks.saturating_add(1)
        };
        first..=self.blocks
    }

    /// Returns the evidence for block `n`, whose better neighbour has the base `neighbour`.
    pub(crate) fn beside(&self, n: u32, neighbour: f64) -> Beside {
        let place = n.checked_sub(1).map(|place| place as usize);
        let dated = place.and_then(|place| self.dated.get(place)).copied().unwrap_or(0.0);
        let age = self.blocks.checked_sub(n).map(|age| age as usize);
        let recent = age.and_then(|age| self.recent.get(age)).copied().unwrap_or(0.0);
        Beside { neighbour, dated: f64::from(dated), recent }
    }
}

/// Returns the share by which a block followed by `age` others comes nearer to the best.
fn recent(meta: Option<BlockMeta>, age: i32) -> f64 {
    match meta {
        Some(meta) if meta.block_type == BlockType::ToolCall => {
            RECENT * 0.5f64.powf(f64::from(age) / HALF_AGE)
        }
        _ => 0.0,
    }
}
