//! The title line of an entry: its name, and facts about it.

use super::{Output, style, text};
use crate::error::CliError;

/// The indentation of what follows the title.
pub(crate) const INDENT: &str = "    ";

/// Prints a name, and beside it the first of these facts that fits; if none does, prints the first of them below.
pub(crate) fn print(out: &Output, name: &str, facts: &[&str]) -> Result<(), CliError> {
    let room = out.width().saturating_sub(text::columns(name) + 2);
    let name = style::paint(style::NAME, name);
    if let Some(facts) = facts.iter().find(|facts| text::columns(facts) <= room) {
        return out.line(format!("{name}  {}", style::paint(style::DIM, facts)));
    }
    out.line(name)?;
    for line in
        facts.first().map(|facts| text::wrap(facts, out.width() - INDENT.len(), 0)).iter().flatten()
    {
        out.line(format!("{INDENT}{}", style::paint(style::DIM, line)))?;
    }
    Ok(())
}
