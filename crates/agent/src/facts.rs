//! The facts on a run's steps for a model, one JSON object per line; and a conversation as text, for tools
//! that see all of it.

use crate::executor::CallReport;
use crate::json_line::compact;
use crate::spans::error_type;
use foldback_core::{Estimate, Message, TokenCounter, excerpt, fair_shares, quoted};
use foldback_planner::{Action, Executed, Progress, StepId, StepResult, StepState};
use foldback_tool::Data;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The approximate tokens of a line besides its texts and the name of its tool.
const FRAME_TOKENS: usize = 24;

/// The approximate tokens of a note that a text was cut, by how much, and where the whole text is.
const MARK_TOKENS: usize = 40;

/// The fewest tokens to which the texts of a shown line are cut.
const LEAST_TOKENS: usize = MARK_TOKENS + 20;

/// The most tokens of arguments or a task, which are known from the plan; a quarter of a large budget may be
/// more.
const GIVEN_TOKENS: usize = 400;

/// Writes one line per step, ascending by number: its arguments, and its result or the reason why it has
/// none; among the anchors that are reached, the one that is being decided says so.
///
/// All lines together take about `budget` tokens. A text that is longer than its share loses its middle,
/// and says so; if there are too many steps for that, steps that succeeded long ago are left out first, and
/// a line after the others counts them by outcome.
pub(crate) fn facts(
    progress: &Progress,
    calls: &BTreeMap<StepId, CallReport>,
    budget: usize,
    deciding: Option<StepId>,
) -> String {
    let lines: Vec<Line<'_>> = progress
        .iter()
        .map(|executed| {
            let call = calls.get(&executed.step.id);
            Line::of(executed, call, deciding, budget)
        })
        .collect();
    let is_shown = shown(&lines, budget);
    let shown = || lines.iter().zip(&is_shown).filter(|(_, shown)| **shown).map(|(line, _)| line);
    let frames: usize = shown().map(Line::frame).sum();
    let sizes: Vec<usize> = shown().flat_map(|line| line.sizes).collect();
    let shares = fair_shares(&sizes, budget.saturating_sub(frames));
    let mut out = String::new();
    for (line, shares) in shown().zip(shares.chunks_exact(2)) {
        line.write(shares, &mut out);
    }
    let left_out = lines.iter().zip(&is_shown).filter(|(_, shown)| !**shown);
    let mut by_status: BTreeMap<&str, Vec<StepId>> = BTreeMap::new();
    for (line, _) in left_out {
        by_status.entry(line.status).or_default().push(line.executed.step.id);
    }
    for (status, steps) in by_status {
        let (count, steps) = (steps.len(), names(&steps));
        let _ = writeln!(
            out,
            "{{\"steps\":\"{steps}\",\"status\":\"{status}\",\"left_out\":{{\"steps\":{count}}}}}"
        );
    }
    out
}

/// Lists the names of steps, ascending, three or more in a row as `step3 to step9`.
pub(crate) fn names(steps: &[StepId]) -> String {
    let follows = |one: &StepId, other: &StepId| one.0.checked_add(1) == Some(other.0);
    let mut out = Vec::new();
    for run in steps.chunk_by(follows) {
        match run {
            [first, _, .., last] => out.push(format!("{first} to {last}")),
            few => out.extend(few.iter().map(ToString::to_string)),
        }
    }
    out.join(", ")
}

/// Returns a conversation as text.
pub(crate) fn conversation(messages: &[Arc<Message>]) -> String {
    let told = messages.iter().filter(|message| !message.content().is_blank());
    let lines = told.map(|message| format!("{}: {}", message.role().as_str(), message.text()));
    lines.collect::<Vec<_>>().join("\n\n")
}

/// A step, as it is shown.
struct Line<'a> {
    executed: &'a Executed,
    status: &'static str,
    /// Its arguments, or the decision that is due.
    given: Option<&'a str>,
    /// Its result as references see it, or the reason why it failed.
    told: Option<Cow<'a, str>>,
    /// The tokens of both texts, as far as they may be shown.
    sizes: [usize; 2],
}

impl<'a> Line<'a> {
    fn of(
        executed: &'a Executed,
        call: Option<&'a CallReport>,
        deciding: Option<StepId>,
        budget: usize,
    ) -> Self {
        let given = match &executed.step.action {
            Action::Anchor { task } => Some(task.as_str()),
            Action::Call { .. } => call.map(|call| call.arguments.as_str()),
        };
        let told = match &executed.result {
            Some(StepResult::Success { data }) if is_call(executed) => {
                let Data { text, structured } = data;
                Some(Cow::Borrowed(structured.as_ref().unwrap_or(text).as_str()))
            }
            Some(StepResult::Error { failure }) => Some(Cow::Borrowed(failure.message.as_str())),
            _ => None,
        };
        let most = GIVEN_TOKENS.max(budget / 4).min(budget);
        let given_size = given.map_or(0, |text| size(text, most).min(most));
        let told_size = told.as_deref().map_or(0, |text| size(text, budget));
        let status = status(executed, deciding);
        Self { executed, status, given, told, sizes: [given_size, told_size] }
    }

    /// Returns the tokens that it takes besides its texts.
    fn frame(&self) -> usize {
        match &self.executed.step.action {
            Action::Call { function, .. } => FRAME_TOKENS + Estimate.count(function),
            Action::Anchor { .. } => FRAME_TOKENS,
        }
    }

    /// Returns the fewest tokens that it takes.
    fn least(&self) -> usize {
        self.frame() + self.sizes.iter().map(|size| (*size).min(LEAST_TOKENS)).sum::<usize>()
    }

    /// Returns its rank if not everything can be shown: the basis of a decision comes first.
    fn rank(&self) -> u8 {
        match (&self.executed.result, self.executed.state) {
            (None, StepState::AnchorReached) => 0,
            (Some(StepResult::Error { .. }), _) => 1,
            (None, _) => 2,
            _ => 3,
        }
    }

    fn write(&self, shares: &[usize], out: &mut String) {
        let share = |at: usize| shares.get(at).copied().unwrap_or(0);
        let id = self.executed.step.id;
        let _ = write!(out, "{{\"step\":{}", id.0);
        let key = match &self.executed.step.action {
            Action::Anchor { .. } => "anchor",
            Action::Call { function, .. } => {
                let _ = write!(out, ",\"function\":{}", quoted(function));
                "args"
            }
        };
        if let Some(given) = self.given {
            let _ = write!(out, ",\"{key}\":{}", value(given, share(0)).0);
        }
        let _ = write!(out, ",\"status\":\"{}\"", self.status);
        match (&self.executed.result, &self.told) {
            (Some(StepResult::Success { .. }), Some(text)) => {
                let (json, left_out) = value(text, share(1));
                let _ = write!(out, ",\"result\":{json}{}", mark(left_out, Some(id)));
            }
            (Some(StepResult::Error { failure }), Some(text)) => {
                let kind = error_type(failure.kind);
                let (text, left_out) = shortened(text, share(1));
                let (text, mark) = (quoted(&text), mark(left_out, None));
                let _ = write!(out, ",\"kind\":\"{kind}\",\"message\":{text}{mark}");
            }
            (Some(StepResult::Skipped { because }), _) => {
                let _ = write!(out, ",\"because\":{}", because.0);
            }
            _ => {}
        }
        out.push_str("}\n");
    }
}

fn status(executed: &Executed, deciding: Option<StepId>) -> &'static str {
    match (&executed.result, executed.state) {
        (Some(StepResult::Success { .. }), _) if !is_call(executed) => "decided",
        (Some(StepResult::Success { .. }), _) => "success",
        (Some(StepResult::Error { .. }), _) => "error",
        (Some(StepResult::Skipped { .. }), _) => "skipped",
        (None, StepState::AnchorReached) if deciding == Some(executed.step.id) => {
            "to be decided now"
        }
        (None, StepState::AnchorReached) => "to be decided",
        (None, StepState::Running) => "running",
        (None, _) => "planned",
    }
}

/// Selects the lines to show: as many as fit with the shortest form of their texts, the latest of a rank first.
fn shown(lines: &[Line<'_>], budget: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| (lines.get(at).map(Line::rank), Reverse(at)));
    let mut shown = vec![false; lines.len()];
    let mut left = budget;
    for at in order {
        let least = lines.get(at).map_or(0, Line::least);
        if least > left {
            break;
        }
        left -= least;
        if let Some(shown) = shown.get_mut(at) {
            *shown = true;
        }
    }
    shown
}

/// Returns a text in about `share` tokens as a JSON value, and how many characters of how many are left out.
/// The value is the object or array itself if it fits, otherwise a string.
fn value(text: &str, share: usize) -> (String, Option<(usize, usize)>) {
    let (shown, left_out) = shortened(text, share);
    if left_out.is_some() {
        return (quoted(&shown), left_out);
    }
    let begins = text.trim_start().starts_with(['{', '[']);
    let is_json = begins && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    (if is_json { compact(text) } else { quoted(text) }, None)
}

/// Cuts a text to its share, and returns how many characters of how many are left out.
fn shortened(text: &str, share: usize) -> (Cow<'_, str>, Option<(usize, usize)>) {
    if size(text, share) <= share {
        return (Cow::Borrowed(text), None);
    }
    let shown = excerpt(text, share.saturating_sub(MARK_TOKENS), &Estimate);
    (Cow::Owned(shown.text), Some((shown.left_out, shown.of)))
}

/// Returns a note that something is left out, how much, and the reference to all of it, if there is one.
fn mark(left_out: Option<(usize, usize)>, whole: Option<StepId>) -> String {
    left_out.map_or_else(String::new, |(characters, of)| {
        let whole = whole.map_or_else(String::new, |id| format!(",\"whole\":\"$${id}.result$$\""));
        format!(",\"left_out\":{{\"characters\":{characters},\"of\":{of}{whole}}}")
    })
}

fn is_call(executed: &Executed) -> bool {
    matches!(executed.step.action, Action::Call { .. })
}

/// Counts the tokens of `text`, or returns more than `most` if it has more: a long text is not counted to its
/// end.
fn size(text: &str, most: usize) -> usize {
    // No token of a text worth showing has more than 16 bytes.
    let bound = text.floor_char_boundary(most.saturating_add(1).saturating_mul(16));
    let counted = text.get(..bound).map_or(0, |head| Estimate.count(head));
    if bound < text.len() { counted.max(most + 1) } else { counted }
}
