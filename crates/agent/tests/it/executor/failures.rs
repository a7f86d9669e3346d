//! Steps that fail: their results, and those of the others.

use crate::toolkit::{
    Counter, answer, broken, call, executor, failure, ms, object, options, pause, plan, result,
    run, settings, skipped, spec, step, text, tool, wait, waiting, whole,
};
use foldback_agent::RunError;
use foldback_planner::{FailurePolicy, ScheduleError, Step, StepId};
use foldback_tool::{CallContext, Effect, FailureKind, ToolError, ToolOutput, ToolSpec};
use std::sync::Arc;

/// OP7: arguments that cannot be filled in are the step's failure, not the run's.
#[tokio::test(start_paused = true)]
async fn op7_a_reference_to_nothing_fails_its_step_alone() {
    let mut two = call(2, "wait", object(&[("ms", whole(9))]), &[1]);
    two.after = vec![StepId(1)];
    let outcome = run(&executor([wait()]), vec![pause(1, 5, &[]), two, pause(3, 5, &[])]).await;
    let (kind, message) = failure(&outcome, 2);
    assert_eq!(kind, FailureKind::Arguments);
    assert!(message.contains("step9"), "{message}");
    assert_eq!(answer(&outcome, 3), r#"{"ms":5}"#);
}

/// B8, N1: a failing tool does not affect its siblings; steps that wait for it are skipped, and name it.
#[tokio::test(start_paused = true)]
async fn b8_one_failure_keeps_the_siblings() {
    let steps = vec![
        step(1, "broken", &[]),
        pause(2, 50, &[]),
        step(3, "wait", &[1]),
        step(4, "wait", &[3]),
        pause(5, 10, &[2]),
    ];
    let outcome = run(&executor([wait(), broken()]), steps).await;
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, "断网: the network is down"));
    assert_eq!(result(&outcome, 3), &skipped(1));
    assert_eq!(result(&outcome, 4), &skipped(1), "the root is named");
    assert_eq!(answer(&outcome, 5), r#"{"ms":10}"#);
}

/// OP16: the three policies.
#[tokio::test(start_paused = true)]
async fn op16_failure_policies() {
    let with = |policy| {
        let first = Step { on_failure: policy, ..step(1, "broken", &[]) };
        let second = call(2, "wait", object(&[("of", whole(1))]), &[1]);
        vec![first, second, pause(3, 50, &[]), pause(4, 5, &[3])]
    };
    let executor = executor([wait(), broken()]);

    let outcome = run(&executor, with(FailurePolicy::SkipDependents)).await;
    assert_eq!(result(&outcome, 2), &skipped(1));
    assert_eq!(answer(&outcome, 4), r#"{"ms":5}"#);

    let outcome = run(&executor, with(FailurePolicy::FailFast)).await;
    assert_eq!(result(&outcome, 2), &skipped(1));
    assert_eq!(answer(&outcome, 3), r#"{"ms":50}"#, "what runs goes on");
    assert_eq!(result(&outcome, 4), &skipped(1), "what waits does not start");

    let outcome = run(&executor, with(FailurePolicy::ContinueWithError)).await;
    assert!(answer(&outcome, 2).contains("the network is down"), "{}", answer(&outcome, 2));
    assert_eq!(answer(&outcome, 4), r#"{"ms":5}"#);
}

/// OP16: `fail_fast` also cancels calls that are ready and wait for their turn.
#[tokio::test(start_paused = true)]
async fn op16_fail_fast_calls_off_what_is_queued() {
    let first = Step { on_failure: FailurePolicy::FailFast, ..step(1, "broken", &[]) };
    let steps = vec![first, pause(2, 50, &[]), pause(3, 50, &[])];
    let executor = executor([wait(), broken()]).with_settings(settings(|s| s.max_parallel = 1));
    let outcome = run(&executor, steps.clone()).await;
    assert_eq!([result(&outcome, 2), result(&outcome, 3)], [&skipped(1), &skipped(1)]);
    // A step without a tool fails before any call of the same moment is made.
    let missing = Step { on_failure: FailurePolicy::FailFast, ..step(2, "missing", &[]) };
    let outcome = run(&executor, vec![pause(1, 50, &[]), missing, pause(3, 50, &[])]).await;
    assert_eq!(failure(&outcome, 2).0, FailureKind::UnknownTool);
    assert_eq!([result(&outcome, 1), result(&outcome, 3)], [&skipped(2), &skipped(2)]);
    assert!(outcome.calls.is_empty(), "{:?}", outcome.calls);
}

/// OP6: an unknown tool, and arguments that do not fit once references are filled in, are that step's
/// error.
#[tokio::test(start_paused = true)]
async fn op6_what_cannot_be_called_is_an_error_result() {
    let mut typed = spec("typed", Effect::ReadOnly);
    typed.definition.parameters =
        r#"{"type":"object","properties":{"人数":{"type":"integer"}}}"#.to_owned();
    let steps = vec![
        step(1, "browser_查询订单", &[]),
        call(2, "typed", object(&[("人数", text("三"))]), &[]),
        call(3, "typed", object(&[("人数", whole(4))]), &[4]),
        pause(4, 5, &[]),
    ];
    let outcome = run(&executor([wait(), waiting(typed)]), steps).await;
    assert_eq!(failure(&outcome, 1).0, FailureKind::UnknownTool);
    assert!(failure(&outcome, 1).1.contains("browser_查询订单"));
    for id in [2, 3] {
        let (kind, message) = failure(&outcome, id);
        assert_eq!(kind, FailureKind::Arguments);
        assert!(message.contains("人数") && message.contains("integer"), "{message}");
    }
    assert_eq!(outcome.calls.len(), 1, "only the last one was called");
}

/// B3: a cycle is refused before any tool runs.
#[tokio::test(start_paused = true)]
async fn b3_a_cycle_is_refused_before_anything_runs() {
    let calls = Counter::default();
    let counter = calls.clone();
    let count = tool(spec("count", Effect::ReadOnly), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let steps = vec![step(1, "count", &[]), step(2, "count", &[3]), step(3, "count", &[2])];
    let error = executor([count]).run(&plan(steps), options("run")).await.unwrap_err();
    assert!(matches!(error, RunError::Schedule(ScheduleError::Cycle(_))), "{error:?}");
    assert!(error.to_string().ends_with("step2 -> step3 -> step2"), "{error}");
    assert_eq!(calls.get(), 0);
}

/// B3: a panic in a tool is an error result, before and after its first wait; siblings live.
#[tokio::test(start_paused = true)]
async fn b3_a_panic_is_an_error_result() {
    let early = tool(spec("early", Effect::ReadOnly), |_, _| -> std::future::Ready<_> {
        panic!("early: {}", 7)
    });
    let late = tool(spec("late", Effect::ReadOnly), |_, _| async {
        tokio::time::sleep(ms(20)).await;
        panic!("迟了")
    });
    let steps =
        vec![step(1, "early", &[]), step(2, "late", &[]), pause(3, 50, &[]), step(4, "wait", &[2])];
    let outcome = run(&executor([wait(), early, late]), steps).await;
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, "the tool early panicked: early: 7"));
    assert_eq!(failure(&outcome, 2), (FailureKind::Tool, "the tool late panicked: 迟了"));
    assert_eq!(answer(&outcome, 3), r#"{"ms":50}"#);
    assert_eq!(result(&outcome, 4), &skipped(2));
}

/// B3: whatever panics around a call, the run comes to its end.
#[tokio::test(start_paused = true)]
async fn b3_a_panic_around_a_call_ends_the_step_alone() {
    struct Odd(ToolSpec);
    impl foldback_tool::Tool for Odd {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn timeout(&self, _: &str) -> Option<std::time::Duration> {
            panic!("no idea")
        }
        fn call<'a>(
            &'a self,
            _: &'a str,
            _: &'a CallContext,
        ) -> futures::future::BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(async { Ok(ToolOutput::default()) })
        }
    }
    let executor = executor([wait(), Arc::new(Odd(spec("odd", Effect::ReadOnly)))]);
    let steps = vec![step(1, "odd", &[]), pause(2, 50, &[]), step(3, "wait", &[1])];
    let outcome = run(&executor, steps).await;
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, "the call of step1 panicked"));
    assert_eq!(answer(&outcome, 2), r#"{"ms":50}"#);
    assert_eq!(result(&outcome, 3), &skipped(1));
}
