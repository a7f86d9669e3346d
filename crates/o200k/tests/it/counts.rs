//! Known counts, and texts that are made to cause trouble.

use foldback_core::{Message, TokenCounter, message_tokens};
use foldback_o200k::O200k;

#[test]
fn known_texts_have_their_known_counts() {
    // They are fixed by the vocabulary and its pattern, and change only when another is loaded.
    for (text, tokens) in [
        ("", 0),
        ("hello world", 2),
        ("The quick brown fox.", 5),
        ("1234567", 3),
        ("don't", 1),
        ("中中中中", 4),
        ("        ", 1),
        ("\n\n", 1),
        ("👍", 1),
    ] {
        assert_eq!(O200k.count(text), tokens, "{text:?}");
    }
}

#[test]
fn special_tokens_are_text() {
    assert!(O200k.count("<|endoftext|>") > 1);
    assert!(O200k.count("<|endofprompt|>") > 1);
}

#[test]
fn long_runs_are_counted_and_do_not_panic() {
    for (part, times) in [
        (" ", 3_000_000),
        ("\t", 1_500_000),
        ("\u{a0}", 1_500_000),
        (" \t\u{3000}", 600_000),
        ("\n", 200_000),
        ("\r\n ", 300_000),
        ("a", 200_000),
        ("中", 100_000),
        ("=", 200_000),
        ("7", 200_000),
        ("\u{fffd}", 100_000),
    ] {
        let text = part.repeat(times);
        let alone = O200k.count(&text);
        assert!(alone > 0, "{part:?}");
        // The text around a run is still counted.
        let around = O200k.count(&format!("one two{text}three four"));
        assert!((3..=8).contains(&(around - alone)), "{part:?}: {alone} and {around}");
    }
}

#[test]
fn a_run_in_parts_counts_nearly_as_it_does_whole() {
    // Just below and just above the length from which it is counted in parts.
    let whole = O200k.count(&format!("{}x", " ".repeat(50_000)));
    let parts = O200k.count(&format!("{}x", " ".repeat(50_001)));
    assert!(whole.abs_diff(parts) <= 2, "{whole} and {parts}");
}

#[test]
fn messages_count_their_texts_calls_and_frame() {
    #[track_caller]
    fn check(json: &str, tokens: usize) {
        assert_eq!(message_tokens(&O200k, &Message::from_json(json).unwrap()), tokens, "{json}");
    }
    check(r#"{"role":"user"}"#, 4);
    check(r#"{"role":"user","content":"hello world"}"#, 6);
    check(
        r#"{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":" world"}]}"#,
        6,
    );
    check(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"hello","arguments":"1234567"}}]}"#,
        8,
    );
    let image = format!(
        r#"{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{}"}}}}]}}"#,
        "A".repeat(100_000)
    );
    check(&image, 769);
    check(r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":""}}]}"#, 16);
}
