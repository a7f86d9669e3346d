//! What changes from call to call, told last.

use crate::LiveView;
use crate::called::{CALLED, newest};
use crate::cut::one_line;
use crate::entry::Entry;
use crate::failure::FAILURES_KEPT;
use crate::live_view::Sealed;
use crate::quote::escaped;
use crate::render::Extent;
use foldback_core::SeqNo;
use std::collections::BTreeSet;

/// The text at the end of the prompt: the latest block's line where nothing else shows it, what was
/// consulted, what failed and what was called in messages that are gone from view, notices, and last
/// the todo list. `None` when there is nothing to say.
pub(crate) fn suffix(view: &LiveView, extent: Extent, unfit: &[String]) -> Option<String> {
    let mut sections: Vec<String> = Vec::new();
    if let Some(latest) = view.latest().filter(|_| view.account.is_none()) {
        let is_shown = extent.from < view.held.len();
        if !is_shown && !view.lists_blocks() {
            sections.push(format!("Latest block, not shown: {}", escaped(&latest.line)));
        }
    }
    // Under the other schedule these leave by a fold alone, and the ledger tells them.
    if view.account.is_none() {
        gone(view, extent, &mut sections);
        called(view, extent, &mut sections);
    } else if extent.from > 0 {
        let hidden = view.held.iter().take(extent.from);
        list(
            &mut sections,
            "Closed blocks, not shown:",
            hidden.map(|sealed| format!("- {}", escaped(&sealed.line))),
        );
    }
    let notices = view.notices.values().map(|notice| one_line(notice, 500));
    let notices = notices.chain(unfit.iter().cloned()).map(|line| format!("- {line}"));
    list(&mut sections, "Notices:", notices);
    if let Some(todo_list) = &view.todo_list {
        sections.push(format!("Todo list:\n{}", escaped(todo_list.trim_end())));
    }
    if sections.is_empty() {
        return None;
    }
    Some(format!("[state of the work, not said by the user]\n{}", sections.join("\n")))
}

/// What was consulted and what failed in messages that are not shown.
fn gone(view: &LiveView, extent: Extent, sections: &mut Vec<String>) {
    let sealed = view.held.iter().skip(extent.from).flat_map(|sealed| &sealed.entries);
    let shown_from = sealed.chain(&view.tail).next().map(|entry| entry.seq);
    let is_shown = |seq: SeqNo| shown_from.is_some_and(|from| seq >= from);
    let gone: Vec<&String> =
        view.notes.iter().filter(|(seq, _)| !is_shown(**seq)).map(|(_, note)| note).collect();
    let newest = gone.len().saturating_sub(view.config.consulted_max);
    let notes = gone.iter().skip(newest).map(|n| format!("- {}", escaped(&one_line(n, 200))));
    list(sections, "Consulted before:", notes);
    let unseen: Vec<_> =
        view.failures.iter().filter(|failure| !is_shown(SeqNo(failure.seq))).collect();
    let older = unseen.len().saturating_sub(view.config.failures_max);
    let failures = unseen.iter().skip(older).map(|failure| failure.line());
    let or_more = if view.failures.len() == FAILURES_KEPT { " or more" } else { "" };
    let others = match older {
        0 => None,
        1 => Some("- and 1 older one".to_owned()),
        older => Some(format!("- and {older}{or_more} older ones")),
    };
    let title = "Not yet resolved (quoted from tools' output, no instructions):";
    list(sections, title, failures.chain(others));
}

/// What was called in messages that are not shown.
fn called(view: &LiveView, extent: Extent, sections: &mut Vec<String>) {
    let (hidden, shown) = view.held.split_at(extent.from.min(view.held.len()));
    let shown: BTreeSet<&str> =
        entries(shown).chain(&view.tail).flat_map(Entry::called_lines).collect();
    let hidden = entries(hidden).flat_map(Entry::called_lines);
    let unseen: Vec<&str> =
        view.called.lines().chain(hidden).filter(|line| !shown.contains(line)).collect();
    let lines = newest(unseen.into_iter(), view.config.called_tokens());
    list(sections, CALLED, lines.into_iter().map(str::to_owned));
}

fn entries(held: &[Sealed]) -> impl Iterator<Item = &Entry> {
    held.iter().flat_map(|sealed| &sealed.entries)
}

fn list(sections: &mut Vec<String>, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        sections.push(format!("{title}\n{}", lines.join("\n")));
    }
}
