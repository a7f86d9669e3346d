//! The executor: order, failures, bounds, cancellation.

use crate::toolkit::{
    Counter, anchor, answer, broken, call, exclusive, executor, failure, ms, object, options,
    pause, plan, result, run, settings, skipped, spec, step, text, times, tool, wait, waiting,
    whole,
};
use foldback_agent::{
    CallContext, Eager, Event, FunctionTool, Quota, Retry, RunError, RunOptions, Settings,
    ToolError, ToolOutput, Trigger,
};
use foldback_planner::{
    Concurrency, Effect, FailureKind, FailurePolicy, Limits, Piece, Reference, Step, StepId,
    StepResult, Template, ToolSpec,
};
use std::sync::Arc;
use std::sync::mpsc;
use tokio::time::Instant;

/// OP7, ET2: what may run together takes as long as the longest, what must not as long as the sum.
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

/// OP7, OP3: a step sees what the ones before it answered, Chinese included.
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

/// B8, N1: a tool that fails keeps its siblings; what waits for it is skipped, and names it.
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

/// OP16: `fail_fast` also calls off what is ready and waits for its turn.
#[tokio::test(start_paused = true)]
async fn op16_fail_fast_calls_off_what_is_queued() {
    let first = Step { on_failure: FailurePolicy::FailFast, ..step(1, "broken", &[]) };
    let steps = vec![first, pause(2, 50, &[]), pause(3, 50, &[])];
    let executor = executor([wait(), broken()]).with_settings(settings(|s| s.max_parallel = 1));
    let outcome = run(&executor, steps.clone()).await;
    assert_eq!([result(&outcome, 2), result(&outcome, 3)], [&skipped(1), &skipped(1)]);
    // A step without a tool fails before anything of its moment is called.
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
    assert_eq!(
        error.to_string(),
        "these steps wait for each other and would never start: step2 -> step3 -> step2"
    );
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

/// B2: a step whose dependences have ended starts at once, although the plan is still being written.
#[tokio::test(start_paused = true)]
async fn b2_a_ready_step_does_not_wait_for_the_writer() {
    let executor = executor([wait()]);
    let mut run = executor.open(options("stream")).unwrap();
    // The writer brings a step, then one that waits for it, and takes a second over an unrelated one.
    let writer = async |run: &mut foldback_agent::Run| {
        let written = [(0, pause(1, 100, &[])), (0, pause(2, 10, &[1])), (1_000, pause(3, 0, &[]))];
        let mut left = written.into_iter();
        let mut due: Option<(Instant, Step)> = None;
        loop {
            if due.is_none() {
                due = left.next().map(|(wait, step)| (Instant::now() + ms(wait), step));
            }
            tokio::select! {
                () = tokio::time::sleep_until(due.as_ref().map_or(Instant::now(), |due| due.0)), if due.is_some() => {
                    run.extend(&[due.take().unwrap().1]).unwrap();
                }
                Some(_) = run.next() => {}
                else => break,
            }
        }
    };
    writer(&mut run).await;
    run.seal().unwrap();
    let outcome = run.finish().await.unwrap();
    assert_eq!(times(&outcome, 1), (ms(0), ms(100)));
    assert_eq!(times(&outcome, 2), (ms(100), ms(110)), "LLMCompiler starts it at 1,002 ms");
    assert_eq!(times(&outcome, 3).0, ms(1_000));
}

/// OP8, N9: while the plan is being written, only read-only tools start; the rest when it is sealed.
#[tokio::test(start_paused = true)]
async fn op8_effects_wait_for_the_end_of_the_plan() {
    let pay = || waiting(spec("pay", Effect::Effectful));
    let steps = [step(1, "wait", &[]), step(2, "pay", &[1]), step(3, "wait", &[2])];
    let times_with = async |eager: Eager| {
        let executor = executor([wait(), pay()]).with_settings(settings(|s| s.eager = eager));
        let mut run = executor.open(options("stream")).unwrap();
        for step in &steps {
            run.extend(std::slice::from_ref(step)).unwrap();
        }
        while run.next().await.is_some() {}
        tokio::time::sleep(ms(500)).await;
        run.seal().unwrap();
        let outcome = run.finish().await.unwrap();
        [1, 2, 3].map(|id| times(&outcome, id).0.as_millis())
    };
    assert_eq!(times_with(Eager::ReadOnly).await, [0, 500, 500]);
    assert_eq!(times_with(Eager::Nothing).await, [500, 500, 500]);
    assert_eq!(times_with(Eager::Everything).await, [0, 0, 0]);
}

/// OP8: a plan that breaks off has had no effect.
#[tokio::test(start_paused = true)]
async fn op8_a_plan_that_breaks_off_has_no_effect() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let mut run = executor([wait(), pay]).open(options("stream")).unwrap();
    run.extend(&[step(1, "pay", &[]), pause(2, 10, &[]), step(3, "pay", &[7])]).unwrap();
    while run.next().await.is_some() {}
    assert!(
        run.seal().unwrap_err().to_string().contains("step7"),
        "step3 waits for what never came"
    );
    let outcome = run.finish().await.unwrap();
    assert_eq!(paid.get(), 0);
    assert_eq!(failure(&outcome, 1).0, FailureKind::Cancelled);
    assert_eq!(answer(&outcome, 2), r#"{"ms":10}"#);
    assert_eq!(failure(&outcome, 3).0, FailureKind::Cancelled, "each step has one result");
}

/// OP10, OP9: while a new plan is being thought of, what does not wait for the anchor goes on.
#[tokio::test(start_paused = true)]
async fn op10_independent_steps_go_on_during_a_replan() {
    let first = vec![
        pause(1, 10, &[]),
        anchor(2, &[1]),
        step(3, "wait", &[2]),
        pause(4, 50, &[]),
        pause(5, 20, &[4]),
    ];
    let mut run = executor([wait()]).start(&plan(first), options("run")).unwrap();
    let mut asked = 0;
    let mut planner: Option<std::pin::Pin<Box<tokio::time::Sleep>>> = None;
    loop {
        tokio::select! {
            Some(event) = run.next() => {
                if matches!(event, Event::ReplanWanted { trigger: Trigger::Anchor, .. }) {
                    asked += 1;
                    assert_eq!(run.anchors_reached().collect::<Vec<_>>(), [StepId(2)]);
                    planner = Some(Box::pin(tokio::time::sleep(ms(1_000))));
                }
            }
            () = async { planner.as_mut().unwrap().await }, if planner.is_some() => {
                planner = None;
                run.replanned(StepId(2)).unwrap();
                run.extend(&[pause(6, 5, &[2]), pause(7, 5, &[1])]).unwrap();
            }
            else => break,
        }
    }
    assert!(run.is_done());
    let outcome = run.finish().await.unwrap();
    assert_eq!(asked, 1, "an anchor asks once");
    assert_eq!(times(&outcome, 5), (ms(50), ms(70)), "it went on while the planner thought");
    assert_eq!(times(&outcome, 6), (ms(1_010), ms(1_015)));
    assert_eq!(result(&outcome, 3), &skipped(2), "the new plan says what comes instead");
    assert!(matches!(result(&outcome, 2), StepResult::Success { .. }));
}

/// OP11: a replan is wanted after an anchor, a failure, a timeout and `status=fail`, and after nothing
/// else; the one with the whole context never asks (OP15).
#[tokio::test(start_paused = true)]
async fn op11_what_wants_a_new_plan() {
    let weather = tool(spec("weather", Effect::ReadOnly), |_, _| async {
        Ok(ToolOutput::text(r#"{"status": "fail", "原因": "城市不存在"}"#))
    });
    let article = ToolSpec { global_context: true, ..spec("article", Effect::ReadOnly) };
    let article = tool(article, |_, _| async { Err(ToolError::permanent("no ink")) });
    let slow = FunctionTool::new(spec("slow", Effect::ReadOnly), |_, _| std::future::pending());
    let slow = Arc::new(slow.with_timeout(ms(100)));
    let steps = vec![
        step(1, "wait", &[]),
        step(2, "broken", &[]),
        step(3, "weather", &[]),
        step(4, "slow", &[]),
        step(5, "article", &[]),
        anchor(6, &[1]),
        step(7, "wait", &[2]),
    ];
    let mut run = executor([wait(), broken(), weather, article, slow])
        .start(&plan(steps), options("run"))
        .unwrap();
    let mut wanted = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::ReplanWanted { step, trigger } = event {
            wanted.push((step.0, trigger));
        }
    }
    wanted.sort_unstable_by_key(|wanted| wanted.0);
    let (failed, status) = (Trigger::Failure, Trigger::StatusFail);
    assert_eq!(wanted, [(2, failed), (3, status), (4, failed), (6, Trigger::Anchor)]);
    let outcome = run.finish().await.unwrap();
    let (kind, message) = failure(&outcome, 3);
    assert_eq!(
        (kind, message),
        (FailureKind::Status, r#"{"status": "fail", "原因": "城市不存在"}"#)
    );
    assert_eq!(failure(&outcome, 4).1, "slow did not answer within 100ms and was stopped");
    assert_eq!(failure(&outcome, 6).0, FailureKind::Cancelled, "nobody answered the anchor");
}

/// OP15: only a tool that is flagged sees the whole context.
#[tokio::test(start_paused = true)]
async fn op15_the_whole_context_reaches_flagged_tools_only() {
    let reader = |name: &str, global_context| {
        tool(ToolSpec { global_context, ..spec(name, Effect::ReadOnly) }, |_, context| async move {
            Ok(ToolOutput::text(context.global_context.as_deref().unwrap_or("nothing")))
        })
    };
    let executor = executor([reader("write_article", true), reader("search", false)]);
    let options = RunOptions { global_context: Some("全部上下文".into()), ..options("run") };
    let steps = vec![step(1, "write_article", &[]), step(2, "search", &[])];
    let outcome = executor.run(&plan(steps), options).await.unwrap();
    assert_eq!((answer(&outcome, 1), answer(&outcome, 2)), ("全部上下文", "nothing"));
}

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

/// N8: what waits takes no place: with two places, a waiting exclusive call leaves both to others.
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

/// N2: a tool that hangs is an error of its own; siblings are delivered at once, and the limit may be
/// the settings', the tool's, or the call's.
#[tokio::test(start_paused = true)]
async fn n2_a_hanging_tool_is_an_error_result() {
    struct ByArgument(ToolSpec);
    impl foldback_agent::Tool for ByArgument {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn timeout(&self, arguments: &str) -> Option<std::time::Duration> {
            Some(ms(crate::toolkit::milliseconds(arguments)))
        }
        fn call<'a>(
            &'a self,
            _: &'a str,
            _: &'a CallContext,
        ) -> futures::future::BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(std::future::pending())
        }
    }
    let told = Counter::default();
    let heard = told.clone();
    let hang = tool(spec("hang", Effect::Effectful), move |_, context| {
        let heard = heard.clone();
        // It is told, although it is dropped: a helper task of its own hears it.
        tokio::spawn(async move {
            context.cancelled.cancelled().await;
            heard.add();
        });
        std::future::pending()
    });
    let executor = executor([wait(), hang, Arc::new(ByArgument(spec("bash", Effect::Effectful)))])
        .with_settings(settings(|s| s.timeout = Some(ms(1_000))));
    let bash = call(3, "bash", object(&[("ms", Template::Literal("250".into()))]), &[]);
    let steps = vec![step(1, "hang", &[]), pause(2, 10, &[]), bash];
    let mut run = executor.start(&plan(steps), options("run")).unwrap();
    let began = Instant::now();
    let mut ended = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::Ended { step, .. } = event {
            ended.push((step.0, began.elapsed().as_millis()));
        }
    }
    assert_eq!(ended, [(2, 10), (3, 250), (1, 1_000)]);
    let outcome = run.finish().await.unwrap();
    let message = "hang did not answer within 1s and was stopped; it may have taken effect";
    assert_eq!(failure(&outcome, 1), (FailureKind::Timeout, message));
    tokio::task::yield_now().await;
    assert_eq!(told.get(), 1);
}

/// N2: a cancelled run tells its tools, gives them a short grace, keeps what there is, and starts
/// nothing more.
#[tokio::test(start_paused = true)]
async fn n2_cancelling_keeps_results_and_gives_grace() {
    let tidy = tool(spec("tidy", Effect::Effectful), |_, context| async move {
        context.cancelled.cancelled().await;
        tokio::time::sleep(ms(40)).await;
        Ok(ToolOutput::text("tidied up"))
    });
    let deaf = tool(spec("deaf", Effect::Effectful), |_, _| std::future::pending());
    let executor = executor([wait(), tidy, deaf]).with_settings(settings(|s| s.grace = ms(200)));
    let options = options("run");
    let token = options.cancelled.clone();
    let steps = vec![
        pause(1, 10, &[]),
        step(2, "tidy", &[]),
        step(3, "deaf", &[]),
        pause(4, 10, &[2]),
        anchor(5, &[1]),
    ];
    let run = executor.start(&plan(steps), options).unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(ms(100)).await;
        token.cancel();
    });
    let outcome = run.finish().await.unwrap();
    assert_eq!(outcome.elapsed, ms(300));
    assert_eq!(answer(&outcome, 1), r#"{"ms":10}"#);
    assert_eq!(answer(&outcome, 2), "tidied up");
    let message = "the run was cancelled while it was being called; it may have taken effect";
    assert_eq!(failure(&outcome, 3), (FailureKind::Cancelled, message));
    assert_eq!(failure(&outcome, 4), (FailureKind::Cancelled, "the run was cancelled"));
    assert_eq!(failure(&outcome, 5), (FailureKind::Cancelled, "the run was cancelled"));
}

/// N2: dropping a run stops its calls.
#[tokio::test(start_paused = true)]
async fn n2_dropping_a_run_cancels_it() {
    let (sender, receiver) = mpsc::channel();
    let guard = tool(spec("guard", Effect::ReadOnly), move |_, context| {
        let sender = sender.clone();
        async move {
            struct Gone(mpsc::Sender<bool>, CallContext);
            impl Drop for Gone {
                fn drop(&mut self) {
                    self.0.send(self.1.cancelled.is_cancelled()).unwrap();
                }
            }
            let _gone = Gone(sender, context);
            std::future::pending().await
        }
    });
    let run = executor([guard]).start(&plan(vec![step(1, "guard", &[])]), options("run")).unwrap();
    tokio::time::sleep(ms(1)).await;
    assert!(receiver.try_recv().is_err(), "it runs");
    drop(run);
    tokio::time::sleep(ms(1)).await;
    assert_eq!(receiver.try_recv(), Ok(true), "it was told, and dropped");
}

/// N2: a tool that blocks its thread cannot hold a cancelled run up for longer than the grace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n2_a_blocking_tool_does_not_hold_the_run_up() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(Some(blocked));
    let block = tool(spec("block", Effect::Effectful), move |_, _| {
        let blocked = blocked.lock().unwrap().take().unwrap();
        async move {
            // Ends when the test does.
            let _ = blocked.recv();
            Ok(ToolOutput::default())
        }
    });
    let executor = executor([wait(), block]).with_settings(settings(|s| s.grace = ms(1)));
    let steps = plan(vec![step(1, "block", &[]), step(2, "wait", &[])]);
    let mut run = executor.start(&steps, options("run")).unwrap();
    while run.next().await != Some(Event::Ended { step: StepId(2), success: true }) {}
    run.cancellation().cancel();
    let outcome = run.finish().await.unwrap();
    assert_eq!(answer(&outcome, 2), "{}");
    assert_eq!(failure(&outcome, 1).0, FailureKind::Cancelled);
    drop(release);
}

/// N2: a call that ended within the grace keeps its result, also where nobody looked until later.
#[tokio::test(start_paused = true)]
async fn n2_what_ended_within_the_grace_is_kept() {
    let tidy = tool(spec("tidy", Effect::Effectful), |_, context| async move {
        context.cancelled.cancelled().await;
        tokio::time::sleep(ms(40)).await;
        Ok(ToolOutput::text("tidied up"))
    });
    let executor = executor([tidy]).with_settings(settings(|s| s.grace = ms(200)));
    let steps = plan(vec![step(1, "tidy", &[]), step(2, "tidy", &[1])]);
    let mut run = executor.start(&steps, options("run")).unwrap();
    run.next().await;
    tokio::time::sleep(ms(5)).await;
    run.cancellation().cancel();
    run.next().await;
    tokio::time::sleep(ms(500)).await;
    assert_eq!(answer(&run.finish().await.unwrap(), 1), "tidied up");
}

/// S10: the bound on all answers holds for steps that were ready together; an answer that is given as
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
    let message = "not called: the calls so far answered 200 bytes; a run ends at 150";
    assert_eq!(failure(&outcome, 20), (FailureKind::Quota, message));

    let outcome = run(&executor, vec![step(1, "json", &[]), step(2, "long", &[])]).await;
    assert_eq!(answer(&outcome, 1).len(), 100);
    let message =
        format!("{}... (the first 99 of 3000 bytes; more are not handed on)", "雨".repeat(33));
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

/// N3, N8: a call that waits for its next attempt takes no place, and has one again for the attempt;
/// also one that runs alone.
#[tokio::test(start_paused = true)]
async fn n8_waiting_for_another_attempt_takes_no_place() {
    for concurrency in [Concurrency::Parallel, Concurrency::Exclusive] {
        let flaky = ToolSpec { concurrency, ..spec("flaky", Effect::ReadOnly) };
        let flaky = tool(flaky, |_, context| async move {
            tokio::time::sleep(ms(10)).await;
            match context.attempt {
                3 => Ok(ToolOutput::text("at last")),
                _ => Err(ToolError::transient("503")),
            }
        });
        let executor = executor([wait(), flaky]).with_settings(settings(|s| {
            s.max_parallel = 1;
            s.retry = Retry { attempts: 3, first: ms(1_000), most: ms(1_000) };
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

/// N3: only what does no harm twice is tried again, only after a transient error, and each attempt has
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

/// N3: attempts are bounded, and the last failure says how many there were.
#[tokio::test(start_paused = true)]
async fn n3_attempts_are_bounded() {
    let down =
        tool(spec("down", Effect::Idempotent), |_, _| async { Err(ToolError::transient("503")) });
    let executor = executor([down]).with_settings(settings(|s| s.retry.attempts = 5));
    let outcome = run(&executor, vec![step(1, "down", &[])]).await;
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, "503 (after 5 attempts)"));
}

/// N3: waits double, stay in their bounds, and are the same for the same call.
#[test]
fn n3_waits_double_within_bounds() {
    let retry = Retry { attempts: 9, first: ms(100), most: ms(1_000) };
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

/// S10: calls, time, bytes, steps and depth are bounded, each with a typed error.
#[tokio::test(start_paused = true)]
async fn s10_quotas_are_typed_errors() {
    let with = |quota: Quota| {
        executor([wait(), broken()]).with_settings(Settings { quota, ..Settings::default() })
    };

    let quota = Quota { calls: 2, ..Quota::default() };
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
    assert_eq!(
        failure(&outcome, 3),
        (FailureKind::Quota, "not called: a run makes at most 2 calls")
    );
    assert_eq!(result(&outcome, 4), &skipped(3));

    let quota = Quota { wall_time: Some(ms(100)), ..Quota::default() };
    let outcome =
        run(&with(quota), vec![pause(1, 60, &[]), pause(2, 5_000, &[1]), pause(3, 1, &[2])]).await;
    assert_eq!(answer(&outcome, 1), r#"{"ms":60}"#);
    let message = "the run reached its limit of 100ms while it was being called";
    assert_eq!(failure(&outcome, 2), (FailureKind::Quota, message));
    assert_eq!(failure(&outcome, 3), (FailureKind::Quota, "the run reached its limit of 100ms"));

    let quota = Quota { plan: Limits { steps: 2, ..Limits::default() }, ..Quota::default() };
    let three = plan(vec![step(1, "wait", &[]), step(2, "wait", &[]), step(3, "wait", &[])]);
    let error = with(quota).run(&three, options("run")).await.unwrap_err();
    assert!(matches!(error, RunError::Limit(_)), "{error:?}");
    assert_eq!(error.to_string(), "the plan has 3 steps; at most 2 are allowed");

    let quota = Quota { plan: Limits { bound_bytes: 38, ..Limits::default() }, ..Quota::default() };
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

    let quota = Quota { run_output_bytes: 20, ..Quota::default() };
    let big = |id, after: &[u32]| call(id, "wait", object(&[("t", text("一二三四五六七"))]), after);
    let outcome = run(&with(quota), vec![big(1, &[]), big(2, &[1])]).await;
    assert_eq!(failure(&outcome, 2).0, FailureKind::Quota);
}

/// S10: an answer over the limit is not cut: a part would mislead. The bound counts bytes, and one that
/// just fits is whole.
#[tokio::test(start_paused = true)]
async fn s10_an_answer_is_handed_on_whole_or_not_at_all() {
    let say = tool(spec("say", Effect::ReadOnly), |arguments, _| async move {
        let count = crate::toolkit::milliseconds(&arguments);
        Ok(ToolOutput::text("雨".repeat(usize::try_from(count).unwrap())))
    });
    let quota = Quota { output_bytes: 30, ..Quota::default() };
    let executor = executor([say]).with_settings(Settings { quota, ..Settings::default() });
    let say = |id, count: u64| Step {
        ..call(id, "say", object(&[("ms", Template::Literal(count.to_string()))]), &[])
    };
    let outcome = run(&executor, vec![say(1, 10), say(2, 11)]).await;
    assert_eq!(answer(&outcome, 1), "雨".repeat(10));
    let message = "say was called and answered 33 bytes; at most 30 are handed on, and a part would \
                   mislead: ask it for less, or for a part";
    assert_eq!(failure(&outcome, 2), (FailureKind::Quota, message));
}

/// S10: a tool that runs plans itself does so only so deep.
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
    let message =
        "this run would stand inside 8 others; at most 8 runs may stand inside each other";
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, message));
}

/// OP17: the outcome tells success, failure and skipped apart for every step, in a trace as well.
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

/// N2: a call that answers a cancellation with an error was cancelled: it is not that step's failure
/// for good. The wait before another attempt ends as well.
#[tokio::test(start_paused = true)]
async fn n2_stopping_when_asked_is_no_failure() {
    let polite = tool(spec("polite", Effect::ReadOnly), |_, context| async move {
        context.cancelled.cancelled().await;
        Err(ToolError::permanent("I was asked to stop"))
    });
    let down =
        tool(spec("down", Effect::Idempotent), |_, _| async { Err(ToolError::transient("503")) });
    let executor = executor([polite, down]).with_settings(settings(|s| {
        s.retry = Retry { attempts: 3, first: ms(60_000), most: ms(60_000) };
        s.quota.wall_time = Some(ms(100));
    }));
    let outcome = run(&executor, vec![step(1, "polite", &[]), step(2, "down", &[])]).await;
    assert_eq!(outcome.elapsed, ms(100));
    let stopped = "the run was cancelled: I was asked to stop";
    assert_eq!(failure(&outcome, 1), (FailureKind::Quota, stopped));
    assert_eq!(failure(&outcome, 2), (FailureKind::Quota, "the run was cancelled: 503"));
}

/// S10: the limit on time holds while nobody looks, too.
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

/// B3: whatever panics around a call, the run ends.
#[tokio::test(start_paused = true)]
async fn b3_a_panic_around_a_call_ends_the_step_alone() {
    struct Odd(ToolSpec);
    impl foldback_agent::Tool for Odd {
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
