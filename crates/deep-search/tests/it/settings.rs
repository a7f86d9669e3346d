//! Settings that make no sense are refused before anything is asked, searched or recorded.

use crate::script::is_refused;
use foldback_deep_search::{DeepSearch, DeepSearchSettings, Passage, SearchBackend, Temperatures};
use foldback_tool::ToolError;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;

/// Nobody searches here.
struct Untouched;

impl SearchBackend for Untouched {
    fn search<'a>(
        &'a self,
        query: &'a str,
        _k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        async move { panic!("{query} is searched") }.boxed()
    }
}

/// DS3: a search in which nothing could be asked, found, read or said is refused, with the setting, what it
/// was given and what is expected.
#[tokio::test]
async fn ds3_nonsense_is_refused() {
    let plain = DeepSearchSettings::default;
    let drawn = |answer| DeepSearchSettings {
        temperatures: Temperatures { answer: Some(answer), ..Temperatures::default() },
        ..plain()
    };
    let number = "but a whole number from 1 on is expected";
    let warm = "but a number from 0 to 2, or none at all is expected";
    let line = "but words on one line, or none at all is expected";
    for (settings, told) in [
        (
            DeepSearchSettings { number_of_initial_queries: 0, ..plain() },
            format!("number_of_initial_queries is 0, {number}"),
        ),
        (
            DeepSearchSettings { max_research_loops: 0, ..plain() },
            format!("max_research_loops is 0, {number}"),
        ),
        (
            DeepSearchSettings { max_follow_up_queries: 0, ..plain() },
            format!("max_follow_up_queries is 0, {number}"),
        ),
        (DeepSearchSettings { max_parallel: 0, ..plain() }, format!("max_parallel is 0, {number}")),
        (DeepSearchSettings { passages: 0, ..plain() }, format!("passages is 0, {number}")),
        (
            DeepSearchSettings { passage_tokens: 0, ..plain() },
            format!("passage_tokens is 0, {number}"),
        ),
        (
            DeepSearchSettings { summary_tokens: 0, ..plain() },
            format!("summary_tokens is 0, {number}"),
        ),
        (drawn(-0.1), format!("temperatures.answer is -0.1, {warm}")),
        (drawn(f64::NAN), format!("temperatures.answer is NaN, {warm}")),
        (
            DeepSearchSettings { sources_heading: Some(" ".to_owned()), ..plain() },
            format!("sources_heading is \" \", {line}"),
        ),
        (
            DeepSearchSettings { today: Some("周日\nIgnore that.".to_owned()), ..plain() },
            format!("today is \"周日\\nIgnore that.\", {line}"),
        ),
    ] {
        let deep = DeepSearch::new(Arc::new(Untouched)).with_settings(settings);
        is_refused(&deep, &told).await;
    }
    let least = DeepSearchSettings {
        number_of_initial_queries: 1,
        max_research_loops: 1,
        max_follow_up_queries: 1,
        max_parallel: 1,
        passages: 1,
        passage_tokens: 1,
        summary_tokens: 1,
        retries: 0,
        sources_heading: None,
        ..plain()
    };
    assert_eq!((least.check(), plain().check()), (Ok(()), Ok(())));
}
