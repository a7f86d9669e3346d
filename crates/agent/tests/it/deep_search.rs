//! Deep search, part by part: shapes, state, short URLs, citations.

use foldback_agent::deep_search::{
    Citation, CitationList, DeepSearchSettings, DeepSearchState, Effort, Grounding, Link, Marks,
    Query, QuotedCitation, Reflection, ReflectionState, Research, Route, SearchQueryList,
    ShortUrls, Source, Summary, Update, insert_citations, label, link_safe, locate, research_topic,
};
use foldback_core::{Message, ToolCallId};
use proptest::prelude::*;
use std::sync::Arc;
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

fn source(short_url: &str, url: &str) -> Source {
    Source {
        label: "a".to_owned(),
        short_url: short_url.to_owned(),
        url: url.to_owned(),
        title: "A".to_owned(),
        bytes: None,
    }
}

fn query(id: u32, query: &str) -> Query {
    Query { id, query: query.to_owned() }
}

fn researched(id: u32, words: &str, urls: &[&str]) -> Research {
    let sources = urls.iter().map(|url| source(url, url)).collect();
    let summary = Summary { text: words.to_owned(), sources, ..Summary::default() };
    Research { query: query(id, words), outcome: Ok(summary) }
}

/// DS2: what a node gives is appended; what stands there stays. The number of rounds counts itself.
#[test]
fn ds2_lists_are_appended_to() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Queries(vec![query(1, "潮汐"), query(2, "b")]));
    state.apply(Update::Research(vec![
        researched(1, "潮汐", &["u1"]),
        researched(2, "b", &["u1", "u2"]),
    ]));
    state.apply(Update::FollowUps(vec![query(3, "c")]));
    let failed = Research { query: query(3, "c"), outcome: Err("断网".to_owned()) };
    state.apply(Update::Research(vec![failed.clone()]));
    assert_eq!(state.search_query, [query(1, "潮汐"), query(2, "b"), query(3, "c")]);
    assert_eq!(state.web_research_result.len(), 3);
    assert_eq!(state.web_research_result[2], failed);
    let gathered: Vec<&str> = state.sources_gathered.iter().map(|s| s.url.as_str()).collect();
    assert_eq!(gathered, ["u1", "u1", "u2"], "as the queries brought them");
    assert_eq!(state.research_loop_count, 2);
    let reflection =
        Reflection { is_sufficient: true, knowledge_gap: String::new(), follow_up_queries: vec![] };
    let reflected = state.reflected(reflection);
    assert_eq!((reflected.research_loop_count, reflected.number_of_ran_queries), (2, 3));
    state.apply(Update::Answered(Arc::new(Message::assistant("ok")), vec![source("s", "u2")]));
    assert_eq!(state.messages.len(), 1);
    assert_eq!(state.sources_gathered, [source("s", "u2")], "reduced to those that are used");
}

/// DS3: the defaults, the efforts, and what the caller's environment overrides.
#[test]
fn ds3_settings_and_efforts() {
    let settings = DeepSearchSettings::default();
    assert_eq!((settings.number_of_initial_queries, settings.max_research_loops), (3, 2));
    assert_eq!(settings.retries, 2);
    let drawn = settings.temperatures;
    assert_eq!((drawn.queries, drawn.reflection), (Some(1.0), Some(1.0)));
    assert_eq!((drawn.research, drawn.answer), (Some(0.0), Some(0.0)));
    let efforts = Effort::ALL.map(|effort| (effort.name(), effort.queries_and_loops()));
    assert_eq!(efforts, [("low", (1, 1)), ("medium", (3, 3)), ("high", (5, 10))]);
    assert!(Effort::ALL.iter().all(|effort| Effort::from_name(effort.name()) == Some(*effort)));

    let given = |name| (name == "MAX_RESEARCH_LOOPS").then(|| " 7 ".to_owned());
    let settings = settings.with_effort(Effort::High).overridden(given).unwrap();
    assert_eq!((settings.number_of_initial_queries, settings.max_research_loops), (5, 7));
    for value in ["0", "-1", "many", ""] {
        let error = settings.clone().overridden(|_| Some(value.to_owned())).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("NUMBER_OF_INITIAL_QUERIES is"), "{told}");
        assert!(told.ends_with("but a whole number from 1 on is expected"), "{told}");
    }
    let json = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<DeepSearchSettings>(&json).unwrap(), settings);
    assert!(serde_json::from_str::<DeepSearchSettings>(r#"{"max_loops": 1}"#).is_err());
}

/// DS4: the one object is read wherever it stands; anything else is a typed error that says what was
/// expected.
#[test]
fn ds4_shapes_are_read_or_refused() {
    let written = "<think>{maybe}</think>Here:\n```json\n{\"rationale\": \"因为 {x}\", \"query\": [\"潮汐表 2024\"], \"more\": 1}\n```";
    let list = SearchQueryList::parse(written).unwrap();
    assert_eq!((list.query, list.rationale.as_str()), (vec!["潮汐表 2024".to_owned()], "因为 {x}"));
    let reflection = r#"{"is_sufficient": false, "knowledge_gap": "表", "follow_up_queries": []}"#;
    assert_eq!(Reflection::parse(reflection).unwrap().knowledge_gap, "表");

    #[track_caller]
    fn refused(answer: &str, why: &str) {
        let told = SearchQueryList::parse(answer).unwrap_err().to_string();
        assert!(told.starts_with("the answer is no SearchQueryList: "), "{told}");
        assert!(told.contains(why) && told.contains("expected one JSON object like {"), "{told}");
    }
    refused("", "it holds no JSON object");
    refused("潮汐表", "it holds no JSON object");
    refused(r#"{"query": "one", "rationale": "r"}"#, "expected a sequence");
    refused(r#"{"query": ["a"]}"#, "missing field `rationale`");
    refused(r#"{"query": [], "rationale": "r"}"#, "`query` holds no query");
    refused(r#"{"query": ["  "], "rationale": "r"}"#, "`query` holds no query");
    refused(r#"{"query": ["a"], "query": ["b"], "rationale": "r"}"#, "duplicate field");
    refused(r#"{"query": ["a"], "rationale": "#, "EOF");
    let told = Reflection::parse(r#"{"is_sufficient": "yes"}"#).unwrap_err().to_string();
    assert!(told.contains("Reflection") && told.contains("expected a boolean"), "{told}");
    // However many braces there are, it ends.
    assert!(SearchQueryList::parse(&"{".repeat(200_000)).is_err());
}

/// DS6: where it goes on, as a table. Insufficient and nothing to follow: the answer is written.
#[test]
fn ds6_the_router() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Queries(vec![query(1, "Tide tables"), query(2, "c")]));
    state.apply(Update::Research(vec![
        researched(1, "Tide tables", &[]),
        Research { query: query(2, "c"), outcome: Err("x".to_owned()) },
    ]));
    let route = |is_sufficient, loops, follow_ups: &[&str]| {
        let reflection = ReflectionState {
            is_sufficient,
            knowledge_gap: "gap".to_owned(),
            follow_up_queries: follow_ups.iter().map(|q| (*q).to_owned()).collect(),
            research_loop_count: loops,
            number_of_ran_queries: 2,
        };
        state.route(&reflection, 3)
    };
    let ends = |route| matches!(route, Route::FinalizeAnswer(_));
    assert!(ends(route(true, 1, &["a"])), "sufficient");
    assert!(ends(route(false, 2, &["a"])), "the last round");
    assert!(ends(route(false, 9, &["a"])), "beyond it");
    assert!(ends(route(false, 1, &[])), "nothing to follow");
    assert!(ends(route(false, 1, &["  ", ""])), "nothing that is a query");
    assert!(ends(route(false, 1, &["tide  TABLES"])), "answered already");
    // DS7: dense behind those before; what failed may be asked again; no more than the bound.
    let next = route(false, 1, &["a", "A ", "c", "潮", "e"]);
    assert_eq!(next, Route::WebResearch(vec![query(3, "a"), query(4, "c"), query(5, "潮")]));
}

/// DS8: one short URL for each URL of a query, that of the place where it stands first: as the original
/// counts them.
#[test]
fn ds8_short_urls() {
    let short = ShortUrls::under("https://vertexaisearch.cloud.google.com/");
    let urls = short.resolve(3, ["https://a/1", "https://b", "https://a/1", "https://c"]);
    let expected = ["3-0", "3-1", "3-0", "3-3"]
        .map(|id| format!("https://vertexaisearch.cloud.google.com/id/{id}"));
    assert_eq!(urls, expected);
    // Those of a run are its own, and the same when it is resumed.
    let of_run = |run, request| ShortUrls::of_run(run, request).resolve(1, ["u"]).remove(0);
    assert_eq!(of_run("r", "潮汐"), of_run("r", "潮汐"));
    assert_ne!(of_run("r", "潮汐"), of_run("r2", "潮汐"));
    assert_ne!(of_run("r", "潮汐"), of_run("r", "潮"));
}

/// DS9: what the original makes of English text, byte for byte.
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
    // A missing start is 0, a missing end no place.
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
    /// DS9: whatever the offsets are, the text without the links is the text, and each link stands
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

/// DS10: whole short URLs get their own back; the longer one is not touched by the shorter.
#[test]
fn ds10_b11_restoring_keeps_boundaries() {
    let short = ShortUrls::under("https://h");
    let sources = [
        source("https://h/id/1-1", "https://one.com/a"),
        source("https://h/id/1-10", "https://ten.com/潮汐"),
        source("https://h/id/2-0", "https://one.com/a"),
        source("https://h/id/3-0", "https://never.com"),
    ];
    let text =
        "A [x](https://h/id/1-10), b https://h/id/1-1. 见https://h/id/2-0。C **https://h/id/1-1**";
    let restored = short.restore(text, &sources);
    // `str.replace`, in the order of the sources, makes `https://one.com/a0` of the first.
    assert_eq!(
        restored.text,
        "A [x](https://ten.com/潮汐), b https://one.com/a. 见https://one.com/a。C **https://one.com/a**"
    );
    let used: Vec<&str> = restored.used.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(used, ["https://ten.com/潮汐", "https://one.com/a"], "each once, as they are named");
    assert_eq!(restored.invented, Vec::<String>::new());

    let invented = "[x](https://h/id/9-9) https://h/id/1-1/more https://h/id/1-100 https://h/id/ \
                    https://h/id/01-1 xhttps://h/id/1-1 https://h/id/9-9 https://h/id/1-1?q";
    let restored = short.restore(invented, &sources);
    assert_eq!(restored.text, invented, "what was made up is not restored");
    assert_eq!(restored.used, []);
    let told = ["9-9", "1-1/more", "1-100", "", "01-1", "1-1", "1-1?q"];
    assert_eq!(restored.invented, told.map(|id| format!("https://h/id/{id}")));
}

/// DS10: a source's own URL does not end the link that it stands in.
#[test]
fn ds10_urls_stay_inside_their_links() {
    assert_eq!(link_safe("https://a/b_(c)?d=潮#e"), "https://a/b_(c)?d=潮#e");
    assert_eq!(link_safe("https://a/b)(c d\n<e>"), "https://a/b%29%28c%20d%0A%3Ce%3E");
    let short = ShortUrls::under("https://h");
    let sources = [source("https://h/id/1-0", "https://a/x) [y](https://evil")];
    let restored = short.restore("[x](https://h/id/1-0)", &sources);
    assert_eq!(restored.text, "[x](https://a/x%29%20[y]%28https://evil)");
}

/// DS11: a question alone is the topic; a conversation is told turn by turn, as the original does, without
/// instructions and tools.
#[test]
fn ds11_the_topic() {
    assert_eq!(research_topic(&[], "q1"), "q1");
    let before = [
        Message::system("be brief"),
        Message::user("q1"),
        Message::calls("", vec![]),
        Message::tool_result(&ToolCallId::new("c"), "raw"),
        Message::observation("<tool_results>raw</tool_results>"),
        Message::assistant("r1"),
    ];
    let before = before.map(Arc::new);
    assert_eq!(research_topic(&before, "q2"), "User: q1\nAssistant: r1\nUser: q2\n");
    let long: Vec<Arc<Message>> = (0..400)
        .map(|n| Arc::new(Message::user(&format!("第{n}句：{}", "潮汐".repeat(40)))))
        .collect();
    let topic = research_topic(&long, "now?");
    assert!(topic.len() < 30_000 && topic.contains("第399句") && !topic.contains("第1句"));
}

/// DS12: marks are taken out where they stand, and stand for the sentence before them.
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

/// DS12: where a text that the model reads has marks of its own, the model's are others.
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

/// DS12: in the second pass, quotes are found in the order of the draft; one that does not stand there is
/// told.
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

/// DS9: what rests on what is told in bytes of the summary, and links stand behind it.
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

/// DS9: only links to pages and to documents are links; any other scheme leads nowhere.
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

/// DS12: however many marks a text begins, it is read once.
#[test]
fn ds12_many_marks_are_read_in_time() {
    let open = "[citation:".repeat(400_000);
    assert_eq!(Marks::default().take_out(&open).text, open);
    let marked = Marks::default().take_out(&"潮 [citation:1]".repeat(100_000));
    assert_eq!(marked.marks.len(), 100_000);
}

/// DS12: of a second pass that quotes without end a bounded number is looked for.
#[test]
fn ds12_quotes_are_bounded() {
    let citations = (0..5_000).map(|n| quoted(&format!("quote {n}"), &[1])).collect();
    let located = locate("潮差三米。", &CitationList { citations });
    assert_eq!(located.missing.len(), 501);
    assert_eq!(located.missing[500], "4500 further quotes");
}

/// DS4: the answer stands behind what a model thinks, and is the last object that reads.
#[test]
fn ds4_the_last_object_is_the_answer() {
    let object = |query: &str| format!(r#"{{"rationale": "r", "query": ["{query}"]}}"#);
    let (draft, last) = (object("draft"), object("潮汐"));
    for answer in [
        format!("<think>perhaps {draft}?</think>{last}"),
        format!("<think>{}</think>{last}", "{".repeat(200)),
        format!("First {draft}, no: {last}"),
        format!("{last} (in {{braces}})"),
    ] {
        assert_eq!(SearchQueryList::parse(&answer).unwrap().query, ["潮汐"], "{answer}");
    }
    let nothing = r#"{"is_sufficient": true, "knowledge_gap": null, "follow_up_queries": null}"#;
    let read = Reflection::parse(nothing).unwrap();
    assert_eq!((read.knowledge_gap.as_str(), read.follow_up_queries.len()), ("", 0));
}

/// DS11: of a turn that is too long a part is told, not none of the conversation.
#[test]
fn ds11_a_long_turn_is_told_in_part() {
    let before = [Message::user("q1"), Message::assistant(&"潮汐很大。".repeat(20_000))];
    let topic = research_topic(&before.map(Arc::new), "and then?");
    assert!(topic.starts_with("Assistant: 潮汐很大。"), "{topic}");
    assert!(topic.contains("characters left out") && topic.len() < 30_000, "{}", topic.len());
}

/// DS6: a query that differs in nothing that is searched for is not asked twice, and none is endless.
#[test]
fn ds6_queries_are_alike_but_for_their_dress() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Research(vec![researched(1, "杭州 潮汐表 2024", &[])]));
    let long = "潮".repeat(5_000);
    let follow_ups = ["杭州潮汐表２０２４？", "C++", "C#", "why, then", "Why then?", &long];
    let reflection = ReflectionState {
        is_sufficient: false,
        knowledge_gap: String::new(),
        follow_up_queries: follow_ups.map(str::to_owned).to_vec(),
        research_loop_count: 1,
        number_of_ran_queries: 1,
    };
    let Route::WebResearch(next) = state.route(&reflection, 9) else { panic!("nothing to follow") };
    let words: Vec<&str> = next.iter().map(|query| query.query.as_str()).collect();
    assert_eq!(words, ["C++", "C#", "why, then", &"潮".repeat(300)]);
}
