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
        let mut commas = Commas::default();
        let each = pattern.split(|letter| commas.separates(letter));
        let each = each.map(str::trim);
        each.map(One::new).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether a path, relative to the folder that is searched, fits.
    pub(super) fn fits(&self, within: &Path) -> bool {
        self.0.iter().any(|one| one.fits(within))
    }
}

/// Finds the commas between patterns: one inside braces or brackets, or after a backslash, belongs to its pattern.
#[derive(Default)]
struct Commas {
    braces: u32,
    class: Class,
    is_escaped: bool,
}

/// How far a class of characters in brackets has been read. A `]` that is its first character does not end it.
#[derive(Clone, Copy, Default)]
enum Class {
    #[default]
    Outside,
    Begun,
    Negated,
    Filled,
}

impl Commas {
    fn separates(&mut self, letter: char) -> bool {
        if std::mem::take(&mut self.is_escaped) {
            return false;
        }
        self.class = match (self.class, letter) {
            (Class::Begun, '!' | '^') => Class::Negated,
            (Class::Filled, ']') => Class::Outside,
            (Class::Begun | Class::Negated | Class::Filled, _) => Class::Filled,
            (Class::Outside, '[') => Class::Begun,
            (Class::Outside, _) => {
                match letter {
                    // On Windows it separates folders.
                    '\\' => self.is_escaped = !std::path::is_separator(letter),
                    '{' => self.braces += 1,
                    '}' => self.braces = self.braces.saturating_sub(1),
                    _ => {}
                }
                return letter == ',' && self.braces == 0;
            }
        };
        false
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn only_commas_between_patterns_separate_them() {
        let fits = |pattern: &str, name: &str| Glob::new(pattern).unwrap().fits(Path::new(name));
        for (pattern, name) in [
            ("[a,b].rs", ",.rs"),
            ("[!a,]x.rs,*.md", "bx.rs"),
            ("[],]杭,*.md", "]杭"),
            ("[^],]杭,*.md", "杭.md"),
            ("{[}],州},*.md", "州"),
            ("*.{rs,md}, 杭*", "杭州"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        assert!(!fits("[a,b].rs", "b].rs") && !fits("[!a,]x.rs", ",x.rs"));
        #[cfg(unix)]
        assert!(fits(r"a\,b,c", "a,b") && fits(r"\[a,b", "b"));
        assert!(Glob::new("[a,b").is_err());
    }
}
