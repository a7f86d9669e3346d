//! Patterns for the names of files.

use foldback_tool::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// A pattern for the names of files, or several with commas between them.
pub(super) struct Glob(Vec<One>);

/// A pattern: with a `/` it is held against the path, else against the name.
struct One {
    matcher: GlobMatcher,
    is_path: bool,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let has_braces = pattern.contains('{');
        // Inside of braces a comma is the pattern's own.
        let each = pattern.split(|letter| letter == ',' && !has_braces).map(str::trim);
        each.map(One::new).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a path fits, told from the folder on that is searched.
    pub(super) fn fits(&self, within: &Path) -> bool {
        self.0.iter().any(|one| one.fits(within))
    }
}

impl One {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        // A name has the same meaning in each normal form of Unicode.
        let pattern: String = pattern.trim_start_matches("./").nfc().collect();
        let glob = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| {
                ToolError::arguments(format!(
                    "{pattern:?} is not a pattern for file names: {}; \"*.rs\", \"src/**/*.md\" or \
                     \"*.{{yml,yaml}}\" was expected",
                    error.kind()
                ))
            })?;
        Ok(Self { matcher: glob.compile_matcher(), is_path: pattern.contains('/') })
    }

    fn fits(&self, within: &Path) -> bool {
        let held = if self.is_path { Some(within) } else { within.file_name().map(Path::new) };
        let Some(held) = held else { return false };
        match held.to_str() {
            Some(text) if !text.is_ascii() => self.matcher.is_match(text.nfc().collect::<String>()),
            _ => self.matcher.is_match(held),
        }
    }
}
