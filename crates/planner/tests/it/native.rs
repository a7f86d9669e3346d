//! Native tool calls.

use foldback_core::ToolCall;
use foldback_planner::{FindingKind, NativeCalls, StepId, lower_calls};

fn lower(calls: &[(&str, &str)]) -> NativeCalls {
    let calls: Vec<ToolCall> =
        calls.iter().map(|(id, arguments)| ToolCall::new(id, "search", arguments)).collect();
    lower_calls(&calls)
}

/// ET13: calls of one message are independent steps, and their ids are kept.
#[test]
fn et13_calls_of_one_message_are_independent_steps() {
    let calls = lower(&[
        ("call_1", r#"{"z": 1.50, "a": "杭州 $$step1.result$$ {results[0].data}"}"#),
        ("call_2", ""),
        ("call_3", " {} "),
    ]);
    assert!(calls.findings.is_empty(), "{}", calls.findings);
    let steps: Vec<String> = calls.plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            r#"step1 = search {"z": 1.50, "a": "杭州 $$step1.result$$ {results[0].data}"}"#,
            "step2 = search {}",
            "step3 = search {}",
        ]
    );
    assert!(calls.plan.steps.iter().all(|step| step.after.is_empty()));
    let ids: Vec<&str> = calls.ids.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
}

/// N1: a call that cannot be read is a finding; the others may run, each under its number.
#[test]
fn malformed_calls_are_findings_and_the_others_stay() {
    let huge = format!("{{\"a\": {}}}", "[".repeat(100_000));
    let calls = lower(&[
        ("c1", r#"{"query": "trunca"#),
        ("c2", r#"{"query": "fine"}"#),
        ("c3", "[1]"),
        ("c4", "杭州"),
        ("c5", r#"{"a": 1, "a": 2}"#),
        ("c2", "{}"),
        ("c7", r#"{"a": 1} {"b": 2}"#),
        ("c8", &huge),
    ]);
    let kinds: Vec<(u32, FindingKind)> = calls
        .findings
        .errors()
        .map(|finding| (finding.step.map_or(0, |step| step.0), finding.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            (1, FindingKind::Truncated),
            (3, FindingKind::Syntax),
            (4, FindingKind::Syntax),
            (5, FindingKind::DuplicateKey),
            (6, FindingKind::DuplicateStep),
            (7, FindingKind::Syntax),
            (8, FindingKind::OverLimit),
        ],
        "{}",
        calls.findings
    );
    assert_eq!(calls.plan.steps.iter().map(|step| step.id).collect::<Vec<_>>(), [StepId(2)]);
    assert_eq!(calls.ids.len(), 8);
}
