//! The numbers of queries, over many rounds.

use super::{Library, agent, insufficient, model, node, plain, queries, search, two, usual};
use foldback_deep_search::Effort;
use foldback_tool::ToolError;
use std::collections::BTreeSet;

/// DS2, DS7: over ten rounds, with queries that are asked again, are blank or fail, each query has one
/// number, and the numbers count from 1 without a gap. The original counts its queries twice: after three of
/// them, the next is number 6. The lists of the state only grow, by the results of each round.
#[tokio::test(start_paused = true)]
async fn ds7_numbers_are_dense_over_ten_rounds() {
    let model = model(|request| match node(request) {
        "queries/queries" => {
            queries(&["潮差", " ", "潮差？", "broken", "tide times"]).as_str().into()
        }
        node if node.starts_with("reflection/round-") => {
            let round: u32 = node["reflection/round-".len()..].parse().unwrap();
            let new = [format!("第{round}轮"), format!("round {round}")];
            // A query that was answered is not asked again; one that failed is.
            let all = ["潮差", "tide  TIMES", "broken", &new[0], "", &new[1], &new[0]];
            insufficient(&all).as_str().into()
        }
        "answer/answer" => "as far as is known".into(),
        node if node.starts_with("research/") => "三米。[citation:1]".into(),
        _ => usual(request),
    });
    let library = Library::new(|query| match query {
        "broken" => Err(ToolError::permanent("断网")),
        query => two(query),
    });
    let settings = plain().with_max_follow_up_queries(3);
    let report = search(&agent(&model, &library, settings.with_effort(Effort::High))).await;
    let state = &report.state;
    assert_eq!((state.initial_search_query_count, state.max_research_loops), (5, 10));
    assert_eq!((state.reasoning_model.as_str(), state.research_loop_count), ("scripted", 10));
    // Three of the first round (two are equal, one is blank), three of each other.
    let ids: Vec<u32> = state.search_query.iter().map(|query| query.id).collect();
    assert_eq!(ids, (1..=3 + 9 * 3).collect::<Vec<u32>>());
    let researched: Vec<u32> =
        state.web_research_result.iter().map(|research| research.query.id).collect();
    assert_eq!(researched, ids, "each is searched once, in its order");
    assert_eq!(library.asked().len(), ids.len());
    let failed = state.web_research_result.iter().filter(|research| research.outcome.is_err());
    assert_eq!(failed.count(), 10, "the query that failed is tried in each round");
    // A short URL contains the number of its query: none is shared by two sources.
    let urls: Vec<&str> = (state.web_research_result.iter())
        .filter_map(|research| research.outcome.as_ref().ok())
        .flat_map(|summary| summary.sources.iter().map(|source| source.short_url.as_str()))
        .collect();
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), urls.len());
    assert_eq!(urls.len(), 20);
}
