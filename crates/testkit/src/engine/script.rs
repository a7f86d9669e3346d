//! A small language for stores, so that a case is a few lines.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a script says so by stopping")]

use foldback_kv::{Batch, Delete, Expect, Key, Kv, Space};
use std::ops::Range;

/// Runs a script and compares the answers, one per line.
///
/// | line | does | answers |
/// |---|---|---|
/// | `expect 7 0->1` | begins a batch with an expectation | nothing |
/// | `put message 7/0 hello` | adds a put to the batch | nothing |
/// | `delete message 7/0..3` | adds a deletion to the batch | nothing |
/// | `commit` | commits the batch | `ok`, or the error |
/// | `get message 7/0` | reads | the value, or `-` |
/// | `scan message 7/0..9 limit 2` | reads | `0=hello 1=you`, or `-` |
/// | `last message 7` | reads | `1=you`, or `-` |
/// | `head 7` | reads | the number |
///
/// # Panics
/// When an answer differs, or the script is not written in the language.
#[track_caller]
pub fn check(kv: &dyn Kv, script: &str, expected: &str) {
    let trim = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(run(kv, &trim(script)), trim(expected), "script:\n{script}");
}

fn run(kv: &dyn Kv, script: &str) -> String {
    let mut batch = Batch::default();
    let mut answers = Vec::new();
    for line in script.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let answer = match verb {
            "expect" => {
                let (todo, move_) = rest.split_once(' ').unwrap();
                let (head, next) = move_.split_once("->").unwrap();
                batch.expect = Some(Expect {
                    todo: todo.parse().unwrap(),
                    head: head.parse().unwrap(),
                    next: next.parse().unwrap(),
                });
                continue;
            }
            "put" => {
                let (space, rest) = rest.split_once(' ').unwrap();
                let (place, value) = rest.split_once(' ').unwrap_or((rest, ""));
                batch.put.push((key(space, place), value.into()));
                continue;
            }
            "delete" => {
                let (space, place) = rest.split_once(' ').unwrap();
                let (todo, range) = span(place);
                batch.delete.push(Delete { space: self::space(space), todo, range });
                continue;
            }
            "commit" => kv.commit(std::mem::take(&mut batch)).map(|()| "ok".to_owned()),
            "get" => {
                let (space, place) = rest.split_once(' ').unwrap();
                kv.get(key(space, place))
                    .map(|value| value.map_or("-".to_owned(), |value| text(&value)))
            }
            "scan" => {
                let (place, limit) = rest.split_once(" limit ").unwrap_or((rest, "1000"));
                let (space, place) = place.split_once(' ').unwrap();
                let (todo, range) = span(place);
                kv.scan(self::space(space), todo, range, limit.parse().unwrap())
                    .map(|found| list(&found))
            }
            "last" => {
                let (space, todo) = rest.split_once(' ').unwrap();
                kv.last(self::space(space), todo.parse().unwrap())
                    .map(|found| list(&found.into_iter().collect::<Vec<_>>()))
            }
            "head" => kv.head(rest.parse().unwrap()).map(|head| head.to_string()),
            other => panic!("{other:?} is not a verb"),
        };
        answers.push(answer.unwrap_or_else(|error| error.to_string()));
    }
    answers.join("\n")
}

fn list(found: &[(u64, Vec<u8>)]) -> String {
    if found.is_empty() {
        return "-".to_owned();
    }
    found.iter().map(|(n, value)| format!("{n}={}", text(value))).collect::<Vec<_>>().join(" ")
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn space(name: &str) -> Space {
    Space::ALL.into_iter().find(|space| space.name() == name).unwrap()
}

fn key(name: &str, place: &str) -> Key {
    let (todo, n) = place.split_once('/').unwrap();
    Key { space: space(name), todo: todo.parse().unwrap(), n: n.parse().unwrap() }
}

fn span(place: &str) -> (u32, Range<u64>) {
    let (todo, range) = place.split_once('/').unwrap();
    let (start, end) = range.split_once("..").unwrap();
    (todo.parse().unwrap(), start.parse().unwrap()..end.parse().unwrap())
}
