//! The text of a panic.

use std::any::Any;

/// Returns the text of a caught panic, if it has one: `panic!` leaves a text, `panic_any` whatever it was given.
///
/// ```
/// let panic = std::panic::catch_unwind(|| panic!("no {}", "water")).unwrap_err();
/// assert_eq!(foldback_core::panic_text(&*panic), Some("no water"));
/// ```
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
