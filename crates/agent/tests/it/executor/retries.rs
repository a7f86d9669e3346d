//! Retries, and the keys of calls.

use crate::toolkit::{
    call, executor, failure, ms, object, options, plan, result, run, settings, spec, step, text,
    tool, wait,
};
use foldback_agent::Retry;
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, FailureKind, ToolError, ToolOutput};
use std::sync::mpsc;

/// N3: only calls that do no harm twice are retried, only after a transient error, and each attempt has
/// the same key.
#[tokio::test(start_paused = true)]
async fn n3_retries_are_for_repeatable_tools_and_transient_errors() {
    let attempts_of = async |effect: Effect, error: fn(&str) -> ToolError| {
        let (sender, keys) = mpsc::channel();
        let flaky = tool(spec("flaky", effect), move |_, context| {
            sender.send((context.idempotency_key, context.attempt)).unwrap();
            let answer = if context.attempt < 3 {
                Err(error("断线"))
            } else {
                Ok(ToolOutput::text("好"))
            };
            async { answer }
        });
        let outcome = run(&executor([flaky]), vec![step(1, "flaky", &[])]).await;
        let calls: Vec<(String, u32)> = keys.try_iter().collect();
        assert!(calls.iter().all(|call| call.0 == calls[0].0), "one key for all attempts");
        let attempts: Vec<u32> = calls.iter().map(|call| call.1).collect();
        assert_eq!(outcome.calls[&StepId(1)].attempts as usize, attempts.len());
        (attempts, matches!(result(&outcome, 1), StepResult::Success { .. }), outcome.elapsed)
    };
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let (attempts, success, elapsed) =
            attempts_of(effect, |text| ToolError::transient(text)).await;
        assert_eq!((attempts, success), (vec![1, 2, 3], true));
        assert!(
            elapsed >= ms(300) && elapsed <= ms(600),
            "between half and all of 200 + 400 ms: {elapsed:?}"
        );
        assert_eq!(attempts_of(effect, |text| ToolError::permanent(text)).await.0, [1]);
        assert_eq!(attempts_of(effect, |text| ToolError::arguments(text)).await.0, [1]);
    }
    assert_eq!(attempts_of(Effect::Effectful, |text| ToolError::transient(text)).await.0, [1]);
}

/// N3: attempts are limited, and the last failure says how many there were.
#[tokio::test(start_paused = true)]
async fn n3_attempts_are_bounded() {
    let down =
        tool(spec("down", Effect::Idempotent), |_, _| async { Err(ToolError::transient("503")) });
    let executor = executor([down]).with_settings(settings(|s| s.retry.attempts = 5));
    let outcome = run(&executor, vec![step(1, "down", &[])]).await;
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, "503 (after 5 attempts)"));
}

/// N3: waits double, stay within their limits, and are the same for the same call.
#[test]
fn n3_waits_double_within_bounds() {
    let retry = Retry::default().with_attempts(9).with_first(ms(100)).with_most(ms(1_000));
    for (attempt, longest) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (40, 1_000)] {
        for key in ["a", "b", "c"] {
            let wait = retry.wait(key, attempt);
            assert!(wait >= ms(longest) / 2 && wait <= ms(longest), "{attempt}: {wait:?}");
            assert_eq!(wait, retry.wait(key, attempt));
        }
    }
    assert_ne!(retry.wait("a", 1), retry.wait("b", 1), "calls do not come back all at once");
}

/// N3: two calls never share a key; the same call of the same run always has the same.
#[tokio::test(start_paused = true)]
async fn n3_keys_belong_to_one_call() {
    let keys = async |id: &str, argument: &str| {
        let steps = vec![
            call(1, "wait", object(&[("城市", text(argument))]), &[]),
            call(2, "wait", object(&[("城市", text(argument))]), &[]),
        ];
        let outcome = executor([wait()]).run(&plan(steps), options(id)).await.unwrap();
        [1, 2].map(|step| outcome.calls[&StepId(step)].key.clone())
    };
    let mut all = Vec::new();
    for (run, argument) in [("a", "沈阳"), ("a", "长沙"), ("b", "沈阳")] {
        assert_eq!(keys(run, argument).await, keys(run, argument).await);
        all.extend(keys(run, argument).await);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}
