//! A text with the shape of a secret is found, wherever it is.

use crate::samples::{Letters, samples};
use foldback_redaction::{find, kinds, plain};
use std::collections::BTreeSet;

/// How often each shape is tried.
const EACH: u64 = 25;

/// Sentences around a secret.
const AROUND: [(&str, &str); 4] = [
    ("", ""),
    ("I put it into the file.\n", "\nPlease do not commit it."),
    ("配置如下：\n", "\n以上是全部内容。"),
    ("2026-11-26T13:39:10Z INFO loading config\n", "\nDone in 12 ms"),
];

/// Whether a secret in this text is found whole.
fn is_found(text: &str, secret: &str, kind: &str) -> bool {
    find(text).iter().any(|one| one.secret.contains(secret.trim()) && one.kind == kind)
}

#[test]
fn s8_recall_over_every_shape() {
    let (mut missed, mut all) = (Vec::new(), 0);
    for (n, (kind, before, secret, behind)) in samples().into_iter().enumerate() {
        for round in 0..EACH {
            let mut letters = Letters::new(n as u64 * EACH + round);
            let (before, secret, behind) =
                (letters.fill(&before), letters.fill(&secret), letters.fill(&behind));
            let (above, below) = AROUND[(round % 4) as usize];
            let text = format!("{above}{before}{secret}{behind}{below}");
            all += 1;
            if !is_found(&text, &secret, kind) {
                missed.push(format!("{kind}: {before}{secret} -> {:?}", find(&text)));
            }
        }
    }
    let share = 100.0 * (1.0 - missed.len() as f64 / f64::from(all));
    println!("{share:.2} % of {all} found; {} kinds", kinds().count());
    assert!(all >= 1_000 && missed.len() * 20 <= all as usize, "{missed:#?}");
}

/// Every kind in the tables is tried.
#[test]
fn s8_each_kind_has_a_sample() {
    let tried: BTreeSet<_> = samples().into_iter().map(|(kind, ..)| kind).collect();
    let untried: Vec<_> = kinds().filter(|kind| !tried.contains(kind)).collect();
    // `auth` in Docker's file is a name and a password in base64: see below.
    assert_eq!(untried, ["docker-auth"]);
}

/// The same secrets in JSON, in the arguments of a call in JSON, and in JSON within those; with the escapes of several
/// writers.
#[test]
fn s8_escaped_secrets_are_found() {
    let (mut missed, mut all) = (Vec::new(), 0);
    for (n, (kind, before, secret, behind)) in samples().into_iter().enumerate() {
        let mut letters = Letters::new(7_000 + n as u64);
        let (before, secret, behind) =
            (letters.fill(&before), letters.fill(&secret), letters.fill(&behind));
        let mut text = format!("看 {before}{secret}{behind}");
        for level in 1..=3 {
            for escape in [minimal, ascii, with_slashes] {
                let escaped = format!("{{\"x\":\"{}\"}}", escape(&text));
                all += 1;
                if !is_found(&escaped, &secret, kind) {
                    missed.push(format!("{kind}, {level}: {escaped} -> {:?}", find(&escaped)));
                }
            }
            text = format!("{{\"x\":\"{}\"}}", minimal(&text));
        }
    }
    println!("{} of {all} missed", missed.len());
    assert!(missed.len() * 20 <= all, "{missed:#?}");
}

fn minimal(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r")
}

fn ascii(text: &str) -> String {
    let units =
        |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect();
    let c = |c: char| if c.is_ascii() && c != '=' && c != '7' { c.to_string() } else { units(c) };
    minimal(text).chars().map(c).collect()
}

fn with_slashes(text: &str) -> String {
    minimal(text).replace('/', "\\/")
}

/// Places are whole: the rest of an escaped text is as well formed as before, and holds nothing of the secret.
#[test]
fn s8_what_is_cut_leaves_no_part_of_an_escape() {
    let text = r#"{"a":"password=Kx7\u0021mQ2zP9\"b","k":"-----BEGIN RSA PRIVATE KEY-----\nQUJDREVGR0g=\n-----END RSA PRIVATE KEY-----\n"}"#;
    let found = find(text);
    let cut: Vec<_> = found.iter().map(|one| &text[one.range.clone()]).collect();
    assert_eq!(cut.len(), 2, "{found:?}");
    assert_eq!(cut[0], r"Kx7\u0021mQ2zP9");
    assert!(cut[1].ends_with("-----END RSA PRIVATE KEY-----"));
}

#[test]
fn s8_names_and_passwords_in_base64_are_found() {
    let text = r#"{"auths": {"ghcr.io": {"auth": "Ym90Omt4N21RMnpQOXM="}}}"#;
    assert!(is_found(text, "Ym90Omt4N21RMnpQOXM=", "docker-auth"));
    let text = "Authorization: Basic Ym90Omt4N21RMnpQOXM=\r\n";
    assert!(is_found(text, "Ym90Omt4N21RMnpQOXM=", "basic-auth"));
    assert_eq!(find("Basic authentication is off, Basic knowledge12 helps"), []);
}

#[test]
fn s8_passwords_in_addresses_are_replaced_whole() {
    let mark = "[redacted url-password]";
    for (before, secret, behind) in [
        ("postgres://app:", "Xy7@pQ92kLm", "@db:5432/main"),
        ("mysql://root:", "p@ssW0rd!9", "@db/x"),
        ("看 postgres://app:", "ab/Cd9+xQ2=", "@db/x。"),
        ("postgres://app:", "ab/Cd9@xQ2=", "@db/x"),
        ("postgres://admin:", "MySecret123", "@prod-db/x"),
        ("amqp://a:", "b7xQ9@k2", "@h1,amqp://10.0.0.1:5672/@me"),
        ("https://a:", "b7xQ9k2", "@h/x?mail=me@example.com"),
    ] {
        let text = format!("{before}{secret}{behind}");
        assert_eq!(plain(&text), format!("{before}{mark}{behind}"));
    }
    // What follows a `/` behind an `@` could be a path.
    let left = format!("postgres://app:{mark}@w0rd/x9@db");
    assert_eq!(plain("postgres://app:Xy7q@w0rd/x9@db"), left);
    assert_eq!(find("postgres://app:abCd/xQ@db"), []);
    let two = "redis://a:b7xQ9k2@h1,redis://c:d8yR0m3@h2 redis://e:f9zS1n4@h3";
    let left = "redis://a:M@h1,redis://c:M@h2 redis://e:M@h3".replace('M', mark);
    assert_eq!(plain(two), left);
    for text in [
        "https://medium.com/@user1 http://localhost:3000/@vite/client2",
        "git@host:path1/@x and npm i pkg@1.2/@scope",
        "postgres://u:changeme1@db/x postgres://u:YourPassword1@db/x postgres://u:db_secret_1@db/x",
    ] {
        assert_eq!(find(text), []);
    }
}
