//! Words that a copy-edit took out of comments and pages, and that are not to come back.

use crate::tidy::File;

/// Each phrase, and what to write in its place.
const PHRASES: [(&str, &str); 8] = [
    ("whoever", "the caller, the user, anyone who"),
    ("is told", "is given, sees"),
    ("are told", "are given, see"),
    ("was told", "was given, saw"),
    ("tells of", "reports, mentions"),
    ("cannot be had", "is not available"),
    ("so many", "up to N, that many"),
    ("clock of the wall", "wall-clock time"),
];

/// Returns the lines of comments and pages that hold one of the phrases. What a model reads is measured before it is
/// changed, so prompts are left out, and so is everything that a program quotes.
pub(crate) fn findings(files: &[File]) -> Vec<String> {
    let is_read = |file: &&File| file.is_rust() || is_page(&file.path);
    files.iter().filter(is_read).flat_map(in_file).collect()
}

/// A page for people: of the root, of the book, or of a crate.
fn is_page(path: &str) -> bool {
    path.ends_with(".md") && !path.contains("/src/") && !path.contains("tests/")
}

fn in_file(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let prose = if file.is_rust() { comment(line) } else { Some(line) };
        let Some(prose) = prose.map(str::to_lowercase) else { continue };
        for (phrase, instead) in PHRASES {
            if holds(&prose, phrase) {
                let (path, at) = (&file.path, at + 1);
                found.push(format!("{path}:{at}: it says \"{phrase}\"; write: {instead}"));
            }
        }
    }
    found
}

/// The comment that a line is. A comment behind code on its line is left out: a text may hold two slashes.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//").filter(|_| !line.starts_with("//\""))
}

/// Whether the phrase is there as words of their own.
fn holds(prose: &str, phrase: &str) -> bool {
    prose.match_indices(phrase).any(|(at, _)| {
        let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let before = prose.get(..at).and_then(|text| text.chars().next_back());
        let rest = prose.get(at + phrase.len()..).unwrap_or_default();
        // Two things are told apart.
        !is_word(before) && !is_word(rest.chars().next()) && !rest.starts_with(" apart")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        findings(&[File { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn a_phrase_is_found_in_comments_and_pages() {
        let line = "/// Whoever asks is told it.\n";
        assert_eq!(found("crates/a/src/lib.rs", line).len(), 2);
        assert_eq!(
            found("docs/a.md", "One\nso many words"),
            ["docs/a.md:2: it says \"so many\"; write: up to N, that many"]
        );
    }

    #[test]
    fn prompts_code_and_parts_of_words_are_left_alone() {
        assert!(found("crates/agent/src/prompts/agent.md", "whoever wrote it").is_empty());
        assert!(found("crates/a/src/lib.rs", "let told = \"is told\"; // whoever\n").is_empty());
        assert!(found("docs/a.md", "this toldo").is_empty());
    }
}
