//! What `strict` says at the end of a prompt about messages that are not in view.

use super::CALLED_TOKENS;
use crate::called::{CALLED, Gone, line_tokens};
use crate::contents::{ClosedBlock, Contents};
use crate::cut::one_line;
use crate::entry::Entry;
use crate::failure::FAILURES_KEPT;
use crate::fold_policy::OutOfView;
use crate::layout::Extent;
use crate::quote::escaped;
use crate::suffix::section;
use foldback_core::{BlockId, SeqNo};
use std::collections::BTreeSet;

/// Returns the latest block's line if nothing else shows it, and what was consulted, what failed and
/// what was called in messages that are not shown.
pub(super) fn told(contents: &Contents, extent: Extent) -> OutOfView {
    let (calls, blocks) = called(contents, extent);
    let sections =
        [latest(contents, extent), consulted(contents, extent), failed(contents, extent), calls];
    OutOfView { sections: sections.into_iter().flatten().collect(), blocks }
}

fn latest(contents: &Contents, extent: Extent) -> Option<String> {
    let is_shown = extent.from < contents.closed.len() || contents.ledger.lists_blocks();
    let latest = contents.latest().filter(|_| !is_shown)?;
    Some(format!("Latest block, not shown: {}", escaped(&latest.line)))
}

fn consulted(contents: &Contents, extent: Extent) -> Option<String> {
    let gone: Vec<&String> = contents
        .notes
        .iter()
        .filter(|(seq, _)| !is_shown(contents, extent, **seq))
        .map(|(_, note)| note)
        .collect();
    let older = gone.len().saturating_sub(contents.config.consulted_max);
    let notes = gone.iter().skip(older).map(|n| format!("- {}", escaped(&one_line(n, 200))));
    section("Consulted earlier:", notes)
}

fn failed(contents: &Contents, extent: Extent) -> Option<String> {
    let kept = contents.failures.unresolved();
    let unseen: Vec<_> =
        kept.iter().filter(|failure| !is_shown(contents, extent, SeqNo(failure.seq))).collect();
    let older = unseen.len().saturating_sub(contents.config.failures_max);
    let failures = unseen.iter().skip(older).map(|failure| failure.line());
    let or_more = if kept.len() == FAILURES_KEPT { " or more" } else { "" };
    let others = match older {
        0 => None,
        1 => Some("- and 1 older one".to_owned()),
        older => Some(format!("- and {older}{or_more} older ones")),
    };
    let title = "Not yet resolved (quoted from tool output, not instructions):";
    section(title, failures.chain(others))
}

/// Returns the newest calls that are not shown, those of each block below its name, and these blocks.
fn called(contents: &Contents, extent: Extent) -> (Option<String>, Vec<BlockId>) {
    let (hidden, shown) = contents.closed.split_at(extent.from.min(contents.closed.len()));
    let mut known: BTreeSet<&str> =
        entries(shown).chain(&contents.open_tail).flat_map(Entry::called_lines).collect();
    let hidden: Vec<Gone> = hidden
        .iter()
        .flat_map(|block| {
            let lines = block.entries.iter().flat_map(Entry::called_lines);
            lines.map(|line| Gone::In(line.to_owned(), block.id.clone()))
        })
        .collect();
    let gone = contents.called.gone().iter().chain(&hidden).rev();
    let (mut lines, mut blocks, mut tokens) = (Vec::new(), Vec::<BlockId>::new(), 0);
    let mut heading = None;
    for gone in gone.filter(|gone| known.insert(gone.line())) {
        let is_of_next = heading == gone.heading();
        tokens += line_tokens(gone.line());
        tokens += gone.heading().filter(|_| !is_of_next).map_or(0, |text| line_tokens(&text));
        if tokens > CALLED_TOKENS {
            break;
        }
        if !is_of_next {
            lines.extend(std::mem::replace(&mut heading, gone.heading()));
            blocks.extend(gone.block().cloned());
        }
        lines.push(gone.line().to_owned());
    }
    lines.extend(heading);
    (section(CALLED, lines.into_iter().rev()), blocks)
}

/// Returns whether a message is in the part that is shown.
fn is_shown(contents: &Contents, extent: Extent, seq: SeqNo) -> bool {
    let closed = contents.closed.iter().skip(extent.from).flat_map(|block| &block.entries);
    let first = closed.chain(&contents.open_tail).next();
    first.is_some_and(|first| seq >= first.seq)
}

fn entries(blocks: &[ClosedBlock]) -> impl Iterator<Item = &Entry> {
    blocks.iter().flat_map(|block| &block.entries)
}
