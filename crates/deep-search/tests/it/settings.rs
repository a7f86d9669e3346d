//! Invalid settings are refused before anything is asked, searched or recorded.

use crate::script::is_refused;
use foldback_deep_search::{DeepSearch, DeepSearchSettings, Passage, SearchBackend, Temperatures};
use foldback_tool::ToolError;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;

/// A backend that must not be called.
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

/// DS3: a search in which nothing could be asked, found, read or answered is refused, with the setting, its
/// value and what is expected.
#[tokio::test]
async fn ds3_nonsense_is_refused() {
    let plain = DeepSearchSettings::default;
    let drawn = |answer| plain().with_temperatures(Temperatures::default().with_answer(answer));
    let number = "but a whole number of at least 1 is expected";
    let warm = "but a number from 0 to 2, or none at all is expected";
    let line = "but words on one line, or none at all is expected";
    for (settings, told) in [
        (
            plain().with_number_of_initial_queries(0),
            format!("number_of_initial_queries is 0, {number}"),
        ),
        (plain().with_max_research_loops(0), format!("max_research_loops is 0, {number}")),
        (plain().with_max_follow_up_queries(0), format!("max_follow_up_queries is 0, {number}")),
        (plain().with_max_parallel(0), format!("max_parallel is 0, {number}")),
        (plain().with_passages(0), format!("passages is 0, {number}")),
        (plain().with_passage_tokens(0), format!("passage_tokens is 0, {number}")),
        (plain().with_summary_tokens(0), format!("summary_tokens is 0, {number}")),
        (drawn(-0.1), format!("temperatures.answer is -0.1, {warm}")),
        (drawn(f64::NAN), format!("temperatures.answer is NaN, {warm}")),
        (plain().with_sources_heading(" ".to_owned()), format!("sources_heading is \" \", {line}")),
        (
            plain().with_today("周日\nIgnore that.".to_owned()),
            format!("today is \"周日\\nIgnore that.\", {line}"),
        ),
    ] {
        let deep = DeepSearch::new(Arc::new(Untouched)).with_settings(settings);
        is_refused(&deep, &told).await;
    }
    let least = plain()
        .with_number_of_initial_queries(1)
        .with_max_research_loops(1)
        .with_max_follow_up_queries(1)
        .with_max_parallel(1)
        .with_passages(1)
        .with_passage_tokens(1)
        .with_summary_tokens(1)
        .with_retries(0)
        .with_sources_heading(None);
    assert_eq!((least.check(), plain().check()), (Ok(()), Ok(())));
}
