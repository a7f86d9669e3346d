//! `strict`: with each block that closes, the previous one leaves.

mod out_of_view;

use super::{Account, OutOfView, Policy};
use crate::contents::{ClosedBlock, Contents, counted, visible};
use crate::declared_tools::DeclaredTools;
use crate::entry::{Form, Shown};
use crate::failures::OpenCall;
use crate::layout::{Extent, Layout};
use crate::ledger::{RULE, TOO_MANY};
use crate::opening::{Pinned, pinned_parts, user_turn};
use crate::quote::escaped;
use foldback_core::{Budget, Part, Prompt, SeqNo, TokenCounter};

/// The greatest number of estimated tokens for calls that are not in view: they are listed at the
/// end of every prompt, at the plain price.
const CALLED_TOKENS: u64 = 120;

/// The policy `strict` of one view. At most one closed block is in view, and pinned messages move to
/// the beginning at once.
#[derive(Clone)]
pub(crate) struct StrictPolicy {
    /// Pinned messages and ledger, as one user turn.
    opening: Form,
    tools: DeclaredTools,
}

impl StrictPolicy {
    pub(super) fn new(contents: &Contents) -> Self {
        Self { opening: opening(contents), tools: DeclaredTools::all() }
    }

    /// Continues with contents that this policy left.
    pub(super) fn resume(contents: &mut Contents) -> Self {
        let pinned: Vec<SeqNo> = contents.pins.keys().copied().collect();
        pinned.into_iter().for_each(|seq| contents.show_at_beginning(seq));
        contents.settle();
        Self::new(contents)
    }

    /// Continues with contents that `cache-aware` left: all closed blocks except the latest leave.
    pub(super) fn after_cache_aware(contents: &mut Contents) -> Self {
        let latest = contents.closed.pop();
        for block in std::mem::take(&mut contents.closed) {
            contents.called.take(&block.id, &block.entries, CALLED_TOKENS);
            contents.ledger.add(block.line);
        }
        if let Some(latest) = latest {
            contents.ledger.add(latest.line.clone());
            contents.closed.push(latest);
        }
        Self::resume(contents)
    }
}

impl Policy for StrictPolicy {
    fn pin_task(&mut self, contents: &mut Contents, task: Pinned) {
        self.pin(contents, task);
    }

    fn pin(&mut self, contents: &mut Contents, pinned: Pinned) {
        contents.moves += u64::from(contents.has_begun());
        let seq = pinned.whose.seq();
        contents.show_at_beginning(seq);
        contents.pins.insert(seq, pinned);
        self.opening = opening(contents);
    }

    fn place(&mut self, contents: &mut Contents, shown: &Shown) -> Option<OpenCall> {
        let showed = shows_latest(contents);
        let answered = contents.place(shown);
        if contents.pins.contains_key(&shown.seq) {
            contents.show_at_beginning(shown.seq);
        }
        // A block that no longer fits beside the open tail leaves, and what follows moves up.
        contents.moves += u64::from(showed && !shows_latest(contents));
        answered
    }

    fn fold(&mut self, contents: &mut Contents, block: ClosedBlock) {
        let line = block.line.clone();
        let left = std::mem::replace(&mut contents.closed, vec![block]);
        for block in &left {
            contents.called.take(&block.id, &block.entries, CALLED_TOKENS);
        }
        contents.moves += 1;
        contents.ledger.add(line);
        contents.settle();
        forget_notes(contents);
        self.opening = opening(contents);
    }

    fn is_about_to_move(&self, _contents: &Contents) -> bool {
        false
    }

    fn prompt(&self, contents: &Contents, budget: &Budget, counter: &dyn TokenCounter) -> Prompt {
        let from = if shows_latest(contents) { 0 } else { contents.closed.len() };
        let extent =
            Extent { from, question: None, light: false, once_from: None, without_hints: false };
        Layout { contents, policy: self, counter }.within(extent, budget)
    }

    fn opening(&self) -> Vec<&Form> {
        vec![&self.opening]
    }

    fn tools(&self) -> &DeclaredTools {
        &self.tools
    }

    fn declares_tools(&self, _extent: Extent) -> bool {
        true
    }

    fn out_of_view(&self, contents: &Contents, extent: Extent) -> OutOfView {
        out_of_view::told(contents, extent)
    }

    fn account(&self, _contents: &Contents) -> Option<Account> {
        None
    }
}

/// Returns whether the latest block is shown whole if no budget forbids it: it and the open tail
/// together fit the window. One unit that is larger than the window on its own does not count.
fn shows_latest(contents: &Contents) -> bool {
    // The whole open tail counts, so that a block that had to leave does not come back before the
    // next fold.
    contents.latest().is_some_and(|latest| {
        let max = contents.config.window_max;
        counted(&latest.entries, max) + visible(&contents.open_tail) <= max
    })
}

fn opening(contents: &Contents) -> Form {
    let marks = contents.marks;
    let pinned = contents.pins.values().flat_map(|pinned| pinned_parts(marks, pinned));
    let mut parts: Vec<Part> = pinned.collect();
    let mut ledger = String::from(RULE);
    if !contents.ledger.lists_blocks() {
        ledger.push('\n');
        ledger.push_str(TOO_MANY);
    }
    for line in contents.ledger.lines() {
        ledger.push('\n');
        ledger.push_str(&escaped(line));
    }
    parts.push(Part::Text(ledger));
    user_turn(parts)
}

/// Forgets the notes of what left the view, except the newest.
fn forget_notes(contents: &mut Contents) {
    let Some(first) = contents.first_shown() else { return };
    let gone: Vec<SeqNo> = contents.notes.range(..first).map(|(seq, _)| *seq).collect();
    let over = gone.len().saturating_sub(contents.config.consulted_max);
    for seq in gone.into_iter().take(over) {
        contents.notes.remove(&seq);
    }
}
