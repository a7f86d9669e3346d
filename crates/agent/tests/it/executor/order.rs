//! The order of calls, and their inputs.

use crate::toolkit::{
    answer, broken, call, executor, ms, object, options, pause, plan, run, spec, step, text, tool,
    wait, whole,
};
use foldback_tool::{Effect, ToolOutput};

/// OP7, ET2: parallel calls take as long as the longest of them, sequential ones as long as their sum.
#[tokio::test(start_paused = true)]
async fn et2_wall_time_is_max_of_parallel_and_sum_of_sequential() {
    let executor = executor([wait()]);
    let parallel = vec![pause(1, 100, &[]), pause(2, 300, &[]), pause(3, 200, &[])];
    assert_eq!(run(&executor, parallel).await.elapsed, ms(300));
    let sequential = vec![pause(1, 100, &[]), pause(2, 300, &[1]), pause(3, 200, &[2])];
    assert_eq!(run(&executor, sequential).await.elapsed, ms(600));
}

/// ET3, OP7: one result for each step, by number, whatever order they end in.
#[tokio::test(start_paused = true)]
async fn et3_results_stand_by_position_not_by_completion() {
    let steps = (1..=20).map(|id| pause(id, u64::from(100 - id), &[])).collect();
    let outcome = run(&executor([wait()]), steps).await;
    let ids: Vec<u32> = outcome.results.keys().map(|id| id.0).collect();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
    assert_eq!(answer(&outcome, 20), r#"{"ms":80}"#);
}

/// OP7, OP3: a step sees the answers of those before it, also in Chinese.
#[tokio::test(start_paused = true)]
async fn op3_references_are_filled_in_when_a_step_starts() {
    let echo = tool(spec("echo", Effect::ReadOnly), |arguments, _| async move {
        Ok(ToolOutput::json(arguments))
    });
    let steps = vec![
        call(1, "echo", object(&[("城市", text("沈阳 👩‍✈️"))]), &[]),
        call(2, "echo", object(&[("to", whole(1))]), &[1]),
    ];
    let outcome = run(&executor([echo]), steps).await;
    assert_eq!(answer(&outcome, 2), r#"{"to":{"城市":"沈阳 👩‍✈️"}}"#);
}

/// B1: a chain of twenty costs what its tools cost, to the millisecond; nothing is polled for.
#[tokio::test(start_paused = true)]
async fn b1_a_chain_costs_what_its_tools_cost() {
    let chain = |length: u32, each: u64| {
        (1..=length)
            .map(|id| pause(id, each, if id == 1 { vec![] } else { vec![id - 1] }.as_slice()))
            .collect::<Vec<_>>()
    };
    let executor = executor([wait()]);
    assert_eq!(run(&executor, chain(20, 0)).await.elapsed, ms(0));
    assert_eq!(run(&executor, chain(20, 7)).await.elapsed, ms(140));
}

/// OP15: only a tool with `global_context` sees the whole context.
#[tokio::test(start_paused = true)]
async fn op15_the_whole_context_reaches_flagged_tools_only() {
    let reader = |name: &str, global_context| {
        tool(
            spec(name, Effect::ReadOnly).with_global_context(global_context),
            |_, context| async move {
                Ok(ToolOutput::text(context.global_context.as_deref().unwrap_or("nothing")))
            },
        )
    };
    let executor = executor([reader("write_article", true), reader("search", false)]);
    let options = options("run").with_global_context("全部上下文");
    let steps = vec![step(1, "write_article", &[]), step(2, "search", &[])];
    let outcome = executor.run(&plan(steps), options).await.unwrap();
    assert_eq!((answer(&outcome, 1), answer(&outcome, 2)), ("全部上下文", "nothing"));
}

/// OP17: the outcome distinguishes success, failure and skipped for every step, and so does the trace.
#[tokio::test(start_paused = true)]
async fn op17_the_trace_says_what_happened() {
    let steps = vec![
        pause(1, 20, &[]),
        step(2, "broken", &[]),
        step(3, "wait", &[2]),
        step(4, "wait", &[1]),
    ];
    let outcome = run(&executor([wait(), broken()]), steps).await;
    assert_eq!(
        outcome.trace.to_string(),
        "   0.000 s  step1 started wait {\"ms\":20}
   0.000 s  step2 started broken {}
   0.000 s  step2 failed
   0.000 s  step2 wants a new plan: execution failed
   0.000 s  step3 skipped because of step2
   0.020 s  step1 succeeded
   0.020 s  step4 started wait {}
   0.020 s  step4 succeeded
"
    );
}
