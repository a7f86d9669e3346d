//! The places and targets of links in a text.

use crate::source::source;
use foldback_deep_search::{
    Citation, Grounding, Link, Summary, insert_citations, label, link_safe,
};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

fn link(label: &str, url: &str) -> Link {
    Link { label: label.to_owned(), url: url.to_owned() }
}

fn cite(
    start: impl Into<Option<usize>>,
    end: impl Into<Option<usize>>,
    links: &[(&str, &str)],
) -> Citation {
    let links = links.iter().map(|(label, url)| link(label, url)).collect();
    Citation { start: start.into(), end: end.into(), links }
}

/// DS9: the original's result for English text, byte for byte.
#[test]
fn ds9_insertion_is_that_of_the_original() {
    let text = "The sky is blue. Grass is green.";
    let first = cite(0, 16, &[("a", "https://id/0-0")]);
    let both = cite(17, 32, &[("b", "https://id/0-1"), ("a", "https://id/0-0")]);
    assert_eq!(
        insert_citations(text, &[first, both]),
        "The sky is blue. [a](https://id/0-0) Grass is green. [b](https://id/0-1) [a](https://id/0-0)"
    );
    let unordered =
        [cite(17, 32, &[("b", "u1")]), cite(0, 32, &[("c", "u2")]), cite(0, 16, &[("a", "u0")])];
    assert_eq!(
        insert_citations(text, &unordered),
        "The sky is blue. [a](u0) Grass is green. [c](u2) [b](u1)"
    );
    assert_eq!(
        insert_citations("abc", &[cite(0, 3, &[]), cite(0, 3, &[("x", "u")])]),
        "abc [x](u)"
    );
    assert_eq!(insert_citations("abc", &[cite(0, 99, &[("x", "u")])]), "abc [x](u)");
    // A missing start is 0; without an end there is no place.
    assert_eq!(insert_citations("abc", &[cite(None, 3, &[("x", "u")])]), "abc [x](u)");
    assert_eq!(insert_citations("abc", &[cite(0, None, &[("x", "u")])]), "abc");
    // B11: no citations at all are none; the original fails.
    assert_eq!(insert_citations("abc", &[]), "abc");
    assert_eq!(insert_citations("", &[cite(None, 0, &[("x", "u")])]), " [x](u)");
}

/// DS9, B11: offsets are bytes. The original takes them for characters and sets both links of this text
/// at its end: `天空是蓝色的。草是绿的。 [b](u1) [a](u0)`.
#[test]
fn ds9_b11_offsets_are_bytes() {
    let text = "天空是蓝色的。草是绿的。";
    let citations = [cite(0, 21, &[("a", "u0")]), cite(21, 36, &[("b", "u1")])];
    assert_eq!(insert_citations(text, &citations), "天空是蓝色的。 [a](u0)草是绿的。 [b](u1)");
}

/// DS9: never inside a character, a link or a mark.
#[test]
fn ds9_nothing_is_split() {
    #[track_caller]
    fn check(text: &str, end: usize, expected: &str) {
        assert_eq!(insert_citations(text, &[cite(0, end, &[("x", "u")])]), expected);
    }
    check("天空", 1, "天 [x](u)空");
    check("天空", 2, "天 [x](u)空");
    check("天空", 3, "天 [x](u)空");
    check("e\u{301}a", 1, "e\u{301} [x](u)a");
    check("👩‍👩‍👧!", 4, "👩‍👩‍👧 [x](u)!");
    check("🇨🇳!", 4, "🇨🇳 [x](u)!");
    let linked = "见 [潮汐 [1]](https://a/b_(c)) 。";
    for end in linked.find('[').unwrap() + 1..linked.find(" 。").unwrap() {
        check(linked, end, "见 [潮汐 [1]](https://a/b_(c)) [x](u) 。");
    }
    let marked = "a [citation:12] b";
    for end in 3..15 {
        check(marked, end, "a [citation:12] [x](u) b");
    }
    check("a[i] (b)", 2, "a[ [x](u)i] (b)");
}

proptest! {
    /// DS9: whatever the offsets are, the text without the links is the original, and each link is
    /// between two characters.
    #[test]
    fn ds9_the_text_stays(
        text in "([a-z .。天é]|e\u{301}|👩‍👩‍👧|\\[天\\]\\(u\\)|\\[citation:1\\]|\\[|\\(){0,40}",
        ends in proptest::collection::vec((proptest::option::of(0usize..200), proptest::option::of(0usize..200)), 0..8),
    ) {
        let citations: Vec<Citation> = ends.iter().enumerate()
            .map(|(at, (start, end))| cite(*start, *end, &[("w", &format!("https://x/{at}"))]))
            .collect();
        let cited = insert_citations(&text, &citations);
        let mut plain = cited.clone();
        for (at, citation) in citations.iter().enumerate() {
            let marker = format!(" [w](https://x/{at})");
            prop_assert_eq!(cited.matches(&marker).count(), usize::from(citation.end.is_some()));
            plain = plain.replace(&marker, "");
        }
        prop_assert_eq!(&plain, &text);
        let mut rest = cited.as_str();
        let mut at = 0;
        while let Some(found) = rest.find(" [w](https://x/") {
            at += found;
            prop_assert!(text.grapheme_indices(true).any(|(start, _)| start == at) || at == text.len());
            let behind = rest[found..].find(')').unwrap() + found + 1;
            rest = &rest[behind..];
        }
    }
}

/// B11: a title without a dot keeps its citation; the original drops it.
#[test]
fn b11_labels() {
    let labels = [
        "apnews.com",
        "潮汐表",
        "lease.tar.gz",
        "Version 2.0 of the plan",
        ".env",
        "",
        " [x](y) <b> ",
    ];
    let made: Vec<String> = labels.iter().map(|title| label(title)).collect();
    assert_eq!(
        made,
        ["apnews", "潮汐表", "lease", "Version 2.0 of the plan", ".env", "source", "x y b"]
    );
    assert_eq!(label("a\nb\u{202e}c"), "a b c");
    let long = label(&"潮👩‍👩‍👧".repeat(100));
    assert!(long.chars().count() <= 61 && long.ends_with('…'), "{long}");
    assert!(long.trim_end_matches('…').graphemes(true).all(|c| c == "潮" || c == "👩‍👩‍👧"));
}

/// DS9: citations are given in bytes of the summary, and links follow it.
#[test]
fn ds9_grounding_is_bytes_of_the_summary() {
    let text = "租约每十秒续期。过期后重试。";
    let end = text.find("过").unwrap();
    let summary = Summary {
        text: text.to_owned(),
        sources: vec![source("https://h/id/1-2", "lease.md#bytes=0-10")],
        grounding: vec![Grounding { segment: 0..end, source: 0 }],
        invented: vec![],
    };
    assert_eq!(summary.with_links(), "租约每十秒续期。 [a](https://h/id/1-2)过期后重试。");
    let json = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
}

/// DS9: only links to pages and to documents work; any other scheme is disabled.
#[test]
fn ds9_links_run_nothing() {
    for (url, safe) in [
        ("javascript:alert(1)", "javascript%3Aalert(1)"),
        ("JavaScript:alert(1)//x.md", "JavaScript%3Aalert(1)//x.md"),
        ("data:text/html,潮", "data%3Atext/html,潮"),
        ("javascript&colon;alert(1)", "javascript%26colon;alert(1)"),
        ("file:///etc/passwd", "file%3A///etc/passwd"),
        ("HTTPS://a/b:c?d=e:f&g=h", "HTTPS://a/b:c?d=e:f&g=h"),
        ("docs/a.md#bytes=0-9", "docs/a.md#bytes=0-9"),
    ] {
        assert_eq!(link_safe(url), safe);
    }
}
