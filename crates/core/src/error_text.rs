//! The text of an error, with its causes.

use std::error::Error;

/// Returns what went wrong, followed by what its sources add: the reason that the system gave.
///
/// ```
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(foldback_core::error_text(&error), "the disk is full");
/// ```
#[must_use]
pub fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
        source = error.source();
    }
    text
}
