//! A replay in the form for a person.

use super::Report;
use super::event::Event;
use crate::error::CliError;
use crate::output::block;
use crate::output::title::INDENT;
use crate::output::{Output, style, text};
use crate::sources::Sourced;
use foldback_core::thousands;
use foldback_policies::Policy;

/// Prints what happens to one conversation.
pub(crate) struct Screen<'a> {
    out: &'a Output,
}

/// The cells of the gauge.
const GAUGE: u64 = 24;

/// The meaning of the lines of a replay.
const LEGEND: [&str; 3] = [
    "⇢ a part of a message that is stored outside from now on",
    "b_... a closed block: messages, type, why it closed, tokens → those of its line",
    "█ what a model is sent now (view), compared with everything so far (full)",
];

impl<'a> Screen<'a> {
    /// Prints what is replayed, and into which store.
    pub(crate) fn begin(
        out: &'a Output,
        sourced: &Sourced,
        policy: Policy,
        place: &str,
    ) -> Result<Self, CliError> {
        if !out.is_quiet() {
            let messages = &sourced.conversation.messages;
            let bytes: usize = messages.iter().map(|message| message.json().len()).sum();
            out.line(format!(
                "{} {}",
                style::paint(style::HEAD, text::one_line(&sourced.id())),
                style::paint(
                    style::DIM,
                    format!(
                        "· {} · {} · policy {} · {place}",
                        text::count(messages.len() as u64, "message"),
                        text::bytes(bytes as u64),
                        policy.name(),
                    )
                )
            ))?;
            if policy.is_foldback() {
                for line in LEGEND {
                    out.line(style::paint(style::DIM, text::fit(line, out.width())))?;
                }
            }
            out.line("")?;
        }
        Ok(Self { out })
    }

    pub(crate) fn show(&self, event: &Event<'_>) -> Result<(), CliError> {
        let out = self.out;
        if out.is_quiet() {
            return Ok(());
        }
        match event {
            Event::Offloaded { seq, what, meta } => {
                let lines = match meta.kind {
                    foldback_core::PayloadKind::Binary => String::new(),
                    _ => format!(", {}", text::count(meta.lines, "line")),
                };
                let reference = meta.reference().to_string();
                let rest = format!(
                    "{} {}{lines}: {}",
                    text::bytes(meta.bytes),
                    meta.kind,
                    text::one_line(what)
                );
                let room = out.width().saturating_sub(INDENT.len() + 7 + reference.len());
                out.line(format!(
                    "{INDENT}{} {} {}",
                    style::paint(style::DIM, format!("{:>3} ⇢", seq.0)),
                    style::paint(style::NAME, reference),
                    text::fit(&rest, room),
                ))
            }
            Event::Closed { block, tokens, line, .. } => {
                let tokens = thousands(*tokens);
                block::print(out, block, &format!("{tokens} → {line} tokens"))
            }
            Event::Size { view, full } => {
                let filled = gauge(*view, *full);
                let bar: String = std::iter::repeat_n('█', filled)
                    .chain(std::iter::repeat_n('░', GAUGE as usize - filled))
                    .collect();
                out.line(format!(
                    "{INDENT}{bar} {}",
                    style::paint(
                        style::DIM,
                        format!("view {} tokens · full {}", thousands(*view), thousands(*full))
                    )
                ))
            }
            Event::Call { .. } => Ok(()),
        }
    }
}

/// The filled cells of the gauge: at least one, because a view is never empty.
fn gauge(view: u64, full: u64) -> usize {
    let filled = (view * GAUGE).div_ceil(full.max(1)).clamp(1, GAUGE);
    usize::try_from(filled).unwrap_or(1)
}

/// Prints a line for each of many conversations.
pub(crate) struct Many<'a> {
    out: &'a Output,
    id_width: usize,
}

/// The titles and widths of the numbers after a conversation's id.
const COLUMNS: [(&str, usize); 7] = [
    ("messages", 8),
    ("blocks", 6),
    ("calls", 5),
    ("full", 7),
    ("sent", 7),
    ("saved", 6),
    ("window", 6),
];

/// The last columns, after the numbers.
const VERDICT: &str = "lossless";

impl<'a> Many<'a> {
    pub(crate) fn begin(out: &'a Output) -> Result<Self, CliError> {
        let numbers: usize = COLUMNS.iter().map(|(_, width)| width + 1).sum();
        let room = out.width().saturating_sub(numbers + VERDICT.len() + 1);
        let many = Self { out, id_width: room.clamp(8, 48) };
        if !out.is_quiet() {
            let mut head = text::fill("conversation", many.id_width);
            for (title, width) in COLUMNS {
                head.push_str(&format!(" {title:>width$}"));
            }
            out.line(style::paint(style::HEAD, format!("{head} {VERDICT}")))?;
        }
        Ok(many)
    }

    pub(crate) fn row(&self, report: &Report) -> Result<(), CliError> {
        if self.out.is_quiet() && report.is_clean() {
            return Ok(());
        }
        let values = [
            thousands(report.messages),
            thousands(report.blocks),
            thousands(report.calls),
            text::short(report.full.input_tokens),
            text::short(report.input_tokens),
            text::saved(report.input_tokens as f64, report.full.input_tokens as f64),
            thousands(report.window_max_messages as u64),
        ];
        let id = text::fit_middle(&text::one_line(&report.id), self.id_width);
        let mut line = text::fill(&id, self.id_width);
        for (value, (_, width)) in values.iter().zip(COLUMNS) {
            line.push_str(&format!(" {value:>width$}"));
        }
        let verdict = match report.is_clean() {
            true => style::paint(style::GOOD, "yes"),
            false if report.lossless => style::paint(style::BAD, "NOT CLEAN"),
            false => style::paint(style::BAD, "NO"),
        };
        self.out.line(format!("{line} {verdict}"))?;
        for problem in &report.problems {
            self.out.line(format!("{INDENT}{}", text::one_line(problem)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_is_never_empty_and_never_over() {
        assert_eq!([gauge(0, 0), gauge(1, 1_000), gauge(5, 5), gauge(9, 5)], [1, 1, 24, 24]);
        assert_eq!(gauge(500, 1_000), 12);
    }
}
