//! The maximum lengths of files and functions, and the exceptions.
//!
//! Anything longer is usually several things. If it is one, [`EXCEPTIONS`] says why; an unnecessary
//! exception is a finding too.

use crate::tidy::File;

/// The maximum lines of a source file.
const FILE: usize = 400;

/// The maximum lines of a test file. Tests are lists by nature.
const TESTS: usize = 600;

/// The maximum lines of a function, from `fn` to its last brace. Test functions, which tell a story,
/// may be longer.
const FUNCTION: usize = 80;

/// The exceptions: a path, or a path and a function as `path::function`, and why it is one thing.
const EXCEPTIONS: &[(&str, &str)] =
    &[("crates/sandbox/src/linux/calls.rs", "lists: every system call, by how it is handled")];

/// Returns every file and function that is too long, and every unnecessary exception.
pub(crate) fn too_long(files: &[File]) -> Vec<String> {
    judged(files, EXCEPTIONS)
}

fn judged(files: &[File], exceptions: &[(&str, &str)]) -> Vec<String> {
    let long: Vec<Long> = files.iter().filter(|file| file.is_rust()).flat_map(long_in).collect();
    let excepted = |long: &Long| exceptions.iter().any(|(what, _)| *what == long.what);
    let mut found: Vec<String> =
        long.iter().filter(|long| !excepted(long)).map(Long::finding).collect();
    for (what, _) in exceptions {
        if !long.iter().any(|long| long.what == *what) {
            found.push(format!("{what}: it is an exception in xtask/src/sizes.rs and needs none"));
        }
    }
    found
}

/// A file or a function that has too many lines.
struct Long {
    what: String,
    lines: usize,
    most: usize,
}

impl Long {
    fn finding(&self) -> String {
        let Self { what, lines, most } = self;
        format!("{what}: it has {lines} lines, more than {most}")
    }
}

fn long_in(file: &File) -> Vec<Long> {
    let lines: Vec<&str> = file.text.lines().collect();
    let most = if file.is_test() { TESTS } else { FILE };
    let mut long = Vec::new();
    if lines.len() > most {
        long.push(Long { what: file.path.clone(), lines: lines.len(), most });
    }
    if file.is_test() {
        return long;
    }
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function(line) else { continue };
        let count = length(&lines[at..]);
        if count > FUNCTION {
            let what = format!("{}::{name}", file.path);
            long.push(Long { what, lines: count, most: FUNCTION });
        }
    }
    long
}

/// Returns the name of the function whose first line this is.
fn function(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let before = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"];
    words.find(|word| !before.contains(word)).filter(|word| *word == "fn")?;
    words.next()?.split(['(', '<']).next()
}

/// Returns the number of lines of the function that begins with the first of these, as rustfmt writes
/// it: its last brace is indented like its first line. 0 for a function without a body, or on a single
/// line.
fn length(lines: &[&str]) -> usize {
    let Some(first) = lines.first().filter(|line| !line.ends_with([';', '}'])) else { return 0 };
    let indent = &first[..first.len() - first.trim_start().len()];
    let last = lines.iter().skip(1).position(|line| {
        let rest = line.strip_prefix(indent).unwrap_or_default();
        rest == "}" || rest.starts_with(')') && rest.ends_with(';')
    });
    match last {
        Some(last) if lines[last + 1].ends_with('}') => last + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn what_is_long_is_found_and_may_be_excepted() {
        let source = file("crates/a/src/a.rs", &"\n".repeat(FILE + 1));
        let tests = file("crates/a/tests/it/a.rs", &"\n".repeat(FILE + 1));
        let files = [source, tests];
        assert_eq!(judged(&files, &[]), ["crates/a/src/a.rs: it has 401 lines, more than 400"]);
        assert_eq!(judged(&files, &[("crates/a/src/a.rs", "a list")]), Vec::<String>::new());
        let stale = judged(&files[1..], &[("crates/a/src/a.rs", "a list")]);
        assert!(stale.len() == 1 && stale[0].ends_with("needs none"), "{stale:?}");
        let tests = file("crates/a/src/a/tests.rs", &"\n".repeat(TESTS + 1));
        assert_eq!(judged(&[tests], &[]).len(), 1);
    }

    #[test]
    fn functions_are_measured_to_their_last_brace() {
        let body = "        {\n            b();\n        }\n".repeat(FUNCTION / 3 + 1);
        let long = format!(
            "impl A {{\n    pub(crate) fn long(\n        a: A,\n    ) {{\n{body}    }}\n}}\n"
        );
        let short = "trait B {\n    fn none(\n        b: B,\n    );\n\n    fn one(&self) {}\n}\n";
        let found = judged(&[file("a/src/a.rs", &format!("{short}{long}"))], &[]);
        assert_eq!(found, ["a/src/a.rs::long: it has 85 lines, more than 80"]);
    }
}
