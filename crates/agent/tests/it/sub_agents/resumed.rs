//! Sub-agents whose process was killed.

use super::{delegate, delegating, journaled, says, states, walk};
use crate::keeping::{Keeping, calling};
use crate::resume::Full;
use crate::script::task;
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{Executor, MemoryJournal, React};
use foldback_llm::ScriptedModel;
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A model whose answers follow from the state of each conversation, so that any process gives the same: two
/// items in parallel, and one that waits for both.
pub(super) fn far_along() -> Arc<ScriptedModel> {
    let items = json!([
        {"id": "a", "task": "甲"}, {"id": "b", "task": "乙"}, {"id": "c", "task": "丙", "depends_on": ["a", "b"]},
    ]);
    Arc::new(ScriptedModel::answering(move |request| {
        let results = request.messages.iter().filter(|m| m.tool_call_id().is_some()).count();
        let work = |n: usize| calling("work", json!({"n": n})).after(ms(10_000));
        match (request.session.as_deref().unwrap_or_default(), results) {
            ("task", 0) => delegate(items.clone()),
            ("task", _) => "完成".into(),
            ("task.a", 0) => work(1),
            ("task.a", _) => says("甲好了", 10),
            ("task.b", n @ 0..3) => work(n + 2),
            ("task.b", _) => says("乙好了", 10),
            (_, 0) => work(9),
            (_, _) => says("丙好了", 10),
        }
    }))
}

/// Takes a second, and counts its calls.
pub(super) fn work(done: &Counter) -> Arc<dyn Tool> {
    let done = done.clone();
    tool(spec("work", Effect::Idempotent), move |arguments, _| {
        let done = done.clone();
        async move {
            tokio::time::sleep(ms(1_000)).await;
            done.add();
            Ok(ToolOutput::json(arguments))
        }
    })
}

/// The number of calls of `work`, and the results of a run that is not stopped.
const WORK: usize = 5;

async fn undisturbed() -> Vec<Vec<String>> {
    let (mut context, done) = (Keeping::new(), Counter::default());
    walk(&delegating(&far_along(), vec![work(&done)], |sub| sub), &mut context).await;
    assert_eq!(done.get(), WORK);
    conversations(&context)
}

/// TD3: a run that is stopped in the middle of two sub-agents resumes in each where it was: finished work is
/// not repeated, and the end is that of a run that was not stopped.
#[tokio::test(start_paused = true)]
async fn td3_sub_agents_go_on_where_they_stood() {
    let undisturbed = undisturbed().await;
    for stop_after in [3, 12, 21, 24, 33, 45, 47, 56, 60] {
        let journal = Arc::new(MemoryJournal::default());
        let (done, mut context) = (Counter::default(), Keeping::new());
        let executor = Executor::new(Toolbox::default()).with_journal(journal);
        let agent = || journaled(&far_along(), vec![work(&done)], executor.clone(), |sub| sub);
        {
            // Dropped in the middle, as a process that is killed.
            let (agent, task) = (agent(), task("写报告"));
            let react = React::default();
            let run = agent.run(&react, &mut context, &task);
            let stopped = tokio::time::timeout(Duration::from_secs(stop_after), run).await;
            assert!(stopped.is_err(), "{stop_after}");
        }
        // Spawned tasks are dropped before another process begins.
        tokio::time::sleep(ms(10)).await;
        let mut context = context.reopened();
        let report = walk(&agent(), &mut context).await;
        assert_eq!(report.answer(), Some("完成"), "{stop_after}");
        assert_eq!(conversations(&context), undisturbed, "{stop_after}");
        assert_eq!(done.get(), WORK, "{stop_after}: no call with a result is made again");
        assert_eq!(states(&context), ["task.a=completed", "task.b=completed", "task.c=completed"]);
    }
}

/// TD3: the same wherever the journal accepts nothing more. Only calls whose end could not be recorded may be
/// repeated, and two are in progress at once.
#[tokio::test(start_paused = true)]
async fn td3_sub_agents_go_on_from_every_record() {
    let undisturbed = undisturbed().await;
    let mut stops = 0;
    for room in 0.. {
        let journal = Arc::new(Full(MemoryJournal::default(), Mutex::new(room)));
        let (done, mut context) = (Counter::default(), Keeping::new());
        let executor = Executor::new(Toolbox::default()).with_journal(journal.clone());
        let agent = || journaled(&far_along(), vec![work(&done)], executor.clone(), |sub| sub);
        let is_over = agent().run(&React::default(), &mut context, &task("写报告")).await.is_ok();
        *journal.1.lock().unwrap() = usize::MAX;
        tokio::time::sleep(ms(10)).await;
        let mut context = context.reopened();
        let report = walk(&agent(), &mut context).await;
        assert_eq!(report.answer(), Some("完成"), "{room}");
        assert_eq!(conversations(&context), undisturbed, "{room}");
        assert!((WORK..=WORK + 2).contains(&done.get()), "{room}: {} calls", done.get());
        assert_eq!(states(&context), ["task.a=completed", "task.b=completed", "task.c=completed"]);
        if is_over {
            break;
        }
        stops += 1;
    }
    assert!(stops > 60, "the run was stopped {stops} times");
}

fn conversations(context: &Keeping) -> Vec<Vec<String>> {
    context.todos().iter().map(|todo| context.said(todo)).collect()
}
