//! Settings that make no sense are refused before anything is asked or recorded.

use crate::script::{agent, is_refused, model};
use foldback_agent::{Flow, FlowSettings, OnePlan, OnePlanSettings, SettingError, StepExecutor};
use foldback_llm::Sampling;

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
