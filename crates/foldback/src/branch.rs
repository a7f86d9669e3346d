//! A session on a branch of its conversation.

use crate::live::Live;
use crate::recovery::{read_open, read_pinned};
use crate::{Close, Error, Session};
use foldback_core::{Block, SeqNo};
use foldback_disclosure::{Arrangement, Billed, CacheAware, LiveView, Names, Shown, recall_note};
use std::ops::Range;

/// So many branches that are not shown are at hand as they were left: some conversations go on in two at a time.
const MOST_ASIDE: usize = 4;

impl Session {
    /// Shows another branch of the conversation from now on: the messages with these numbers, ascending, and what
    /// is recorded after this. What is open is closed, and `pins` stay in every prompt. What has left the view stays
    /// away where both branches have it; otherwise nothing has left yet.
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

    /// Whether what is shown is this branch.
    #[must_use]
    pub fn follows(&self, branch: &[Range<u64>]) -> bool {
        between(&joined(branch), self.len()) == self.live.view.passed_over()
    }

    /// What the next prompt shows, message by message; `None` under the fold policy `strict`.
    #[must_use]
    pub fn arrangement(&self) -> Option<Arrangement> {
        self.live.view.arrangement()
    }

    /// Goes on under the fold policy `cache-aware` with these settings. They are kept with what is recorded next.
    pub fn set_cache_aware(&mut self, settings: CacheAware) {
        self.live.view.set_cache_aware(settings);
    }

    /// The model calls `load` by this name, and reaches other todos too, so that names are given in full.
    pub fn set_load_name(&mut self, load: &str) {
        let names = Names { load: Some(load.to_owned()), todo: Some(self.todo().clone()) };
        self.live.view.set_names(names);
    }

    /// The provider has nothing in its cache any more of what was sent.
    pub fn cool(&mut self) {
        self.live.view.cool();
    }

    /// The provider has billed so much for the prompt whose answer was recorded last: what is decided next goes by that.
    /// It is kept with what is recorded next.
    pub fn bill(&mut self, billed: &Billed) {
        self.live.view.bill(billed);
    }

    /// Whether the stable part of the prompt has to stay as it is, until this is said again.
    pub fn hold(&mut self, is_held: bool) {
        self.live.view.hold(is_held);
    }

    /// A view that has taken the messages of a branch, and the blocks that hold any of them.
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
                view.append(Shown::new(open.seq, open.message, open.offloads, note));
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

/// Ranges that touch each other as one.
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

/// What of `0..end` is in none of the ranges.
pub(crate) fn between(ranges: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let starts = ranges.iter().map(|range| range.start).chain([end]);
    let ends = [0].into_iter().chain(ranges.iter().map(|range| range.end));
    ends.zip(starts).map(|(from, to)| from..to).filter(|range| !range.is_empty()).collect()
}

/// What of the ranges is below `end`.
fn before(ranges: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.min(end)..range.end.min(end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}
