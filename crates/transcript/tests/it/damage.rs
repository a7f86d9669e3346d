//! Damaged lines are reported one by one, and what is around them is read.

use crate::converted::{comes_back, json, source};
use foldback_transcript::{Conversations, Error, FindingKind, Limits, MessageLines, read_bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The results of an input: `ok` or the error, with the line of each.
fn given(input: impl AsRef<[u8]>, limits: Limits) -> Vec<(u64, String)> {
    let mut read = Conversations::from_reader("a.jsonl", input.as_ref(), limits).unwrap();
    let mut given = Vec::new();
    while let Some(one) = read.next() {
        if let Err(error) = &one {
            assert!(error.is_damage(), "{error}");
        }
        given.push((read.line(), one.map_or_else(|error| error.to_string(), |_| "ok".into())));
    }
    given
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, limits: Limits, expected: &[(u64, &str)]) {
    let given = given(input, limits);
    assert_eq!(given.len(), expected.len(), "{given:?}");
    for ((line, what), (expected_line, expected)) in given.iter().zip(expected) {
        assert!(line == expected_line && what.contains(expected), "{line}: {what}");
    }
}

const GOOD: &str = r#"{"id":"a","messages":[{"role":"user","content":"好"}]}"#;

#[test]
fn every_kind_of_damage_is_one_error_and_reading_goes_on() {
    let deep =
        format!("{{\"id\":\"d\",\"messages\":[],\"x\":{}{}}}", "[".repeat(130), "]".repeat(130));
    let large = format!("{{\"id\":\"{}\",\"messages\":[]}}", "x".repeat(3_000));
    let message = format!(
        "{{\"id\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}",
        "y".repeat(700)
    );
    let mut input = Vec::new();
    for line in [
        GOOD,
        "{\"id\":",
        &deep,
        &large,
        &message,
        "{\"id\":\"e\",\"messages\":[7]}",
        "text",
        "{\"a\":1}",
    ] {
        input.extend(line.as_bytes());
        input.push(b'\n');
    }
    input.extend(b"{\"id\":\"\xff\"}\n");
    input.extend(GOOD.as_bytes());
    let limits = Limits { message_bytes: 500, conversation_bytes: 2_000, ..Limits::default() };
    check(
        &input,
        limits,
        &[
            (1, "ok"),
            (2, "a.jsonl, line 2, column 6: the JSON ends too early"),
            (3, "a.jsonl, line 3: objects and arrays are nested 131 deep"),
            (4, "a.jsonl, line 4: the conversation has over 2000 bytes"),
            (5, "a.jsonl, line 5: message 0 of conversation \"m\" has 728 bytes"),
            (6, "a.jsonl, line 6: message 0 of conversation \"e\" is invalid"),
            (7, "a.jsonl, line 7: The text begins with \"text\""),
            (8, "a.jsonl, line 8: This is an object with the keys \"a\""),
            (9, "a.jsonl, line 9: byte"),
            (10, "ok"),
        ],
    );
}

#[test]
fn damage_at_the_beginning_hides_nothing() {
    // The first line is cut off, so that the text as a whole looks like one JSON value.
    let cut = format!("{}\n{GOOD}\n{GOOD}\n", &GOOD[..30]);
    let d = Limits::default;
    check(&cut, d(), &[(1, "line 1, column"), (2, "ok"), (3, "ok")]);
    check(format!("nonsense\n7\n{GOOD}\n"), d(), &[(1, "nonsense"), (2, "\"7\""), (3, "ok")]);
    let limits = Limits { conversation_bytes: 100, ..d() };
    check(format!("{}\n{GOOD}\n", "x".repeat(1_000)), limits, &[(1, "over 100 bytes"), (2, "ok")]);
    // So do two cut-off lines before a log.
    let log = "{\"type\":\"hum\n{\"data\":\n";
    check(
        format!("{log}{HUMAN}\n{HUMAN}\n"),
        d(),
        &[(1, "line 1, column"), (2, "line 2, column"), (3, "ok")],
    );
    // A cut off value that is not followed by whole lines is one value that was cut off.
    check("{\n\"id\": \"a\",\n\"messages\": [\n", d(), &[(1, "ends too early")]);
    // A file that holds nothing known is refused once.
    check(
        "{\"display\":\"x\",\"timestamp\":1,\"project\":\"p\"}\n".repeat(200),
        d(),
        &[(1, "history of prompts")],
    );
}

const HUMAN: &str = r#"{"type":"human","data":{"content":"问","type":"human"}}"#;

#[test]
fn a_log_is_read_around_its_damaged_lines() {
    let input = format!("{HUMAN}\n{{\"type\":\n{HUMAN}\n\n{{\"v\":NaN}}\n{HUMAN}\n");
    let mut read = read_bytes(input.as_bytes()).unwrap();
    let errors: Vec<_> = [2, 5]
        .map(|line| {
            let error = read.next().unwrap().unwrap_err();
            assert_eq!(read.line(), line);
            error.to_string()
        })
        .into();
    assert!(
        errors[0].contains("line 2, column") && errors[1].contains("NaN is not JSON"),
        "{errors:?}"
    );
    let conversation = read.next().unwrap().unwrap();
    assert_eq!((read.line(), conversation.messages.len()), (1, 3));
    assert_eq!(json(&conversation, 2)["source"]["line"], 6);
    assert_eq!(source(&conversation)["damaged_lines"], serde_json::json!([2, 5]));
    assert!(read.next().is_none());
    comes_back(&conversation);
}

#[test]
fn a_record_that_is_no_message_is_damaged_like_a_line() {
    let bad = r#"{"type":"tool","data":{"content":"x","tool_call_id":7}}"#;
    let input = format!("{HUMAN}\n{bad}\n{HUMAN}\n{bad}\n");
    check(
        &input,
        Limits::default(),
        &[(2, "line 2: a LangChain message: \"tool_call_id\" holds 7"), (4, "line 4"), (1, "ok")],
    );
    let read = read_bytes(input.as_bytes()).unwrap().last().unwrap().unwrap();
    assert_eq!(read.messages.len(), 2);
    assert_eq!(source(&read)["damaged_lines"], serde_json::json!([2, 4]));
    // However many there are, each is an error, and what is good is read.
    let many = format!("{bad}\n").repeat(300);
    let only_bad = given(&many, Limits::default());
    assert_eq!(only_bad.len(), 300);
    assert!(only_bad.iter().all(|one| one.1 != "ok"), "{only_bad:?}");
    let with_good = given(format!("{many}{{\"cut\n{HUMAN}\n{many}"), Limits::default());
    let lines: Vec<_> = with_good.iter().map(|one| one.0).collect();
    let expected: Vec<_> = (1..=301).chain(303..=602).chain([1]).collect();
    assert_eq!(lines, expected, "in the order of the file, then what was read");
    assert_eq!(with_good[601].1, "ok");
}

#[test]
fn the_last_line_of_a_log_may_still_be_written() {
    for tail in
        ["{\"type\":\"hum".as_bytes(), b"{\"type\":\"human\",\"data\":{\"content\":\"\xe9\x97"]
    {
        let input = [format!("{HUMAN}\n{HUMAN}\n").as_bytes(), tail].concat();
        let read: Vec<_> = read_bytes(&input).unwrap().map(Result::unwrap).collect();
        let [read] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(read.messages.len(), 2);
        let unfinished = FindingKind::Unfinished { line: 3 };
        assert!(
            read.check().iter().any(|finding| finding.kind == unfinished),
            "{:?}",
            read.check()
        );
        let kept = source(read)["unfinished"]["text"].as_str().unwrap().to_owned();
        assert!(kept.starts_with("{\"type\":\"hum"), "{kept}");
        comes_back(read);
        // With a line break after it, it is damaged.
        let mut read = read_bytes(&[&input[..], b"\n"].concat())
            .unwrap()
            .map(|one| one.is_ok())
            .collect::<Vec<_>>();
        read.sort_unstable();
        assert_eq!(read, [false, true]);
    }
}

#[test]
fn what_is_kept_raw_can_be_read_again_however_deep_it_is() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let line = |depth: usize| format!("{HUMAN}\n{{\"x\":{}}}\n", deep(depth));
    let most = line(111);
    let read = read_bytes(most.as_bytes()).unwrap().next().unwrap().unwrap();
    comes_back(&read);
    let body = |depth: usize| format!("{{\"system\":\"s\",\"messages\":[],\"x\":{}}}", deep(depth));
    comes_back(&read_bytes(body(111).as_bytes()).unwrap().next().unwrap().unwrap());
    assert!(read_bytes(body(112).as_bytes()).unwrap().next().unwrap().is_err());
    let over = line(112);
    let error = read_bytes(over.as_bytes()).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, Error::TooDeep { depth: 113, limit: 112, .. }), "{error}");
}

#[test]
fn messages_go_on_behind_a_damaged_line_where_that_is_asked_for() {
    let input = b"{\"role\":\"user\",\"content\":\"1\"}\nnot json\n{\"role\":7}\n\n{\"role\":\"user\",\"content\":\"\xff\"}\n{\"role\":\"user\",\"content\":\"2\"}";
    let lines = || MessageLines::from_reader("stdin", &input[..], Limits::default()).unwrap();
    let mut lenient = lines().lenient();
    let mut given = Vec::new();
    while let Some(one) = lenient.next() {
        given.push((lenient.line(), one.map_or_else(|e| e.to_string(), |m| m.text().into_owned())));
    }
    assert_eq!(given.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 2, 3, 5, 6]);
    assert_eq!((given[0].1.as_str(), given[4].1.as_str()), ("1", "2"));
    for (one, word) in given[1..4].iter().zip(["is not a message", "the key \"role\"", "UTF-8"]) {
        assert!(one.1.contains(word) && one.1.contains(&format!("line {}", one.0)), "{one:?}");
    }
    assert_eq!(lines().map(|one| one.is_ok()).collect::<Vec<_>>(), [true, false]);
}

/// A line of that many `'x'`, then a message, and how many bytes of both were read.
struct LongLine {
    left: u64,
    behind: &'static [u8],
    read: Arc<AtomicU64>,
}

impl std::io::Read for LongLine {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        buf[..n].fill(b'x');
        self.left -= n as u64;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        if n > 0 { Ok(n) } else { self.behind.read(buf) }
    }
}

#[test]
fn r5_a_line_longer_than_a_message_is_refused_before_it_is_read() {
    const MOST: u64 = 1_000_000;
    let limits = || Limits { message_bytes: MOST, ..Limits::default() };
    let read = Arc::new(AtomicU64::new(0));
    let behind = b"\n{\"role\":\"user\",\"content\":\"1\"}\n";
    let input = || LongLine { left: 50 * MOST, behind, read: read.clone() };
    let mut strict = MessageLines::from_reader("pipe", input(), limits()).unwrap();
    let error = strict.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::LongLine { place, limit: MOST } if place.line == 1), "{error}");
    assert!(strict.next().is_none());
    let (asked, buffers) = (read.swap(0, Ordering::Relaxed), 1 << 17);
    assert!(asked <= MOST + buffers, "{asked} bytes were read");
    // A lenient reader continues after the line.
    let mut lenient = MessageLines::from_reader("pipe", input(), limits()).unwrap().lenient();
    assert!(lenient.next().unwrap().is_err() && lenient.line() == 1);
    assert!(read.load(Ordering::Relaxed) <= MOST + buffers);
    assert_eq!((lenient.next().unwrap().unwrap().text().as_ref(), lenient.line()), ("1", 2));
    assert!(lenient.next().is_none());
    // One of just the allowed size is a message, with whatever ends its line.
    for end in ["", "\n", "\r\n"] {
        let (begin, close) = ("{\"role\":\"user\",\"content\":\"", "\"}");
        let fill = |n: u64| "y".repeat(usize::try_from(n).unwrap() - begin.len() - close.len());
        for (bytes, fits) in [(MOST, true), (MOST + 1, false)] {
            let line = format!("{begin}{}{close}{end}", fill(bytes));
            let mut read = MessageLines::from_reader("pipe", line.as_bytes(), limits()).unwrap();
            assert_eq!(read.next().unwrap().is_ok(), fits, "{bytes} {end:?}");
        }
    }
}
