//! The calls that may run at the same time.

use crate::toolkit::{
    answer, call, exclusive, executor, ms, object, pause, run, settings, spec, step, times, tool,
    wait, waiting,
};
use foldback_agent::Retry;
use foldback_planner::{StepId, Template};
use foldback_tool::{Concurrency, Effect, ToolError, ToolOutput};

/// N8: never more calls at once than allowed, and always as many as that.
#[tokio::test(start_paused = true)]
async fn n8_concurrency_is_bounded() {
    let executor = executor([wait()]).with_settings(settings(|s| s.max_parallel = 3));
    let steps = (1..=10).map(|id| pause(id, 100, &[])).collect();
    assert_eq!(run(&executor, steps).await.elapsed, ms(400));
}

/// N8: an exclusive call runs alone, in the order of the plan, and neither kind starves.
#[tokio::test(start_paused = true)]
async fn n8_exclusive_calls_run_alone_and_in_order() {
    let executor = executor([wait(), waiting(exclusive("edit"))]);
    let edit = |id, after: &[u32]| {
        call(id, "edit", object(&[("ms", Template::Literal("10".into()))]), after)
    };
    let steps = vec![
        pause(1, 30, &[]),
        pause(2, 50, &[]),
        edit(3, &[]),
        pause(4, 20, &[]),
        pause(5, 20, &[]),
        edit(6, &[]),
    ];
    let outcome = run(&executor, steps).await;
    assert_eq!(times(&outcome, 3), (ms(50), ms(60)), "it waits for what runs");
    assert_eq!(times(&outcome, 4), (ms(60), ms(80)), "what came later waits for it");
    assert_eq!(times(&outcome, 5), (ms(60), ms(80)));
    assert_eq!(times(&outcome, 6), (ms(80), ms(90)));
    // A stream of parallel calls that each make another one ready does not keep it waiting.
    let chain =
        (1..=50).map(|id| pause(id, 10, if id == 1 { vec![] } else { vec![id - 1] }.as_slice()));
    let outcome = run(&executor, chain.chain([pause(51, 5, &[]), edit(52, &[51])]).collect()).await;
    assert_eq!(times(&outcome, 52), (ms(10), ms(20)));
}

/// N8: a waiting call takes no place: with two places, a waiting exclusive call leaves both to others.
#[tokio::test(start_paused = true)]
async fn n8_waiting_takes_no_place() {
    let executor = executor([wait(), waiting(exclusive("edit"))])
        .with_settings(settings(|s| s.max_parallel = 2));
    let steps = vec![
        pause(1, 10, &[]),
        pause(2, 10, &[]),
        step(3, "edit", &[]),
        pause(4, 10, &[]),
        pause(5, 10, &[]),
    ];
    assert_eq!(run(&executor, steps).await.elapsed, ms(20));
}

/// N3, N8: a call that waits for its next attempt takes no place, and has one again for the attempt; this
/// also holds for an exclusive call.
#[tokio::test(start_paused = true)]
async fn n8_waiting_for_another_attempt_takes_no_place() {
    for concurrency in [Concurrency::Parallel, Concurrency::Exclusive] {
        let flaky = spec("flaky", Effect::ReadOnly).with_concurrency(concurrency);
        let flaky = tool(flaky, |_, context| async move {
            tokio::time::sleep(ms(10)).await;
            match context.attempt {
                3 => Ok(ToolOutput::text("at last")),
                _ => Err(ToolError::transient("503")),
            }
        });
        let executor = executor([wait(), flaky]).with_settings(settings(|s| {
            s.max_parallel = 1;
            s.retry = Retry::default().with_attempts(3).with_first(ms(1_000)).with_most(ms(1_000));
        }));
        // The first one rests for at least half a second, twice.
        let steps = vec![step(1, "flaky", &[]), pause(2, 5, &[]), pause(3, 3_000, &[])];
        let outcome = run(&executor, steps).await;
        assert_eq!(times(&outcome, 2), (ms(10), ms(15)));
        assert_eq!(times(&outcome, 3), (ms(15), ms(3_015)));
        assert_eq!(answer(&outcome, 1), "at last");
        assert!(times(&outcome, 1).1 >= ms(3_015 + 10 + 500 + 10), "{:?}", times(&outcome, 1));
        assert_eq!(outcome.calls[&StepId(1)].attempts, 3);
    }
}
