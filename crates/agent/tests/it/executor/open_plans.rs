//! Plans that are still being written, or remade.

use crate::toolkit::{
    Counter, anchor, answer, broken, call, executor, failure, ms, object, options, pause, plan,
    result, settings, skipped, spec, step, text, times, tool, wait, waiting, whole,
};
use foldback_agent::Eager;
use foldback_agent::executor::{Event, Trigger};
use foldback_planner::{Step, StepId, StepResult, Template};
use foldback_tool::{Effect, FailureKind, FunctionTool, ToolError, ToolOutput};
use std::sync::Arc;
use tokio::time::Instant;

/// B2: a step whose dependences have ended starts at once, although the plan is still being written.
#[tokio::test(start_paused = true)]
async fn b2_a_ready_step_does_not_wait_for_the_writer() {
    let executor = executor([wait()]);
    let mut run = executor.open(options("stream")).unwrap();
    // The writer adds a step, then one that waits for it, and takes a second for an unrelated one.
    let writer = async |run: &mut foldback_agent::executor::Run| {
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

/// OP10, OP9: while a new plan is being made, steps that do not wait for the anchor proceed.
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

/// OP12: a new plan does not repeat an effect of an earlier one whose outcome is unknown, even if only its own
/// steps bring the arguments; a plan may contain the same call twice.
#[tokio::test(start_paused = true)]
async fn op12_a_new_plan_does_not_repeat_an_effect() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = FunctionTool::new(spec("pay", Effect::Effectful), move |arguments, _| {
        let is_first = counter.add() == 1;
        async move {
            if is_first {
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::text(arguments))
        }
    });
    let pay = Arc::new(pay.with_timeout(ms(100)));
    let quote = tool(spec("quote", Effect::ReadOnly), |_, _| async {
        Ok(ToolOutput::json(r#"["元", 100]"#))
    });
    let of = |id, what, after: &[u32]| call(id, "pay", object(&[("of", what)]), after);
    let first = vec![step(1, "quote", &[]), of(2, whole(1), &[1])];
    let mut run = executor([pay, quote]).start(&plan(first), options("run")).unwrap();
    while run.next().await.is_some() {}
    let written = Template::Array(vec![text("元"), Template::Literal("1e2".to_owned())]);
    run.extend(&[
        step(3, "quote", &[]),
        of(4, whole(3), &[3]),
        of(5, written, &[]),
        of(6, text("一百"), &[]),
        of(7, text("一百"), &[]),
    ])
    .unwrap();
    let outcome = run.finish().await.unwrap();
    assert_eq!(failure(&outcome, 2).0, FailureKind::Timeout);
    for id in [4, 5] {
        let (kind, message) = failure(&outcome, id);
        assert_eq!(kind, FailureKind::Arguments);
        assert!(message.starts_with("not called: step2 was exactly this"), "{message}");
    }
    for id in [6, 7] {
        assert_eq!(answer(&outcome, id), r#"{"of":"一百"}"#);
    }
    assert_eq!(paid.get(), 3);
}

/// OP11: a replan is wanted after an anchor, a failure, a timeout and `status=fail`, and after nothing
/// else; a tool with the whole context never asks for one (OP15).
#[tokio::test(start_paused = true)]
async fn op11_what_wants_a_new_plan() {
    let weather = tool(spec("weather", Effect::ReadOnly), |_, _| async {
        Ok(ToolOutput::text(r#"{"status": "fail", "原因": "城市不存在"}"#))
    });
    let article = spec("article", Effect::ReadOnly).with_global_context(true);
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
