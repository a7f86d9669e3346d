//! Keeping everything: what most agents do until the window is full.

use super::meter::{Counts, FullMeter};
use super::run::Stop;
use super::{Policy, Report};
use crate::sources::Sourced;
use foldback_core::{Prompt, Role, Violation, check_request};
use std::sync::Arc;

/// Measures a conversation whose every call is sent everything so far. With a call to stop at, its
/// prompt comes too.
pub(crate) fn replay_full(sourced: &Sourced, stop: Stop) -> (Report, Option<Prompt>) {
    let messages = &sourced.conversation.messages;
    let (id, todo) = (sourced.id(), sourced.todo().to_string());
    let mut report = Report::new(id, todo, Policy::Full, messages.len() as u64);
    let talks = messages.iter().any(|message| *message.role() == Role::Assistant);
    let mut counts = Counts::default();
    let mut full = FullMeter::default();
    let prompt = |upto: usize, tokens: u64| Prompt {
        messages: messages.iter().take(upto).cloned().map(Arc::new).collect(),
        tokens: usize::try_from(tokens).unwrap_or(usize::MAX),
        loose: upto,
        window: upto,
        ..Prompt::default()
    };
    for (at, message) in messages.iter().enumerate() {
        if talks && *message.role() == Role::Assistant && at > 0 {
            full.call();
            report.window_max_messages = at;
            if stop == Stop::Call(full.usage.calls) {
                return (report, Some(prompt(at, full.tokens)));
            }
        }
        full.append(counts.message(message));
        if !talks && *message.role() == Role::User {
            full.call();
            report.window_max_messages = at + 1;
            if stop == Stop::Call(full.usage.calls) {
                return (report, Some(prompt(at + 1, full.tokens)));
            }
        }
    }
    report.used(full.usage, full.usage);
    report.tokens = full.tokens;
    // Nothing is repaired here, so what the source parts stays parted. What else is odd in it (late
    // instructions, say) is the source's own matter.
    for violation in check_request(messages) {
        if matches!(
            violation,
            Violation::Orphan(_) | Violation::Unanswered(_) | Violation::DuplicateCall(_)
        ) {
            report.orphans += 1;
            report.problems.push(violation.to_string());
        }
    }
    (report, None)
}
