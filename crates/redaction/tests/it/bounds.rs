//! For any text, places are whole and in order, and the work is in proportion to its length.

use crate::samples::Letters;
use foldback_redaction::{find, has_marks, plain};
use proptest::prelude::*;

/// The places that are found are whole, in order, and inside strings.
#[track_caller]
fn check_places(text: &str) {
    let mut at = 0;
    for one in find(text) {
        assert!(one.range.start >= at && one.range.end > one.range.start, "{:?}", one.range);
        let found = text.get(one.range.clone());
        assert!(found.is_some_and(|found| !found.contains('"')), "{found:?}");
        at = one.range.end;
    }
}

proptest! {
    #[test]
    fn s8_places_are_whole_and_in_order(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("password=".to_owned()), Just("\\".to_owned()), Just("\"".to_owned()),
                Just("://a:b7xQ9@".to_owned()), Just("-----BEGIN RSA PRIVATE KEY-----".to_owned()),
                Just("中".to_owned()), Just("\\u4e2".to_owned()), Just("\\ud83d\\ude00".to_owned()),
                "[A-Za-z0-9+/=_-]{1,40}", "\\PC{0,6}",
            ],
            0..24,
        )
    ) {
        check_places(&parts.concat());
    }

    #[test]
    fn s8_json_stays_json(text in "\\PC{0,40}", secret in "[A-Za-z0-9]{36}") {
        let said = format!("{text} ghp_{secret} {text}");
        let json = said.replace('\\', "\\\\").replace('"', "\\\"");
        let redacted = plain(&json);
        prop_assert!(has_marks(&redacted) || !secret.bytes().any(|b| b.is_ascii_digit()));
        prop_assert!(!redacted.contains(&secret) || !has_marks(&redacted));
    }
}

/// A text that is one beginning of a secret after the other costs no more than its length. `finding.rs` counts the work;
/// with work that grew with the square of the length, this would take hours.
#[test]
fn s8_hostile_texts_end() {
    for part in [
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJ",
        "://a:",
        "password",
        "password=",
        "Bearer ",
        "\\\\",
        "xoxb-1-",
        "b3BlbnNzaC1rZXktdjE",
        "sk-",
        "login a password ",
        "\\u",
        "AKIA",
        "token: ",
        "sk-proj-",
        "eyJ-",
        "pypi-AgEI-",
        "_authToken=",
        "b3BlbnNzaC1rZXktdjE\n",
        "\nAb: -----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\n> 中",
    ] {
        check_places(&part.repeat(1_000_000 / part.len()));
    }
}

/// A text with many short beginnings leaves patience for a long secret.
#[test]
fn s8_many_beginnings_do_not_hide_a_long_token() {
    let letters = &mut Letters::new(950);
    let token = letters.fill("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI<62:6000>.<62:43>");
    for row in ["\"c\":\"eyJpZCI6MTAwfQ==\",", "\"游标\":\"eyJpZCI6MTAwfQ==\"，"] {
        let listing = row.repeat(4_000);
        let text = format!("{listing}\"t\":\"{token}\"");
        let left = plain(&text);
        assert_eq!(left, format!("{listing}\"t\":\"[redacted jwt]\""));
    }
}
