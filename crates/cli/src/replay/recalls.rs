//! The proof on the screen that folded content is found.

use super::{Sample, samples};
use crate::error::CliError;
use crate::output::snippet::{show, snippet_line};
use crate::output::{Output, block, style, text};
use foldback::{Memory, question_words};
use foldback_core::{TodoId, thousands};

/// Shows that folded content is found, by words that only one early block holds.
pub(crate) fn recalls(memory: &Memory, todo: &TodoId, out: &Output) -> Result<(), CliError> {
    let samples = samples(memory, todo)?;
    if samples.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(style::paint(style::HEAD, "Folded content is found again"))?;
    for sample in samples {
        match sample {
            Sample::Search { query, found, range, right, snippet } => {
                let other = if right { "" } else { ", not the block that the words are from" };
                out.line(format!("  search \"{}\"", text::plain(&query)))?;
                let found = style::paint(style::NAME, found);
                out.line(format!("    → {found}, messages {}{other}", block::range(range)))?;
                if let Some(snippet) = snippet {
                    let line = snippet_line(&snippet, &question_words(&query), out.width() - 6);
                    out.line(format!("      {line}"))?;
                }
            }
            Sample::Load { reference, pattern, line, lines, text } => {
                let name = style::paint(style::NAME, &reference);
                out.line(format!("  load {name} --match {}", text::plain(&pattern)))?;
                out.line(format!("    → line {} of {}", thousands(line), thousands(lines)))?;
                let shown = show(&text, &[pattern], out.width() - 6);
                out.line(format!("      {shown}"))?;
            }
        }
    }
    Ok(())
}
