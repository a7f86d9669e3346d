//! A closed block as a person reads it: one line of facts, and what happened below.

use super::title::{self, INDENT};
use super::{Output, text};
use crate::error::CliError;
use foldback_core::{Block, SeqRange};

/// Prints a block's id, its messages, its type, why it closed and `more`; below that, what
/// happened. A long id gets a line of its own.
pub(crate) fn print(out: &Output, block: &Block, more: &str) -> Result<(), CliError> {
    let header = &block.header;
    let id = header.block_id.to_string();
    let facts =
        format!("{} · {} · {} · {more}", range(block.range), header.block_type, block.close_reason);
    let noun = if block.range.len() == 1 { "message" } else { "messages" };
    let long = format!("{noun} {facts}");
    title::print(out, &id, &[&long, &facts])?;
    let width = out.width() - INDENT.len();
    for line in text::wrap(&text::one_line(&header.core_semantic), width, 0) {
        out.line(format!("{INDENT}{line}"))?;
    }
    Ok(())
}

/// `12-19`, or `12` if first and last are the same.
pub(crate) fn range(range: SeqRange) -> String {
    if range.len() == 1 { range.first().to_string() } else { range.to_string() }
}
