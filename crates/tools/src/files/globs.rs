//! Patterns for the names of files.

use foldback_tool::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// A pattern for the names of files, or several separated by commas.
pub(super) struct Glob(Vec<One>);

/// A single pattern: with a `/` it is matched against the path, otherwise against the name.
struct One {
    matcher: GlobMatcher,
    is_path: bool,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        // A comma inside braces belongs to the pattern.
        let mut depth = 0_u32;
        let each = pattern.split(|letter| {
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            letter == ',' && depth == 0
        });
        let each = each.map(str::trim);
        each.map(One::new).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether a path, relative to the folder that is searched, fits.
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
