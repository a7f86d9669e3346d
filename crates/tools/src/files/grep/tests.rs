//! Tests of lines that are searched in parts.

use super::{Bounds, Matches, Search};
use crate::FilePermissions;
use cap_std::fs::File;
use foldback_tool::CancellationToken;
use regex::Regex;

/// The answer for a file of this content, searched in parts of 12 bytes.
fn grep(content: &str, pattern: &str, context: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x"), content).unwrap();
    let bounds = Bounds::new(&FilePermissions::default(), CancellationToken::new(), None);
    let (regex, matches) = (Regex::new(pattern).unwrap(), Matches::default());
    let mut search = Search { regex, context, bounds: &bounds, matches, part: 12 };
    let file = File::from_std(std::fs::File::open(dir.path().join("x")).unwrap());
    assert!(search.file(file, "x").unwrap().is_continue());
    search.matches.answer().data.text
}

const NOTE: &str = "[lines that were searched in parts of 16 MiB: 1; a match across two parts is missed, and ^ and $ \
    match between them]";

#[test]
fn a_line_of_several_parts_is_listed_once() {
    assert_eq!(grep("雨雨雨雨雨雨雨雨雨雨\nb\n", "雨", 0), format!("x:1:雨雨雨雨\n{NOTE}"));
    let late = "aaaaaaaaaaaa雨\n";
    assert_eq!(grep(&format!("a\n{late}c\n"), "雨", 1), format!("x-1-a\nx:2:雨\nx-3-c\n{NOTE}"));
    let none = format!("[nothing matches; files searched: 1]\n{NOTE}");
    assert_eq!(grep(late, "霜", 0), none);
}

/// The parts of a line do not count as lines around a match.
#[test]
fn a_line_of_several_parts_is_one_line_of_context() {
    let long = "aaaaaaaaaaaabbbbbbbbbbbbcc\n";
    let expected =
        format!("x-2-aaaaaaaaaaaa\nx:3:雨\nx-4-aaaaaaaaaaaa\n{}", NOTE.replace(": 1", ": 2"));
    assert_eq!(grep(&format!("z\n{long}雨\n{long}z\n"), "雨", 1), expected);
    assert_eq!(grep("aaaaaaaaaaa\n雨\n", "雨", 0), "x:2:雨", "a line of one whole part");
}
