//! The limits of a run.

use crate::toolkit::{
    Counter, answer, broken, call, executor, failure, ms, object, options, pause, plan, result,
    run, settings, skipped, spec, step, text, tool, wait,
};
use foldback_agent::{Quota, RunError, RunOptions, Settings};
use foldback_planner::{Limits, Piece, Reference, Step, StepId, StepResult, Template};
use foldback_tool::{CallContext, Effect, FailureKind, ToolError, ToolOutput};

/// S10: the limit on all answers holds for steps that were ready together; an answer that is given as
/// text and as the same JSON counts once; a long error message is cut between characters, and says so.
#[tokio::test(start_paused = true)]
async fn s10_output_is_bounded_for_parallel_steps_and_errors() {
    let called = Counter::default();
    let counter = called.clone();
    let big = tool(spec("big", Effect::ReadOnly), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::text("x".repeat(100))) }
    });
    let json = tool(spec("json", Effect::ReadOnly), |_, _| async {
        Ok(ToolOutput::json(format!(r#"{{"a":"{}"}}"#, "x".repeat(92))))
    });
    let long = tool(spec("long", Effect::ReadOnly), |_, _| async {
        Err(ToolError::permanent("雨".repeat(1_000)))
    });
    let executor = executor([big, json, long]).with_settings(settings(|s| {
        s.max_parallel = 1;
        s.quota.run_output_bytes = 150;
        s.quota.output_bytes = 100;
    }));
    let outcome = run(&executor, (1..=20).map(|id| step(id, "big", &[])).collect()).await;
    assert_eq!(called.get(), 2);
    let (kind, message) = failure(&outcome, 20);
    assert_eq!(kind, FailureKind::Quota);
    assert!(message.contains("200 bytes") && message.contains("150"), "{message}");

    let outcome = run(&executor, vec![step(1, "json", &[]), step(2, "long", &[])]).await;
    assert_eq!(answer(&outcome, 1).len(), 100);
    let message =
        format!("{}... (the first 99 of 3000 bytes; the rest is not passed on)", "雨".repeat(33));
    assert_eq!(failure(&outcome, 2), (FailureKind::Tool, message.as_str()));
}

/// S10: a limit that no clock reaches is no limit.
#[tokio::test(start_paused = true)]
async fn s10_the_longest_time_is_no_limit() {
    let executor = executor([wait()]).with_settings(settings(|s| {
        s.quota.wall_time = Some(std::time::Duration::MAX);
        s.timeout = Some(std::time::Duration::MAX);
        s.grace = std::time::Duration::MAX;
    }));
    assert_eq!(answer(&run(&executor, vec![pause(1, 5, &[])]).await, 1), r#"{"ms":5}"#);
}

/// S10: calls, time, bytes, steps and depth are limited, each with a typed error.
#[tokio::test(start_paused = true)]
async fn s10_quotas_are_typed_errors() {
    let with = |quota: Quota| {
        executor([wait(), broken()]).with_settings(Settings::default().with_quota(quota))
    };

    let quota = Quota::default().with_calls(2);
    let outcome = run(
        &with(quota),
        vec![
            step(1, "wait", &[]),
            step(2, "wait", &[1]),
            step(3, "wait", &[2]),
            step(4, "wait", &[3]),
        ],
    )
    .await;
    assert_eq!(answer(&outcome, 2), "{}");
    let (kind, message) = failure(&outcome, 3);
    assert!(kind == FailureKind::Quota && message.contains("at most 2 calls"), "{message}");
    assert_eq!(result(&outcome, 4), &skipped(3));

    let quota = Quota::default().with_wall_time(ms(100));
    let outcome =
        run(&with(quota), vec![pause(1, 60, &[]), pause(2, 5_000, &[1]), pause(3, 1, &[2])]).await;
    assert_eq!(answer(&outcome, 1), r#"{"ms":60}"#);
    for (step, was_called) in [(2, true), (3, false)] {
        let (kind, message) = failure(&outcome, step);
        assert!(kind == FailureKind::Quota && message.contains("limit of 100ms"), "{message}");
        assert_eq!(message.contains("while it was being called"), was_called, "{message}");
    }

    let quota = Quota::default().with_plan(Limits::default().with_steps(2));
    let three = plan(vec![step(1, "wait", &[]), step(2, "wait", &[]), step(3, "wait", &[])]);
    let error = with(quota).run(&three, options("run")).await.unwrap_err();
    assert!(matches!(error, RunError::Limit(_)), "{error:?}");

    let quota = Quota::default().with_plan(Limits::default().with_bound_bytes(38));
    let twice = |before: &str| {
        let pieces =
            [1, 1].map(|id| Piece::Reference(Reference { step: StepId(id), path: vec![] }));
        let pieces = [Piece::Text(before.to_owned())].into_iter().chain(pieces).collect();
        object(&[("t", Template::Mixed(pieces))])
    };
    let steps = vec![
        call(1, "wait", object(&[("t", text("雨"))]), &[]),
        call(2, "wait", twice(""), &[1]),
        call(3, "wait", twice("= "), &[1]),
    ];
    let outcome = run(&with(quota), steps).await;
    assert_eq!(answer(&outcome, 2).len(), 38);
    assert_eq!(failure(&outcome, 3).0, FailureKind::Quota);

    let quota = Quota::default().with_run_output_bytes(20);
    let big = |id, after: &[u32]| call(id, "wait", object(&[("t", text("一二三四五六七"))]), after);
    let outcome = run(&with(quota), vec![big(1, &[]), big(2, &[1])]).await;
    assert_eq!(failure(&outcome, 2).0, FailureKind::Quota);
}

/// S10: an answer over the limit is not cut, since a part would mislead. The limit counts bytes, and an
/// answer that just fits is whole.
#[tokio::test(start_paused = true)]
async fn s10_an_answer_is_handed_on_whole_or_not_at_all() {
    let say = tool(spec("say", Effect::ReadOnly), |arguments, _| async move {
        let count = crate::toolkit::milliseconds(&arguments);
        Ok(ToolOutput::text("雨".repeat(usize::try_from(count).unwrap())))
    });
    let quota = Quota::default().with_output_bytes(30);
    let executor = executor([say]).with_settings(Settings::default().with_quota(quota));
    let say = |id, count: u64| Step {
        ..call(id, "say", object(&[("ms", Template::Literal(count.to_string()))]), &[])
    };
    let outcome = run(&executor, vec![say(1, 10), say(2, 11)]).await;
    assert_eq!(answer(&outcome, 1), "雨".repeat(10));
    let message = "say was called and returned 33 bytes; at most 30 are passed on, and a cut result \
                   would mislead: ask for less, or for a part";
    assert_eq!(failure(&outcome, 2), (FailureKind::Quota, message));
}

/// S10: a tool that itself runs plans can do so only to a limited depth.
#[tokio::test(start_paused = true)]
async fn s10_runs_inside_runs_are_bounded() {
    let deepest = Counter::default();
    let counter = deepest.clone();
    let nest = tool(spec("nest", Effect::ReadOnly), move |_, context| {
        counter.add();
        nest_again(counter.clone(), context)
    });
    fn nest_again(
        counter: Counter,
        context: CallContext,
    ) -> futures::future::BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let inner = tool(spec("nest", Effect::ReadOnly), move |_, context| {
                counter.add();
                nest_again(counter.clone(), context)
            });
            let options = RunOptions::inside(&context);
            let outcome = executor([inner]).run(&plan(vec![step(1, "nest", &[])]), options).await;
            let outcome = outcome.map_err(|error| ToolError::permanent(error.to_string()))?;
            match &outcome.results[&StepId(1)] {
                StepResult::Error { failure } => Err(ToolError::permanent(failure.message.clone())),
                _ => Ok(ToolOutput::default()),
            }
        })
    }
    let outcome = run(&executor([nest]), vec![step(1, "nest", &[])]).await;
    assert_eq!(deepest.get(), 8);
    let (kind, message) = failure(&outcome, 1);
    assert_eq!(kind, FailureKind::Tool);
    assert_eq!(message, RunError::Depth { depth: 8, limit: 8 }.to_string());
}

/// S10: the limit on time also holds while the run is not driven.
#[tokio::test(start_paused = true)]
async fn s10_wall_time_counts_while_the_run_is_idle() {
    let executor =
        executor([wait()]).with_settings(settings(|s| s.quota.wall_time = Some(ms(100))));
    let mut run = executor.open(options("run")).unwrap();
    run.extend(&[pause(1, 10, &[])]).unwrap();
    while run.next().await.is_some() {}
    tokio::time::sleep(ms(500)).await;
    run.extend(&[pause(2, 10, &[1])]).unwrap();
    run.seal().unwrap();
    let outcome = run.finish().await.unwrap();
    assert_eq!(answer(&outcome, 1), r#"{"ms":10}"#);
    assert_eq!(failure(&outcome, 2).0, FailureKind::Quota);
}
