//! A session on a branch of its conversation.

use crate::live::Live;
use crate::recovery::{read_open, read_pinned};
use crate::{Close, Error, Session};
use foldback_core::{Block, SeqNo, Timestamp};
use foldback_disclosure::{Arrangement, Billed, CacheAware, LiveView, Names, Shown, recall_note};
use std::ops::Range;

/// This many branches that are not shown are kept as they were left: some conversations continue in two at a time.
const MOST_ASIDE: usize = 4;

impl Session {
    /// Shows another branch of the conversation from now on: the messages with these numbers, ascending, and what is
    /// recorded after this. Open messages are closed, and `pins` stay in every prompt. What has left the view stays
    /// out of it if both branches have it; otherwise nothing has left yet.
    ///
    /// # Errors
    /// When the store fails.
    pub fn follow(&mut self, branch: &[Range<u64>], pins: &[SeqNo]) -> Result<(), Error> {
        self.close(Close::Switch)?;
        let left = (between(self.live.view.passed_over(), self.len()), self.live.view.clone());
        let ranges = joined(branch);
        let known = self.aside.iter().position(|(of, _)| *of == ranges && pins.is_empty());
        let known = known.map(|n| self.aside.remove(n).1);
        let head = self.live.head;
        self.write(|session, live, _| {
            let (memory, todo) = (&session.memory, &session.todo);
            let others = between(&ranges, live.chunker.next().0);
            if let Some(known) = known.as_ref().filter(|_| live.head == head) {
                live.view = known.clone();
                live.view.pass_over(others);
                return Ok(());
            }
            let first = live.view.first_shown().map_or(u64::MAX, |first| first.0);
            if before(live.view.passed_over(), first) == before(&others, first) {
                live.view.pass_over(others);
                *live = Live::of_bytes(memory, todo, live.head, &live.to_bytes()?)?;
            } else {
                live.view = session.view_of(live, branch, others, pins)?;
            }
            Ok(())
        })?;
        self.aside.push(left);
        let most = self.aside.len().saturating_sub(MOST_ASIDE);
        self.aside.drain(..most);
        Ok(())
    }

    /// Returns whether this branch is the one shown.
    #[must_use]
    pub fn follows(&self, branch: &[Range<u64>]) -> bool {
        between(&joined(branch), self.len()) == self.live.view.passed_over()
    }

    /// Returns what the next prompt shows, message by message; `None` under the fold policy `strict`.
    #[must_use]
    pub fn arrangement(&self) -> Option<Arrangement> {
        self.live.view.arrangement()
    }

    /// Continues under the fold policy `cache-aware` with these settings. They are stored with what is recorded next.
    pub fn set_cache_aware(&mut self, settings: CacheAware) {
        self.live.view.set_cache_aware(settings);
    }

    /// Sets the name by which the model calls `load`. The model reaches other todos too, so names are given in full.
    pub fn set_load_name(&mut self, load: &str) {
        let names = Names { load: Some(load.to_owned()), todo: Some(self.todo().clone()) };
        self.live.view.set_names(names);
    }

    /// Notes that the provider's cache no longer holds anything of what was sent.
    pub fn cool(&mut self) {
        self.live.view.cool();
    }

    /// Sets what the provider billed for the prompt whose answer was recorded last. The next decision is based on it,
    /// and it is stored with what is recorded next.
    pub fn bill(&mut self, billed: &Billed) {
        self.live.view.bill(billed);
    }

    /// Sets whether the stable part of the prompt has to stay as it is, until the next call.
    pub fn hold(&mut self, is_held: bool) {
        self.live.view.hold(is_held);
    }

    /// Builds a view of the messages of a branch and of the blocks that hold any of them.
    pub(crate) fn view_of(
        &self,
        live: &Live,
        branch: &[Range<u64>],
        others: Vec<Range<u64>>,
        pins: &[SeqNo],
    ) -> Result<LiveView, Error> {
        let (memory, todo) = (&self.memory, &self.todo);
        let mut view = LiveView::new(live.view.config().clone(), memory.marks(todo));
        view.pass_over(others);
        view.hold(true);
        let (mut n, mut holds_any) = (0, false);
        let mut block: Option<Block> = None;
        for range in joined(branch) {
            for open in read_open(memory, todo, SeqNo(range.start), SeqNo(range.end))? {
                while block.as_ref().is_none_or(|block| block.range.last() < open.seq) {
                    if let Some(block) = block.take().filter(|_| holds_any) {
                        view.fold(&block);
                    }
                    (n, holds_any) = (n + 1, false);
                    block = memory.blocks.block(todo, n)?;
                    if n >= live.blocks {
                        break;
                    }
                }
                holds_any = true;
                let note = open.recall.then(|| recall_note(&open.message.text()));
                let shown = Shown::new(open.seq, open.message, open.offloads, note);
                view.append(shown.with_recorded_at(Timestamp(open.recorded_at)));
            }
        }
        if let Some(block) = block.filter(|_| holds_any) {
            view.fold(&block);
        }
        for seq in pins {
            let (whose, message) = read_pinned(memory, todo, *seq)?;
            view.pin(whose, message);
        }
        view.hold(false);
        Ok(view)
    }
}

/// Merges ranges that touch each other.
pub(crate) fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range.clone()),
        }
    }
    joined
}

/// Returns the parts of `0..end` that are in none of the ranges.
pub(crate) fn between(ranges: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let starts = ranges.iter().map(|range| range.start).chain([end]);
    let ends = [0].into_iter().chain(ranges.iter().map(|range| range.end));
    ends.zip(starts).map(|(from, to)| from..to).filter(|range| !range.is_empty()).collect()
}

/// Returns the parts of the ranges that are below `end`.
fn before(ranges: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.min(end)..range.end.min(end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}
