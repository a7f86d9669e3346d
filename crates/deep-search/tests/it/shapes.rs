//! Answers of a model in a fixed shape.

use foldback_deep_search::{Reflection, SearchQueryList};

/// DS4: the object is read wherever it is; anything else is a typed error that says what was expected.
#[test]
fn ds4_shapes_are_read_or_refused() {
    let written = "<think>{maybe}</think>Here:\n```json\n{\"rationale\": \"因为 {x}\", \"query\": [\"潮汐表 2024\"], \"more\": 1}\n```";
    let list = SearchQueryList::parse(written).unwrap();
    assert_eq!((list.query, list.rationale.as_str()), (vec!["潮汐表 2024".to_owned()], "因为 {x}"));
    for rationale in ["", r#", "rationale": null"#] {
        let list = SearchQueryList::parse(&format!(r#"{{"query": ["潮汐"]{rationale}}}"#)).unwrap();
        assert_eq!((list.query, list.rationale), (vec!["潮汐".to_owned()], String::new()));
    }
    let reflection = r#"{"is_sufficient": false, "knowledge_gap": "表", "follow_up_queries": []}"#;
    assert_eq!(Reflection::parse(reflection).unwrap().knowledge_gap, "表");

    #[track_caller]
    fn refused(answer: &str, why: &str) {
        let told = SearchQueryList::parse(answer).unwrap_err().to_string();
        assert!(told.starts_with("the answer is not a SearchQueryList: "), "{told}");
        assert!(told.contains(why) && told.contains("expected one JSON object like {"), "{told}");
    }
    refused("", "it contains no JSON object");
    refused("潮汐表", "it contains no JSON object");
    refused(r#"{"query": "one", "rationale": "r"}"#, "expected a sequence");
    refused(r#"{"rationale": "r"}"#, "missing field `query`");
    refused(r#"{"query": [], "rationale": "r"}"#, "`query` contains no query");
    refused(r#"{"query": ["  "], "rationale": "r"}"#, "`query` contains no query");
    refused(r#"{"query": ["a"], "query": ["b"], "rationale": "r"}"#, "duplicate field");
    refused(r#"{"query": ["a"], "rationale": "#, "EOF");
    let told = Reflection::parse(r#"{"is_sufficient": "yes"}"#).unwrap_err().to_string();
    assert!(told.contains("Reflection") && told.contains("expected a boolean"), "{told}");
    // However many braces there are, it ends.
    assert!(SearchQueryList::parse(&"{".repeat(200_000)).is_err());
}

/// DS4: the answer is after a model's thoughts, and is the last object that can be read.
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
