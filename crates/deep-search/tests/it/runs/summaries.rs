//! Summaries and their sources: limited, and each source once.

use super::{Library, afterwards, agent, found, model, node, plain, search, sufficient, usual};
use foldback_core::{Estimate, TokenCounter};
use foldback_deep_search::SearchQueryList;
use foldback_llm::Answer;

/// DS9: a summary of any length is kept in part, with the citations of that part; the same source is cited
/// once in one place.
#[tokio::test(start_paused = true)]
async fn ds9_summaries_are_bounded() {
    let model = model(|request| match node(request) {
        "queries/queries" => r#"{"rationale": "r", "query": ["潮差"]}"#.into(),
        "reflection/round-1" => sufficient().as_str().into(),
        node if node.starts_with("research/") => {
            let long = "潮差三米，涨落有时。".repeat(2_000);
            format!("三米。[citation:1][citation:1]{long}[citation:2]").as_str().into()
        }
        _ => usual(request),
    });
    let settings = plain().with_summary_tokens(200);
    let report = search(&agent(&model, &Library::new(super::two), settings)).await;
    let summary = report.state.web_research_result[0].outcome.as_ref().unwrap();
    assert!(Estimate.count(&summary.text) <= 200, "{}", Estimate.count(&summary.text));
    assert_eq!((summary.grounding.len(), summary.sources.len()), (1, 1));
    assert_eq!(&summary.text[summary.grounding[0].segment.clone()], "三米。");
}

/// DS8, DS12: passages with one address are one source, in a search and over all of them: a number names the
/// source that it was shown with, and the list has it once.
#[tokio::test(start_paused = true)]
async fn ds8_an_address_is_one_source() {
    let library = || {
        Library::new(|_| {
            let passages = [("a.md", "上"), ("a.md", "下"), ("b.md", "别处")];
            Ok(passages.map(|(url, text)| found(url, url, text)).into())
        })
    };
    let second = model(|request| match node(request) {
        node if node.starts_with("research/") => "别处说三米。[citation:2]".into(),
        _ => usual(request),
    });
    let report = search(&agent(&second, &library(), plain())).await;
    let urls: Vec<&str> = report.sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(urls, ["b.md"]);

    let citing = model(|request| {
        let text = match node(request) {
            "answer/answer" => "潮差三米。涨落有时。",
            "answer/answer-citations" => {
                r#"{"citations": [{"quote": "潮差三米。", "sources": [1]}, {"quote": "涨落有时。", "sources": [1, 2]}]}"#
            }
            node if node.ends_with("-citations") => {
                r#"{"citations": [{"quote": "三米。", "sources": [1]}]}"#
            }
            node if node.starts_with("research/") => "三米。",
            _ => return usual(request),
        };
        Answer::text(text)
    });
    let report = search(&agent(&citing, &library(), afterwards())).await;
    let urls: Vec<&str> = report.sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(urls, ["a.md"], "two searches have found it");
    assert_eq!(report.invented, ["2"]);
}

/// DS2, DS10: an answer without sources has no list of them, and is the last message of the state.
#[tokio::test(start_paused = true)]
async fn ds10_without_sources_there_is_no_list() {
    let model = model(|request| match node(request) {
        "answer/answer" => "没有找到。".into(),
        _ => usual(request),
    });
    let settings = plain().with_sources_heading("来源".to_owned());
    let report = search(&agent(&model, &Library::new(|_| Ok(Vec::new())), settings)).await;
    assert_eq!(report.report.answer(), Some("没有找到。"));
    assert_eq!(report.state.messages.last().unwrap().text(), "没有找到。");
}

/// DS4: at most 64 braces of an answer are tried as the beginning of the object.
#[test]
fn ds4_braces_are_tried_within_a_bound() {
    let object = r#"{"rationale": "r", "query": ["潮差"]}"#;
    assert!(SearchQueryList::parse(&format!("{}{object}", "{ ".repeat(63))).is_ok());
    assert!(SearchQueryList::parse(&format!("{}{object}", "{ ".repeat(64))).is_err());
}
