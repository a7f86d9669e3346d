//! Settings that make no sense are refused before anything is asked, searched or recorded.

use crate::script::{agent, is_refused, model};
use foldback_agent::deep_search::{
    DeepSearch, DeepSearchSettings, Found, SearchBackend, Temperatures,
};
use foldback_agent::{Flow, FlowSettings, OnePlan, OnePlanSettings, SettingError, StepExecutor};
use foldback_llm::Sampling;
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
    ) -> BoxFuture<'a, Result<Vec<Found>, ToolError>> {
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

/// OM9: an executor that no step could call is refused, and so is a flow in which nothing could be told.
#[tokio::test]
async fn om9_nonsense_is_refused() {
    let named = |names: &[&str]| {
        let model = model([]);
        let executor = |name: &&str| StepExecutor::new(name, "", agent(&model, vec![]));
        FlowSettings { executors: names.iter().map(executor).collect(), ..FlowSettings::default() }
    };
    let plain = FlowSettings::default;
    let sampling = Sampling { max_tokens: Some(0), ..Sampling::default() };
    for (flow, told) in [
        (
            named(&["coder", " "]),
            "the name of an executor is \" \", but a word or a few on one line is expected",
        ),
        (
            named(&["[coder]"]),
            "the name of an executor is \"[coder]\", but a name without brackets is expected",
        ),
        (
            named(&["coder", "研究员", "ＣＯＤＥＲ "]),
            "the name of an executor is \"ＣＯＤＥＲ \", but a name that no other has is expected",
        ),
        (
            FlowSettings { results_tokens: 0, ..plain() },
            "results_tokens is 0, but a whole number from 1 on is expected",
        ),
        (
            FlowSettings { summary_tokens: 0, ..plain() },
            "summary_tokens is 0, but a whole number from 1 on is expected",
        ),
        (
            FlowSettings { sampling, ..plain() },
            "max_tokens is 0, but a whole number from 1 on is expected",
        ),
    ] {
        is_refused(&Flow::new(flow), told).await;
    }
    assert_eq!(named(&["coder", "研究员", "coder 2"]).check(), Ok(()));
}

/// OP14: the same of one plan.
#[tokio::test]
async fn op14_nonsense_is_refused() {
    let none = OnePlanSettings { results_tokens: 0, ..OnePlanSettings::default() };
    let told = "results_tokens is 0, but a whole number from 1 on is expected";
    is_refused(&OnePlan::new(none), told).await;
    let sampling = Sampling { temperature: Some(f64::INFINITY), ..Sampling::default() };
    let hot = OnePlanSettings { sampling, ..OnePlanSettings::default() };
    let told = "temperature is inf, but a number from 0 to 2, or none at all is expected";
    is_refused(&OnePlan::new(hot), told).await;
    let error = SettingError { name: "n", value: "0".to_owned(), expected: "1" };
    assert_eq!(error.to_string(), "n is 0, but 1 is expected");
}
