//! What is kept of an output.

use foldback_sandbox::Captured;

#[test]
fn a_short_output_is_kept_whole() {
    let mut captured = Captured::new(64);
    captured.push("第一行\n".as_bytes());
    captured.push(b"");
    captured.push(&[0xFF, b'x']);
    assert_eq!((captured.text().as_str(), captured.omitted()), ("第一行\n\u{FFFD}x", 0));
}

#[test]
fn of_a_long_output_both_ends_are_kept_in_any_pieces() {
    let all: Vec<u8> = (0..200).collect();
    for piece in 1..=200 {
        let mut captured = Captured::new(25);
        all.chunks(piece).for_each(|bytes| captured.push(bytes));
        let kept: Vec<u8> = (0..13).chain(188..200).collect();
        assert_eq!((captured.bytes(), captured.omitted()), (kept, 175), "{piece}");
    }
}

/// Characters of one to four bytes: none is cut, and the reported number of omitted bytes is correct.
#[test]
fn no_character_is_cut_where_something_is_left_out() {
    let all = "aé語🙂".repeat(20);
    for most in 0..all.len() {
        let mut captured = Captured::new(most);
        captured.push(all.as_bytes());
        let text = captured.text();
        assert!(!text.contains('\u{FFFD}'), "{most}: {text}");
        let (head, rest) = text.split_once("\n[... ").unwrap();
        let (omitted, tail) = rest.split_once(" bytes left out ...]\n").unwrap();
        assert!(all.starts_with(head) && all.ends_with(tail), "{most}: {text}");
        let omitted: usize = omitted.parse().unwrap();
        assert_eq!(head.len() + omitted + tail.len(), all.len(), "{most}");
        assert!(head.len() + tail.len() <= most);
    }
}
