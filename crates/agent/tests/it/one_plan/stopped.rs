//! Runs of one plan that are killed or cancelled.

use super::{SEED_WEATHER, plan};
use crate::script::{agent, conversation, full, model, says, task, text, texts};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{Agent, Executor, MemoryJournal, OnePlan, Stop};
use foldback_llm::Answer;
use foldback_planner::StepResult;
use foldback_tool::{Effect, FailureKind, ToolOutput, Toolbox};
use std::sync::Arc;

/// OP12: a resumed run repeats no request that was answered, and no call that has a result; it comes to the
/// same end.
#[tokio::test(start_paused = true)]
async fn r12_a_resumed_run_asks_and_calls_nothing_twice() {
    let journal = Arc::new(MemoryJournal::default());
    let counter = Counter::default();
    let tools = |counter: Counter| {
        let weather = tool(spec("search_weather", Effect::Effectful), move |_, _| {
            counter.add();
            async { Ok(ToolOutput::text("小雨")) }
        });
        Toolbox::new([weather, says("food_delivery", 1, "送到")]).unwrap()
    };
    let decision = plan(&[(3, "food_delivery", &[1])]);
    let answers = [SEED_WEATHER, decision.as_str(), "好了。"];
    // Killed while the model was asked for its n-th answer.
    for killed_at in 0..answers.len() {
        let run = format!("run-{killed_at}");
        let before = counter.get();
        let hang = Answer::text("never").after(ms(1_000_000_000));
        let first = model(answers[..killed_at].iter().map(|text| Answer::text(text)).chain([hang]));
        let executor = Executor::new(tools(counter.clone())).with_journal(journal.clone());
        let killed = Agent::new(first.clone(), executor);
        let task = foldback_agent::Task::new(&run, "go");
        let mut context = full();
        let one_plan = OnePlan::default();
        let going = killed.run(&one_plan, context.as_mut(), &task);
        assert!(tokio::time::timeout(ms(1_000), going).await.is_err(), "it hangs");
        assert_eq!(first.calls(), killed_at + 1);

        let second = texts(&answers[killed_at..]);
        let executor = Executor::new(tools(counter.clone())).with_journal(journal.clone());
        let resumed = Agent::new(second.clone(), executor);
        let mut context = full();
        let report = resumed.run(&OnePlan::default(), context.as_mut(), &task).await.unwrap();
        assert_eq!(report.answer(), Some("好了。"));
        assert_eq!((second.left(), counter.get() - before), (0, 1), "killed at {killed_at}");
        assert_eq!(text(&report, 3), "送到");
        assert_eq!(conversation(context.as_ref()).len(), 6);
    }
}

/// OP13: a cancelled run ends at once, keeps its results, and says so.
#[tokio::test(start_paused = true)]
async fn op13_a_cancelled_run_ends_with_what_it_has() {
    for cancel_at in [50, 150, 250] {
        let model = model([
            Answer::from(plan(&[(1, "a", &[]), (2, "a", &[1])])).after(ms(100)),
            Answer::text("done").after(ms(100)),
        ]);
        let agent = agent(&model, vec![says("a", 60, "ok")]);
        let task = task("go");
        let cancelled = task.cancelled.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ms(cancel_at)).await;
            cancelled.cancel();
        });
        let report = agent.run(&OnePlan::default(), full().as_mut(), &task).await.unwrap();
        assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled, "at {cancel_at}");
        let cancelled = report.trajectory.results.iter().filter(|result| {
            matches!(&result.result, StepResult::Error { failure } if failure.kind == FailureKind::Cancelled)
        });
        assert_eq!(cancelled.count(), [0, 1, 0][(cancel_at / 100) as usize], "at {cancel_at}");
    }
}
