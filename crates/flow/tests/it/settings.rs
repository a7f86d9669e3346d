//! Invalid settings are refused before anything is asked or recorded.

use crate::script::{agent, is_refused, model};
use foldback_flow::{Flow, FlowSettings, StepExecutor};
use foldback_llm::Sampling;

/// OM9: an executor that no step could call is refused, and so is a flow in which no result could be shown.
#[tokio::test]
async fn om9_nonsense_is_refused() {
    let named = |names: &[&str]| {
        let model = model([]);
        let executor = |name: &&str| StepExecutor::new(name, "", agent(&model, vec![]));
        FlowSettings::default().with_executors(names.iter().map(executor).collect())
    };
    let plain = FlowSettings::default;
    let sampling = Sampling::default().with_max_tokens(0);
    for (flow, told) in [
        (
            named(&["coder", " "]),
            "the name of an executor is \" \", but a word or a few words on one line is expected",
        ),
        (
            named(&["[coder]"]),
            "the name of an executor is \"[coder]\", but a name without brackets is expected",
        ),
        (
            named(&["coder", "研究员", "ＣＯＤＥＲ "]),
            "the name of an executor is \"ＣＯＤＥＲ \", but a name that no other executor has is expected",
        ),
        (
            plain().with_results_tokens(0),
            "results_tokens is 0, but a whole number of at least 1 is expected",
        ),
        (
            plain().with_summary_tokens(0),
            "summary_tokens is 0, but a whole number of at least 1 is expected",
        ),
        (
            plain().with_sampling(sampling),
            "max_tokens is 0, but a whole number of at least 1 is expected",
        ),
    ] {
        is_refused(&Flow::new(flow), told).await;
    }
    assert_eq!(named(&["coder", "研究员", "coder 2"]).check(), Ok(()));
}
