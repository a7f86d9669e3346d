//! The choice of the open messages that are sealed next.

use super::Chunker;
use crate::closed::Evidence;
use crate::cohesion::cohesion;
use crate::phase::Phase;
use crate::sketch::similarity;
use crate::state::Joint;
use foldback_core::CloseReason;

/// A block to be sealed: the first messages of the tail.
pub(super) struct Plan {
    pub(super) len: u32,
    pub(super) reason: CloseReason,
    pub(super) evidence: Evidence,
}

impl Plan {
    pub(super) fn at(len: u32, joint: Joint, similarity: Option<f32>) -> Self {
        if matches!(joint, Joint::Answered | Joint::NextCall) {
            let evidence = Evidence::Complete(similarity);
            return Self { len, reason: CloseReason::Loop, evidence };
        }
        Self { len, reason: CloseReason::Size, evidence: Evidence::Full }
    }
}

impl Chunker {
    /// Returns the rough block to be sealed now, if there is one.
    pub(super) fn plan(&self) -> Option<Plan> {
        let tail = &self.state.tail;
        let first = tail.first()?.len;
        if tail.len() < 2 {
            return None;
        }
        if first > self.config.max() {
            return Some(Plan {
                len: first,
                reason: CloseReason::Size,
                evidence: Evidence::Oversize,
            });
        }
        // The beginning of each unit but the first, counted from the beginning of the tail.
        let mut total = 0_u32;
        let mut starts = Vec::with_capacity(tail.len());
        for unit in tail {
            starts.push((total, unit.joint));
            total = total.saturating_add(unit.len);
        }
        let (finest, coarsest) = self.grain();
        let max = self.config.max();
        let closes = |unit: usize| starts.get(unit).filter(|(_, joint)| joint.completes() == 2);
        let is_full = total > max;

        // The pending block: the first complete rough block that is large enough, and those after it that are complete
        // as well, are about the same thing and fit. In a full tail it leaves at least a few messages loose.
        let mut evidence = None;
        let mut pending = (1..starts.len()).find(|&u| closes(u).is_some_and(|s| s.0 >= finest));
        while let Some(end) = pending {
            let next = (end + 1..starts.len()).find(|&unit| closes(unit).is_some());
            let Some((next, &(len, _))) = next.and_then(|next| Some((next, starts.get(next)?)))
            else {
                break;
            };
            if len > coarsest || (is_full && total - len < LOOSE) || self.is_long_talk(len) {
                break;
            }
            let (similarity, alike) = self.alike(end, next);
            evidence = similarity;
            if !alike {
                break;
            }
            pending = Some(next);
        }
        if let Some((len, joint)) = pending.and_then(|unit| starts.get(unit)).copied()
            && len <= max
            && (is_full || total - len > self.config.look_ahead())
        {
            return Some(Plan::at(len, joint, evidence));
        }
        if !is_full {
            return None;
        }
        // Something must be sealed: a complete rough block if there is one within bounds, preferably one that leaves a
        // few messages loose; otherwise the messages before a unit that is too large to share a block.
        let (min, behind) = (self.config.min(), starts.iter().filter(|start| start.0 <= max));
        let (len, joint) = *behind.skip(1).max_by_key(|(len, joint)| {
            // A block that is too small in any case takes as much as can be sealed.
            let fits = *len >= min;
            (fits, if fits { joint.completes() } else { 0 }, fits && total - len >= LOOSE, *len)
        })?;
        Some(Plan::at(len, joint, None))
    }

    /// Returns whether the first `len` messages of the tail are talk with much content for one block.
    fn is_long_talk(&self, len: u32) -> bool {
        if self.state.task.is_tool_heavy() {
            return false;
        }
        let said = self.state.window.said();
        let tail = said.iter().skip(said.len().saturating_sub(self.open_len() as usize));
        tail.take(len as usize).map(|said| said.cues.content_words()).sum::<u32>() > TALK_WORDS
    }

    /// Returns how large blocks are meant to be in the current phase of the task.
    fn grain(&self) -> (u32, u32) {
        let (min, max) = (self.config.min(), self.config.max());
        let (finest, coarsest) = match self.state.task.phase() {
            Phase::Opening | Phase::Closing => (3, 5),
            Phase::Middle if self.state.task.is_tool_heavy() => (5, 8),
            Phase::Middle => (3, 6),
        };
        (u32::clamp(finest, min, max), u32::clamp(coarsest, min, max))
    }

    /// Returns whether the units before `end` and those from there to `next` are about the same thing, and how similar
    /// they are: by their vectors, or by their words when there are none.
    fn alike(&self, end: usize, next: usize) -> (Option<f32>, bool) {
        let tail = &self.state.tail;
        let sketches = |from: usize, to: usize| {
            let units = tail.iter().take(to).skip(from);
            units.filter_map(|unit| unit.sketch.as_ref().map(|(sketch, _)| sketch))
        };
        if let Some(similarity) = similarity(sketches(0, end), sketches(end, next)) {
            return (Some(similarity), similarity >= self.config.merge_cosine());
        }
        let count = |from: usize| {
            tail.iter().skip(from).fold(0_usize, |sum, unit| sum.saturating_add(unit.len as usize))
        };
        let kept = self.state.window.said().len();
        let index = |from: usize| kept.saturating_sub(count(from));
        let similarity = cohesion(&self.state.window, index(0), index(end), index(next));
        (Some(similarity), similarity >= LEXICALLY_ALIKE)
    }
}

/// The cosine of summed word vectors above which two rough blocks are about the same thing.
const LEXICALLY_ALIKE: f32 = 0.12;

/// The most words of content in a block of talk that was merged from several. Talk with more content is found as well
/// in parts, and more of what was asked for fits into a budget. On LoCoMo, the share of the evidence among 1,000 and
/// 2,000 tokens of blocks, and among the first five of them; and Pk of all blocks on joined dialogues:
///
/// ```text
///  30  .824 .884 .807   .340
///  40  .827 .886 .808   .323
///  50  .830 .887 .814   .311
///  60  .827 .882 .815   .310
///  80  .817 .870 .811   .309
/// any  .806 .869 .809   .309
/// ```
///
/// On either half of its conversations the best lies between 40 and 60. Words are counted alike in all
/// scripts (`Cues::content_words`), so that Chinese talk gets blocks as large as English talk.
const TALK_WORDS: u32 = 50;

/// How many messages stay loose when a full tail makes room, if the units allow it.
const LOOSE: u32 = 3;
