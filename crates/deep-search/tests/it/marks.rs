//! Marks that a model sets while it writes, and quotes that a second pass finds.

use foldback_deep_search::{
    Citation, CitationList, Link, Marks, QuotedCitation, insert_citations, locate,
};
use proptest::prelude::*;

fn link(label: &str, url: &str) -> Link {
    Link { label: label.to_owned(), url: url.to_owned() }
}

/// DS12: marks are taken out, and belong to the sentence before them.
#[test]
fn ds12_marks_are_taken_out() {
    #[track_caller]
    fn check(text: &str, plain: &str, cited: &[(&str, &[usize])]) {
        let marked = Marks::default().take_out(text);
        assert_eq!(marked.text, plain);
        let found: Vec<(&str, &[usize])> = marked
            .marks
            .iter()
            .map(|mark| (&marked.text[mark.start..mark.end], mark.numbers.as_slice()))
            .collect();
        assert_eq!(found, cited);
    }
    check(
        "Blue [citation:1]. Green.[citation:2]",
        "Blue. Green.",
        &[("Blue", &[1]), ("Green.", &[2])],
    );
    check(
        "天是蓝的[citation:1]。草是绿的。[citation:2,3]",
        "天是蓝的。草是绿的。",
        &[("天是蓝的", &[1]), ("草是绿的。", &[2, 3])],
    );
    check(
        "3.14 is pi.\nNo. Yes 【citation：1、citation：2】!",
        "3.14 is pi.\nNo. Yes!",
        &[("Yes", &[1, 2])],
    );
    check("a[citation:1][citation:2] b", "a b", &[("a", &[1]), ("a", &[2])]);
    check("[citation:1]", "", &[("", &[1])]);
    check(
        "[citation] [cite:1] citation:1 [citation:1\n]",
        "[citation] [cite:1] citation:1 [citation:1\n]",
        &[],
    );
    let odd = Marks::default().take_out("x [citation:first] y [citation:]");
    assert_eq!((odd.text.as_str(), odd.marks.len()), ("x y", 0));
    assert_eq!(odd.unreadable, ["[citation:first]", "[citation:]"]);
}

/// DS12: if a text that the model reads has marks of its own, the model's are different.
#[test]
fn ds12_marks_avoid_what_sources_say() {
    assert_eq!(Marks::avoiding(["潮汐", "an index of citations"]).mark(2), "[citation:2]");
    let hostile = ["see [citation:1] and [citation-0:1]", "潮汐"];
    let marks = Marks::avoiding(hostile);
    assert!(marks.mark(1).starts_with("[citation-") && marks.mark(1) != "[citation-0:1]");
    assert_eq!(marks, Marks::avoiding(hostile));
    let text = format!("It says [citation:1].{}", marks.mark(3));
    let marked = marks.take_out(&text);
    assert_eq!((marked.text.as_str(), marked.marks.len()), ("It says [citation:1].", 1));
}

fn quoted(quote: &str, sources: &[usize]) -> QuotedCitation {
    QuotedCitation { quote: quote.to_owned(), sources: sources.to_vec() }
}

/// DS12: in the second pass, quotes are found in the order of the draft; one that is not there is reported.
#[test]
fn ds12_quotes_are_found_in_the_draft() {
    let draft = "潮差三米。然后涨潮。潮差三米。End.";
    let list = CitationList {
        citations: vec![
            quoted("然后涨潮。", &[1]),
            quoted("潮差三米。", &[2]),
            quoted("never written", &[1]),
            quoted(" 潮差三米。然后 ", &[3]),
            quoted("", &[1]),
        ],
    };
    let located = locate(draft, &list);
    let found: Vec<(usize, &[usize])> =
        located.stretches.iter().map(|(stretch, s)| (stretch.end, s.as_slice())).collect();
    assert_eq!(found, [(30, &[1][..]), (45, &[2]), (21, &[3])]);
    assert_eq!(located.missing, ["never written", ""]);
}

proptest! {
    /// DS12: whatever is cited afterwards, the text without its links is the draft, byte for byte.
    #[test]
    fn ds12_the_draft_stays(
        draft in "([a-z天。. é]|e\u{301}|👩‍👩‍👧|\\[a\\]\\(b\\)){1,60}",
        picks in proptest::collection::vec((0usize..400, 0usize..400, 1usize..4), 0..6),
    ) {
        let citations = picks.iter().map(|(from, to, number)| {
            let (from, to) = (draft.floor_char_boundary(*from.min(to)), draft.floor_char_boundary(*from.max(to)));
            quoted(&draft[from..to], &[*number])
        });
        let located = locate(&draft, &CitationList { citations: citations.collect() });
        let citations: Vec<Citation> = located.stretches.iter().map(|(stretch, numbers)| {
            let links = numbers.iter().map(|n| link("w", &format!("https://x/{n}"))).collect();
            Citation { start: Some(stretch.start), end: Some(stretch.end), links }
        }).collect();
        let cited = insert_citations(&draft, &citations);
        let plain = (1..4).fold(cited, |text, n| text.replace(&format!(" [w](https://x/{n})"), ""));
        prop_assert_eq!(plain, draft);
    }
}

/// DS12: however many marks a text has, it is read once.
#[test]
fn ds12_many_marks_are_read_in_time() {
    let open = "[citation:".repeat(400_000);
    assert_eq!(Marks::default().take_out(&open).text, open);
    let marked = Marks::default().take_out(&"潮 [citation:1]".repeat(100_000));
    assert_eq!(marked.marks.len(), 100_000);
}

/// DS12: only a limited number of the quotes of a second pass is looked for.
#[test]
fn ds12_quotes_are_bounded() {
    let citations = (0..5_000).map(|n| quoted(&format!("quote {n}"), &[1])).collect();
    let located = locate("潮差三米。", &CitationList { citations });
    assert_eq!(located.missing.len(), 501);
    assert_eq!(located.missing[500], "4500 further quotes");
}
