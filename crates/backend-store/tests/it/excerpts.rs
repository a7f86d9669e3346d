//! BS3: lines, and the lines around a pattern, within a budget and with a place to go on.

use crate::world::{World, noise};
use foldback_backend_store::{Error, Excerpt, Position};
use foldback_core::{Estimate, TokenCounter};
use proptest::prelude::*;

/// An excerpt as a person would read it: `first-last: text`, a mark where a line is cut, and the
/// place to continue from.
fn dump(excerpt: &Excerpt) -> String {
    let mut out = String::new();
    for run in &excerpt.runs {
        let (before, after) =
            (if run.starts_inside { "<" } else { "" }, if run.ends_inside { ">" } else { "" });
        let text = run.text().trim_end_matches('\n').replace('\n', "|");
        out += &format!("{}-{}: {before}{text}{after}\n", run.first_line, run.last_line);
    }
    if excerpt.matches > 0 {
        out += &format!("{} matches\n", excerpt.matches);
    }
    if let Some(next) = excerpt.next {
        out += &format!("next {next}\n");
    }
    out + &format!("of {}", excerpt.total_lines)
}

#[track_caller]
fn check_lines(text: &str, first: &str, last: u64, budget: usize, expected: &str) {
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let first: Position = first.parse().unwrap();
    let excerpt = world.store.lines(&world.todo, meta.n, first, last, budget).unwrap();
    assert_eq!(dump(&excerpt), expected);
    check_quotes(text.as_bytes(), &excerpt);
}

#[track_caller]
fn check_matching(text: &str, pattern: &str, context: usize, budget: usize, expected: &str) {
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let excerpt = world.store.matching(&world.todo, meta.n, pattern, context, budget, 1).unwrap();
    assert_eq!(dump(&excerpt), expected);
    check_quotes(text.as_bytes(), &excerpt);
}

/// A run says exactly which bytes it is, and a run of text is text.
#[track_caller]
fn check_quotes(bytes: &[u8], excerpt: &Excerpt) {
    let mut end = 0;
    for run in &excerpt.runs {
        assert!(run.bytes.start >= end && !run.bytes.is_empty());
        end = run.bytes.end;
        let range = run.bytes.start as usize..run.bytes.end as usize;
        assert_eq!(run.content, bytes[range.clone()]);
        if std::str::from_utf8(bytes).is_ok() {
            assert!(std::str::from_utf8(&run.content).is_ok());
        }
        let line_of = |at: usize| bytes[..at].iter().filter(|b| **b == b'\n').count() as u64 + 1;
        assert_eq!(run.first_line, line_of(range.start));
        assert_eq!(run.last_line, line_of(range.end - 1));
        assert_eq!(run.starts_inside, range.start > 0 && bytes[range.start - 1] != b'\n');
        assert_eq!(run.ends_inside, range.end < bytes.len() && bytes[range.end - 1] != b'\n');
    }
}

const TEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten";

#[test]
fn bs3_a_range_of_lines() {
    check_lines(TEN, "3", 5, 1000, "3-5: three|four|five\nof 10");
    check_lines(TEN, "10", 10, 1000, "10-10: ten\nof 10");
    // A range beyond the end stops at the end.
    check_lines(TEN, "9", 999, 1000, "9-10: nine|ten\nof 10");
    check_lines("第一行\n第二行\r\n\n第四行\n", "2", 4, 1000, "2-4: 第二行\r||第四行\nof 4");
    check_lines("", "1", u64::MAX, 1000, "of 0");
}

#[test]
fn bs3_a_budget_ends_at_a_line_and_says_where_to_go_on() {
    let text: String = (1..=1000).map(|i| format!("line number {i} of many\n")).collect();
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let excerpt = world.store.lines(&world.todo, meta.n, 100, u64::MAX, 50).unwrap();
    assert_eq!(excerpt.first_line(), 100);
    let next = excerpt.next.unwrap();
    assert_eq!((next.line, next.skip), (excerpt.last_line() + 1, 0));
    assert!(Estimate.count(&excerpt.runs[0].text()) <= 50);
    // The whole requested range was returned, so nothing is left of it.
    assert_eq!(world.store.lines(&world.todo, meta.n, 100, 101, 50).unwrap().next, None);
}

#[test]
fn bs3_a_long_line_is_cut_between_characters() {
    let text = format!("head\n{}\ntail\n", "长长的一行文字".repeat(40_000));
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let mut at = Position::from(2);
    let mut back = String::new();
    loop {
        let excerpt = world.store.lines(&world.todo, meta.n, at, 2, 2000).unwrap();
        check_quotes(text.as_bytes(), &excerpt);
        back += std::str::from_utf8(&excerpt.runs[0].content).unwrap();
        match excerpt.next {
            Some(next) => {
                assert!(next > at && next.line == 2, "{next}");
                at = next;
            }
            None => break,
        }
    }
    assert_eq!(back, text.lines().nth(1).unwrap().to_owned() + "\n");
    // A position inside a character is moved to the beginning of that character.
    let excerpt = world
        .store
        .lines(&world.todo, meta.n, "2+3001".parse::<Position>().unwrap(), 2, 10)
        .unwrap();
    assert_eq!(excerpt.runs[0].bytes.start, 5 + 3000);
}

#[test]
fn bs3_asking_for_more_than_exists_says_what_there_is() {
    let world = World::new();
    let meta = world.put(TEN.as_bytes());
    let asked = |first: Position, last| world.store.lines(&world.todo, meta.n, first, last, 100);
    for (first, last, words) in [
        ("11", 20, "line 11 was requested, but the payload has 10 lines"),
        ("0", 20, "line 0 was requested, but the payload has 10 lines"),
        ("5", 4, "line 5 to 4 was requested, but the payload has 10 lines"),
        ("3+6", 4, "line 3+6 was requested, but the payload has 6 bytes in line 3"),
        ("10+3", 10, "line 10+3 was requested, but the payload has 3 bytes in line 10"),
        (
            "3+18446744073709551615",
            4,
            "line 3+18446744073709551615 was requested, but the payload has 6 bytes",
        ),
    ] {
        let error = asked(first.parse().unwrap(), last).unwrap_err();
        assert!(matches!(error, Error::BadRange { .. }));
        assert!(error.to_string().starts_with(words), "{error}");
    }
    assert_eq!(dump(&asked("3+5".parse().unwrap(), 4).unwrap()), "3-4: <|four\nof 10");
    let error = world.store.matching(&world.todo, meta.n, "x", 0, 100, 11).unwrap_err();
    assert!(matches!(error, Error::BadRange { .. }));
}

#[test]
fn bs3_positions_have_one_form() {
    for (text, line, skip) in [("12", 12, 0), ("12+4096", 12, 4096)] {
        let position: Position = text.parse().unwrap();
        assert_eq!((position.line, position.skip), (line, skip));
        assert_eq!(position.to_string(), text);
    }
    for bad in ["", "+", "1+", "+1", "a", "-1", "1++1", "1 ", "99999999999999999999"] {
        assert!(bad.parse::<Position>().is_err(), "{bad}");
    }
}

#[test]
fn bs3_the_lines_around_a_pattern() {
    check_matching(TEN, "^t", 0, 1000, "2-3: two|three\n10-10: ten\n3 matches\nof 10");
    check_matching(TEN, "six", 1, 1000, "5-7: five|six|seven\n1 matches\nof 10");
    // Contexts that touch are one run, and nothing is shown twice.
    check_matching(TEN, "two|five", 1, 1000, "1-6: one|two|three|four|five|six\n2 matches\nof 10");
    check_matching(
        TEN,
        "one|ten",
        2,
        1000,
        "1-3: one|two|three\n8-10: eight|nine|ten\n2 matches\nof 10",
    );
    check_matching(TEN, "eleven", 2, 1000, "of 10");
    check_matching(
        "错误一\r\n正常\r\n错误二\r\n",
        "误.$",
        0,
        1000,
        "1-1: 错误一\r\n3-3: 错误二\r\n2 matches\nof 3",
    );
    check_matching("", "x", 2, 1000, "of 0");
}

#[test]
fn bs3_matches_beyond_the_budget_have_a_place_to_go_on() {
    let text: String = (1..=300).map(|i| format!("entry {i} error={}\n", i % 10)).collect();
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let mut from = Position::from(1);
    let mut found = Vec::new();
    loop {
        let excerpt = world.store.matching(&world.todo, meta.n, "error=7", 1, 60, from).unwrap();
        check_quotes(text.as_bytes(), &excerpt);
        assert!(excerpt.matches > 0);
        let shown: String = excerpt.runs.iter().map(|run| run.text().into_owned()).collect();
        assert!(Estimate.count(&shown) <= 60);
        found.extend(shown.lines().filter(|line| line.ends_with("=7")).map(str::to_owned));
        match excerpt.next {
            Some(next) => {
                assert!(next > from);
                from = next;
            }
            None => break,
        }
    }
    let expected: Vec<&str> = text.lines().filter(|line| line.ends_with("=7")).collect();
    assert_eq!(found, expected);
}

#[test]
fn bs3_a_match_deep_in_a_long_line_is_found_and_shown_around() {
    let text = format!("{{\"a\": \"{}针{}\"}}", "草".repeat(100_000), "草".repeat(100_000));
    let world = World::new();
    let meta = world.put(text.as_bytes());
    let excerpt = world.store.matching(&world.todo, meta.n, "针", 3, 1500, 1).unwrap();
    check_quotes(text.as_bytes(), &excerpt);
    assert_eq!((excerpt.matches, excerpt.next), (1, None));
    let run = &excerpt.runs[0];
    assert!(run.text().contains('针') && run.content.len() <= 2048);
    assert!(run.starts_inside && run.ends_inside);
    // A budget that is smaller than what is around it still shows something.
    let tight = world.store.matching(&world.todo, meta.n, "针", 3, 1, 1).unwrap();
    assert_eq!(tight.matches, 1);
    assert!(tight.runs[0].content.len() < 200);
}

#[test]
fn bs3_binary_is_given_as_bytes() {
    let world = World::new();
    let bytes = noise(100_000, 8);
    let meta = world.put(&bytes);
    let mut at = Position::from(1);
    let mut back: Vec<u8> = Vec::new();
    loop {
        let excerpt = world.store.lines(&world.todo, meta.n, at, u64::MAX, 1000).unwrap();
        check_quotes(&bytes, &excerpt);
        back.extend(&excerpt.runs[0].content);
        let Some(next) = excerpt.next else { break };
        at = next;
    }
    assert!(back == bytes);
    let excerpt = world.store.matching(&world.todo, meta.n, "(?-u)\\x00\\xff", 0, 1000, 1).unwrap();
    check_quotes(&bytes, &excerpt);
}

#[test]
fn s12_bad_and_hostile_patterns_are_friendly_errors() {
    let world = World::new();
    let meta = world.put(TEN.as_bytes());
    let deep = format!("{}a{}", "(".repeat(400), ")".repeat(400));
    let long = "a".repeat(1001);
    for pattern in [
        "",
        "(",
        "[z-a]",
        "a{2,1}",
        "\\",
        "(?<=x)y",
        "\\1",
        "*",
        "(?P<x",
        "\\p{Nope}",
        "a{100000}",
        "((a{100}){100}){100}",
        "(\\w{200}){50}",
        &deep,
        &long,
        "中(",
    ] {
        let error = world.store.matching(&world.todo, meta.n, pattern, 0, 100, 1).unwrap_err();
        assert!(matches!(error, Error::BadPattern { .. }), "{pattern}: {error}");
        assert!(error.to_string().len() < 400, "{error}");
    }
    // Patterns that a model is likely to use are not refused.
    for pattern in [
        "fn \\w+\\(",
        "(?i)error|warning|exception|traceback|failed",
        "\\b\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}",
        "\\w+\\.\\w+@\\w+",
        "[A-Za-z_][A-Za-z0-9_]*\\s*=\\s*\"[^\"]*\"",
        "\\s+\\S+\\s+\\d+\\s+\\w+",
        "错误|失败",
        ".*",
        "(?i)content-type:\\s*application/json",
    ] {
        world.store.matching(&world.todo, meta.n, pattern, 2, 100, 1).unwrap();
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof!["[ab ]{0,30}", "[中文é😀x]{0,60}", "[x中]{1000,3000}"];
    prop_oneof![
        (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, end)| {
            (lines.join("\n") + if end { "\n" } else { "" }).into_bytes()
        }),
        prop::collection::vec(
            prop_oneof![4 => Just(b'x'), 1 => any::<u8>(), 1 => Just(b'\n')],
            0..900
        ),
        (1_usize..30_000).prop_map(|n| "行x\n".repeat(n).into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bs3_excerpts_joined_are_the_payload(bytes in texts(), budget in 0_usize..3000) {
        let world = World::new();
        let meta = world.put(&bytes);
        let mut at = Position::from(1);
        let mut back: Vec<u8> = Vec::new();
        for turn in 0.. {
            let excerpt = world.store.lines(&world.todo, meta.n, at, u64::MAX, budget).unwrap();
            // A small budget takes many turns; a part of the way is enough proof.
            check_quotes(&bytes, &excerpt);
            for run in &excerpt.runs {
                back.extend(&run.content);
            }
            match excerpt.next {
                None => {
                    prop_assert!(back == bytes);
                    break;
                }
                Some(_) if turn > 60 => {
                    prop_assert!(bytes.starts_with(&back));
                    break;
                }
                Some(next) => {
                    prop_assert!(next > at);
                    at = next;
                }
            }
        }
    }

    #[test]
    fn bs3_every_match_is_found_once(
        bytes in texts(),
        budget in 0_usize..2000,
        context in 0_usize..4,
    ) {
        let world = World::new();
        let meta = world.put(&bytes);
        let expected: Vec<u64> = bytes
            .split(|byte| *byte == b'\n')
            .zip(1..)
            .filter(|(line, _)| line.contains(&b'x'))
            .map(|(_, line)| line)
            .take(150)
            .collect();
        let mut from = Position::from(1);
        let mut matches = 0;
        let mut shown = std::collections::BTreeSet::new();
        while matches < expected.len() as u64 {
            let excerpt =
                world.store.matching(&world.todo, meta.n, "x", context, budget, from).unwrap();
            check_quotes(&bytes, &excerpt);
            matches += excerpt.matches;
            shown.extend(excerpt.runs.iter().flat_map(|run| run.first_line..=run.last_line));
            match excerpt.next {
                None => {
                    prop_assert!(matches == expected.len() as u64 || expected.len() == 150);
                    break;
                }
                Some(next) => {
                    prop_assert!(next > from);
                    from = next;
                }
            }
        }
        prop_assert!(expected.iter().all(|line| shown.contains(line)));
    }
}

#[test]
fn s12_a_costly_pattern_stops_and_can_go_on() {
    let text = format!("{}边axb", "日志第一行内容很多。\n".repeat(60_000));
    let world = World::new();
    let meta = world.put(text.as_bytes());
    // The engine has no automaton for word boundaries in Chinese, and takes seconds per megabyte.
    let pattern = "\\b(.*[日a]){20}\\bx|axb$";
    let mut from = Position::from(1);
    let mut calls = 0;
    let found = loop {
        let excerpt = world.store.matching(&world.todo, meta.n, pattern, 0, 100, from).unwrap();
        calls += 1;
        let Some(next) = excerpt.next else { break excerpt };
        assert_eq!((excerpt.matches, excerpt.runs.len()), (0, 0));
        assert!(next > from);
        from = next;
    };
    assert_eq!((found.matches, found.first_line()), (1, 60_001));
    assert!(calls > 1);
    // A plain pattern searches it at once.
    let plain = world.store.matching(&world.todo, meta.n, "axb$", 0, 100, 1).unwrap();
    assert_eq!(plain.matches, 1);
}
