//! A private key is found whatever is shown around its lines.

use crate::samples::Letters;
use foldback_redaction::{find, plain};

/// Each writes a line of a key, with its number from 1 on.
type Show = fn(usize, &str) -> String;

const SHOWS: [(&str, Show); 18] = [
    ("a viewer's numbers", |n, line| format!("{n:6}→{line}\n")),
    ("numbers and a bar", |n, line| format!("{n:4} │ {line}\n")),
    ("numbers and a tab", |n, line| format!("{n:6}\t{line}\n")),
    ("lines that were added", |_, line| format!("+{line}\n")),
    ("lines that were removed", |_, line| format!("-{line}\n")),
    ("lines that stayed", |_, line| format!(" {line}\n")),
    ("a quotation", |_, line| format!("> {line}\n")),
    ("a quotation of a quotation", |_, line| format!("> > 引用 {line}\r\n")),
    ("grep -n", |n, line| format!("{n}:{line}\n")),
    ("grep -n with a file, around a hit", |n, line| format!("conf/钥匙.pem-{n}-{line}\n")),
    ("grep -n with a long path", |n, line| {
        format!("/Users/ann2/Documents/WorkProjects2024/secrets/deploy.pem-{n}-{line}\n")
    }),
    ("Docker's log", |n, line| {
        format!(
            "{{\"log\":\"{line}\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-26T13:39:{n:02}.123Z\"}}\n"
        )
    }),
    ("a log", |n, line| format!("2026-11-26T13:39:{n:02}.123456789Z stdout F {line}\n")),
    ("who wrote it", |n, line| {
        format!("^a1b2c3d (Ann Lee 2026-11-26 13:39:10 +0000 {n}) {line}\n")
    }),
    ("JavaScript", |_, line| format!("  \"{line}\\n\" +\n")),
    ("JavaScript, other quotes", |_, line| format!("  '{line}\\n' +\n")),
    ("C", |_, line| format!("    \"{line}\\r\\n\"\n")),
    ("an array", |_, line| format!("\"{line}\", ")),
];

const NAMES: [(&str, &str); 3] = [
    ("private-key", "RSA PRIVATE KEY"),
    ("ssh-private-key", "OPENSSH PRIVATE KEY"),
    ("pgp-private-key", "PGP PRIVATE KEY BLOCK"),
];

fn key(letters: &mut Letters, name: &str) -> Vec<String> {
    let mut lines = vec![format!("-----BEGIN {name}-----")];
    lines.extend((0..12).map(|_| letters.of("64", 64)));
    lines.push(letters.of("64", 20) + "Qw==");
    if name.starts_with("PGP") {
        lines.push("=Qw3x".to_owned());
    }
    lines.push(format!("-----END {name}-----"));
    lines
}

/// Nothing of a key is left, and what is around it is as well formed as before.
#[track_caller]
fn check(text: &str, lines: &[String], kind: &str, what: &str) {
    let (found, left) = (find(text), plain(text));
    assert!(found.iter().all(|one| one.kind == kind), "{what}: {found:?}");
    for line in lines.iter().filter(|line| !line.starts_with('-')) {
        assert!(!left.contains(line.get(2..).unwrap_or(line)), "{what}: {line} in {left}");
    }
    for (at, _) in left.match_indices("[redacted ") {
        let slashes = left[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        assert!(slashes % 2 == 0, "{what}: {left}");
    }
    assert!(found.iter().all(|one| !text[one.range.clone()].contains('"')), "{what}: {found:?}");
}

#[test]
fn s8_keys_are_found_whatever_is_around_their_lines() {
    for (n, (what, show)) in SHOWS.into_iter().enumerate() {
        for (kind, name) in NAMES {
            let lines = key(&mut Letters::new(900 + n as u64), name);
            let shown = |lines: &[String]| -> String {
                lines.iter().enumerate().map(|(n, line)| show(n + 1, line)).collect()
            };
            // As a whole, and cut behind some lines.
            for end in [lines.len(), 5] {
                let mut text = format!("看这个：\n{}\n以上。", shown(&lines[..end]));
                for level in 0..3 {
                    check(
                        &text,
                        &lines[..end],
                        kind,
                        &format!("{what}, {end} lines, level {level}"),
                    );
                    let inner = text.replace('\\', "\\\\").replace('"', "\\\"");
                    let inner =
                        inner.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
                    text = format!("{{\"x\":\"{inner}\"}}");
                }
            }
        }
    }
}

/// A log in JSON keeps its own names and values.
#[test]
fn s8_a_key_in_a_log_leaves_the_log() {
    let letters = &mut Letters::new(940);
    let lines = key(letters, "RSA PRIVATE KEY");
    let path = "/Users/ann2/Documents/WorkProjects2024/secrets/deploy.pem";
    let line = |line| {
        format!(
            "{{\"log\":\"{line}\\n\",\"stream\":\"stdout\",\"file\":\"{path}\",\"time\":\"日\"}}\n"
        )
    };
    for end in [lines.len(), 5] {
        let text: String = lines[..end].iter().map(line).collect();
        for text in [text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"), text] {
            check(&text, &lines[..end], "private-key", "a log");
            let left = plain(&text);
            for kept in ["log", "stream", "stdout", "file", path, "time", "日"] {
                assert_eq!(left.matches(kept).count(), end, "{kept} in {left}");
            }
        }
    }
}

/// A key that is cut ends with its lines, not with whatever looks like one.
#[test]
fn s8_a_cut_key_leaves_what_follows() {
    let letters = &mut Letters::new(941);
    let mut key: Vec<_> = (0..4).map(|_| letters.of("64", 70)).collect();
    let sums: Vec<_> = (0..4).map(|_| letters.of("64", 43) + "=").collect();
    let sum = |sum: &String| format!("golang.org/x/net v0.12.0 h1:{sum}\n");
    let below: String = sums.iter().map(sum).collect();
    // The last line may be cut, too.
    for last in [70, 40] {
        key.push(letters.of("64", last));
        let [bare, added] = ["", "+"].map(|before| {
            let line = |line: &String| format!("{before}{line}\n");
            key.iter().map(line).collect::<String>()
        });
        for shown in [bare, added] {
            let text = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{shown}{below}完。");
            let left = plain(&text);
            assert!(key.iter().all(|line| !left.contains(&line[2..])), "{left}");
            assert!(sums.iter().all(|sum| left.contains(&format!("h1:{sum}"))), "{left}");
        }
        key.pop();
    }
}

/// What mentions a key is none, and neither is what follows it.
#[test]
fn s8_keys_that_are_only_mentioned_stay() {
    let hash = "sha512-Kx7Q2mzP9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV3wX4yZ5aB6cD7eF8gH9iJ0kL1mN2oP3qR4sT5uV6wX7yZ==";
    let mention = "if text.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") {";
    let path = "./projects2/Keys/a/b/c/tests/data/Private/deep/er/x";
    let padded = "A".repeat(48) + "RWif4GSoh1xzo7+hi5oZ";
    for text in [
        format!("{mention}\n{padded}\n{padded}\n"),
        format!("{mention}\n  \"integrity\": \"{hash}\""),
        format!("src/a.rs:3:{mention}\n{path}.rs:3:{mention}\n{path}.rs:9:{mention}"),
        format!(
            "{mention}\n  begins = true;\n}} else if text.ends_with(\"-----END RSA PRIVATE KEY-----\") {{"
        ),
        "-----BEGIN RSA PRIVATE KEY-----\n     2→...\n-----END RSA PRIVATE KEY-----".to_owned(),
    ] {
        assert_eq!(find(&text), [], "{text}");
    }
}
