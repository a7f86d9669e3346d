//! Keeping everything: what most agents do until the window is full.

use super::meter::{Counts, FullMeter};
use super::proof::prove;
use super::run::Stop;
use super::{Policy, Report};
use crate::error::CliError;
use crate::sources::Sourced;
use foldback::{Memory, Options};
use foldback_core::{Prompt, Role, Violation, check_request};
use std::sync::Arc;

/// Measures a conversation whose every call is sent everything so far, and proves that a store of
/// its own gives it back. With a call to stop at, its prompt comes instead.
///
/// # Errors
/// When that store fails.
pub(crate) fn replay_full(
    sourced: &Sourced,
    stop: Stop,
) -> Result<(Report, Option<Prompt>), CliError> {
    let messages = &sourced.conversation.messages;
    let todo = sourced.todo();
    let mut report = Report::new(sourced, &todo, Policy::Full);
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
                return Ok((report, Some(prompt(at, full.tokens))));
            }
        }
        full.append(counts.message(message));
        if !talks && *message.role() == Role::User {
            full.call();
            report.window_max_messages = at + 1;
            if stop == Stop::Call(full.usage.calls) {
                return Ok((report, Some(prompt(at + 1, full.tokens))));
            }
        }
    }
    report.used(full.usage, full.usage);
    report.tokens = full.tokens;
    if stop == Stop::End {
        let memory = Memory::in_memory(Options::default())?;
        memory.continue_import(&todo, &sourced.conversation)?;
        report.proved(prove(&memory, &todo, messages)?);
    }
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
    Ok((report, None))
}
