//! The few styles there are. A style says what a text is, not how prominent it is.

use anstyle::{AnsiColor, Style};
use std::fmt::Display;

/// A headline.
pub(crate) const HEAD: Style = Style::new().bold();
/// A name that can be typed again: a block, a payload, a todo.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// Secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// As it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Not as it should be.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What a search was looking for.
pub(crate) const MATCH: Style = AnsiColor::Yellow.on_default().bold();

/// The text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
