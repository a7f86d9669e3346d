//! The parts of a long text.

use foldback_core::Embedder;
use foldback_embedder::{StaticEmbedder, WINDOW_BYTES, windows};
use proptest::prelude::*;

#[test]
fn a_short_text_is_one_window_and_an_empty_one_none() {
    assert_eq!(windows("one line").collect::<Vec<_>>(), ["one line"]);
    assert_eq!(windows("").count(), 0);
    assert_eq!(windows(" \n").collect::<Vec<_>>(), [" \n"]);
    let exact = "x".repeat(WINDOW_BYTES);
    assert_eq!(windows(&exact).count(), 1);
}

#[test]
fn a_window_ends_at_a_line_else_at_a_space_else_at_a_cjk_character() {
    let lines = "forty characters of text on every line.\n".repeat(100);
    assert!(windows(&lines).all(|window| window.ends_with('\n')));
    let words = "word ".repeat(1000);
    assert!(windows(&words).all(|window| window.ends_with(' ')));
    let latin_between = format!("{}{}", "订单已发货。".repeat(50), "abcdefgh".repeat(20)).repeat(4);
    assert!(
        windows(&latin_between).take(3).all(|w| w.ends_with(['订', '单', '已', '发', '货', '。']))
    );
    let blob = "QUJD".repeat(1000);
    assert_eq!(windows(&blob).map(str::len).max(), Some(WINDOW_BYTES));
    let emoji = "😀".repeat(1000);
    assert_eq!(windows(&emoji).collect::<String>(), emoji);
}

#[test]
fn of_a_text_with_too_many_windows_the_beginning_and_the_end_are_kept() {
    let text: String = (0..10_000).map(|line| format!("line number {line} of the log\n")).collect();
    let embedder = StaticEmbedder::new();
    let kept = embedder.windows(&text, 8);
    assert_eq!(kept.len(), 8);
    assert!(kept[0].starts_with("line number 0 "));
    assert!(kept[7].ends_with("line number 9999 of the log\n"));
    assert!(kept[3].contains("line number 65 ") && kept[4].contains("line number 9950 "));
    assert!(embedder.windows(&text, 0).is_empty());
    assert_eq!(embedder.windows(&text, 1), [windows(&text).next().unwrap()]);
}

proptest! {
    #[test]
    fn windows_joined_are_the_text(
        parts in prop::collection::vec(("[a-z \n]{0,300}|[订单货。]{0,300}|[é😀]{0,200}|\\PC{0,100}", 1..8usize), 0..8)
    ) {
        let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
        let found: Vec<&str> = windows(&text).collect();
        prop_assert_eq!(found.concat(), text.as_str());
        prop_assert!(found.iter().all(|w| !w.is_empty() && w.len() <= WINDOW_BYTES));
        // None is needlessly short but the last.
        if let Some((_, whole)) = found.split_last() {
            prop_assert!(whole.iter().all(|w| w.len() > WINDOW_BYTES / 2 - 4));
        }
    }

    #[test]
    fn a_limit_is_kept_and_windows_are_in_order(
        text in "([a-z]{1,12} |[订单货。]{1,30}){0,900}",
        limit in 0..12usize,
    ) {
        let kept = StaticEmbedder::new().windows(&text, limit);
        let all = windows(&text).count();
        prop_assert!(kept.len() <= limit);
        prop_assert!(kept.len() == limit.min(all), "{} of {} with limit {}", kept.len(), all, limit);
        let mut after = 0;
        for window in kept {
            let at = window.as_ptr() as usize - text.as_ptr() as usize;
            prop_assert!(at >= after);
            after = at + window.len();
        }
        prop_assert!(limit == 0 || after == text.len() || limit == 1);
    }
}
