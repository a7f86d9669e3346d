//! Calls that hang, and runs that are cancelled.

use crate::toolkit::{
    Counter, anchor, answer, call, executor, failure, ms, object, options, pause, plan, run,
    settings, spec, step, tool, wait,
};
use foldback_agent::Retry;
use foldback_agent::executor::Event;
use foldback_planner::{StepId, Template};
use foldback_tool::{CallContext, Effect, FailureKind, ToolError, ToolOutput, ToolSpec};
use std::sync::Arc;
use std::sync::mpsc;
use tokio::time::Instant;

/// N2: a tool that hangs is an error of its own; siblings are delivered at once, and the limit may be
/// the settings', the tool's, or the call's.
#[tokio::test(start_paused = true)]
async fn n2_a_hanging_tool_is_an_error_result() {
    struct ByArgument(ToolSpec);
    impl foldback_tool::Tool for ByArgument {
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
        // Its token is cancelled although the call is dropped: a helper task of its own notices.
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

/// N2: a cancelled run asks its tools to stop, gives them a short grace, keeps the results so far, and
/// starts nothing more.
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

/// N2: a call that ended within the grace keeps its result, even if the run was driven only later.
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

/// N2: a call that answers a cancellation with an error was cancelled: it is not a permanent failure of
/// the step. The wait before another attempt ends as well.
#[tokio::test(start_paused = true)]
async fn n2_stopping_when_asked_is_no_failure() {
    let polite = tool(spec("polite", Effect::ReadOnly), |_, context| async move {
        context.cancelled.cancelled().await;
        Err(ToolError::permanent("I was asked to stop"))
    });
    let down =
        tool(spec("down", Effect::Idempotent), |_, _| async { Err(ToolError::transient("503")) });
    let executor = executor([polite, down]).with_settings(settings(|s| {
        s.retry = Retry::default().with_attempts(3).with_first(ms(60_000)).with_most(ms(60_000));
        s.quota.wall_time = Some(ms(100));
    }));
    let outcome = run(&executor, vec![step(1, "polite", &[]), step(2, "down", &[])]).await;
    assert_eq!(outcome.elapsed, ms(100));
    let stopped = "the run was cancelled: I was asked to stop";
    assert_eq!(failure(&outcome, 1), (FailureKind::Quota, stopped));
    assert_eq!(failure(&outcome, 2), (FailureKind::Quota, "the run was cancelled: 503"));
}
