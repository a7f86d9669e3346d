//! The costs of small texts, and laws that hold for every text.

use super::*;

#[track_caller]
fn check(text: &str, tokens: usize) {
    assert_eq!(estimate(text), tokens, "{text:?}");
}

#[test]
fn small_texts_cost_what_they_should() {
    check("", 0);
    check(" ", 1);
    check("a", 1);
    check("hello world", 2);
    check("The quick brown fox.", 5);
    check("I don't know", 3);
    check("I don’t know", 4);
    check("1234567", 3);
    check("v 123", 3);
    check("a\n\n\nb", 3);
    check("    indented", 2);
    check("https://x.y", 4);
    check("中文", 2);
    check("👍", 1);
    check("————", 4);
}

#[test]
fn every_text_ends() {
    let odd = [
        "\u{0}",
        "\u{7f}",
        "é",
        "×",
        "a×",
        "aé×b",
        "\u{301}",
        "a\u{301}",
        "'s",
        "a'",
        "a’",
        "a’s",
        "\u{10ffff}",
        " \u{a0}",
        "\t中",
        ".中",
        " 中",
        "\r",
        "\r\n",
        " \n ",
        "ﷺ",
        "𝒜",
        "\u{feff}",
        "Ａ",
        "ǅ",
        "中a中",
        "1中1",
        "a1b2",
        "中\u{0}",
        "‘’",
        "é中é",
        "\u{1f468}\u{200d}\u{1f469}",
    ];
    for one in odd {
        for other in odd {
            for text in [format!("{one}{other}"), format!("{one} {other}"), other.repeat(50)] {
                assert!((1..=text.len() * 4).contains(&estimate(&text)), "{text:?}");
            }
        }
    }
}

#[test]
fn a_text_costs_about_its_parts() {
    let (one, other) = ("fn main() {\n    let x = 42;\n}\n", "他说：“你好，world”。\n");
    let both = estimate(&format!("{one}{other}"));
    assert!(both.abs_diff(estimate(one) + estimate(other)) <= 1);
    assert!(estimate(&one.repeat(100)).abs_diff(estimate(one) * 100) <= 60);
}
