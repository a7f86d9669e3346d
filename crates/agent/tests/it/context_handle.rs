//! The handle of a tool to the context of the loop that calls it.

use crate::keeping::Keeping;
use crate::script::{agent, full, model, task, texts};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::{OnePlan, React};
use foldback_core::{ContextManager, TodoId, TodoItem, TodoList, ToolCall};
use foldback_tool::{ContextHandle, Effect, Tool, ToolError, ToolOutput};
use parking_lot::Mutex;
use std::sync::Arc;

/// Adds an item to the list, slowly, over and over.
fn adding(name: &'static str, items: usize) -> Arc<dyn Tool> {
    tool(spec(name, Effect::ReadOnly), move |_, call| async move {
        let context = call.context.clone().unwrap();
        assert_eq!(context.todo().as_str(), "task");
        for nth in 0..items {
            let id = TodoId::new(&format!("{name}-{nth}")).unwrap();
            let added = context.change_todo_list(move |list| {
                let item = TodoItem::new(id, "读");
                let items = list.items().iter().cloned().chain([item]);
                TodoList::new(items.collect())
            });
            added.await.unwrap().unwrap();
            tokio::time::sleep(ms(1)).await;
        }
        let list = context.todo_list().await.map_err(|e| ToolError::permanent(e.to_string()))?;
        Ok(ToolOutput::text(format!("{} of all", list.items().len())))
    })
}

/// TD4: tools that run at the same time both use the context of their loop, without disturbing each other.
#[tokio::test(start_paused = true)]
async fn td4_tools_beside_each_other_share_the_context_of_their_loop() {
    let calls = vec![ToolCall::new("c1", "left", "{}"), ToolCall::new("c2", "right", "{}")];
    let model = model([calls.into(), "done".into()]);
    let agent = agent(&model, vec![adding("left", 20), adding("right", 20)]);
    let mut context = Keeping::new();
    let report = agent.run(&React::default(), &mut context, &task("go")).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    assert_eq!(context.list().items().len(), 40);
}

/// TD4: so do the steps of a plan.
#[tokio::test(start_paused = true)]
async fn td4_steps_of_a_plan_share_the_context_of_their_loop() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "left", "args": {}},
        "step2": {"function": "right", "args": {}}
    }}"#;
    let agent = agent(&texts(&[plan, "done"]), vec![adding("left", 5), adding("right", 5)]);
    let mut context = Keeping::new();
    let report = agent.run(&OnePlan::default(), &mut context, &task("go")).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    assert_eq!(context.list().items().len(), 10);
}

/// Keeps the handle it is lent.
fn keeping(kept: &Arc<Mutex<Option<ContextHandle>>>) -> Arc<dyn Tool> {
    let kept = kept.clone();
    tool(spec("keep", Effect::ReadOnly), move |_, call| {
        *kept.lock() = call.context;
        async { Ok(ToolOutput::text("kept")) }
    })
}

/// TD4: a handle that outlives its loop gets an error that says so, at once.
#[tokio::test(start_paused = true)]
async fn td4_a_handle_that_outlives_its_loop_is_an_error() {
    let kept = Arc::default();
    let model = model([ToolCall::new("c", "keep", "{}").into(), "done".into()]);
    agent(&model, vec![keeping(&kept)])
        .run(&React::default(), full().as_mut(), &task("go"))
        .await
        .unwrap();
    let handle = kept.lock().take().unwrap();
    let error = handle.set_todo_list(TodoList::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the loop of todo task has ended, and its context with it");
    let error = handle.child(TodoId::new("task.1").unwrap()).await.err().unwrap();
    assert!(error.to_string().contains("has ended"), "{error}");
}

/// TD4: work that a tool began continues between the turns of its loop.
#[tokio::test(start_paused = true)]
async fn td4_a_handle_is_good_between_turns() {
    let begin = tool(spec("begin", Effect::ReadOnly), |_, call| async move {
        let context = call.context.clone().unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(ms(50)).await;
            let item = TodoItem::new(TodoId::new("late").unwrap(), "晚");
            let list = TodoList::new(vec![item]).unwrap();
            context.set_todo_list(list).await.unwrap();
        });
        Ok(ToolOutput::text("begun"))
    });
    let slow = foldback_llm::Answer::text("done").after(ms(100));
    let model = model([ToolCall::new("c", "begin", "{}").into(), slow]);
    let mut context = Keeping::new();
    agent(&model, vec![begin]).run(&React::default(), &mut context, &task("go")).await.unwrap();
    assert_eq!(context.list().items()[0].id.as_str(), "late");
    assert_eq!(context.todo().as_str(), "task");
}

/// TD4: a tool whose change of the list panics receives an error; its loop continues, and the list is
/// unchanged.
#[tokio::test(start_paused = true)]
async fn td4_a_change_that_panics_is_an_error() {
    let change = tool(spec("change", Effect::ReadOnly), |_, call| async move {
        let context = call.context.clone().unwrap();
        let changed = context.change_todo_list::<String>(|_| panic!("糟了"));
        Ok(ToolOutput::text(changed.await.unwrap_err().to_string()))
    });
    let model = model([ToolCall::new("c", "change", "{}").into(), "done".into()]);
    let mut context = Keeping::new();
    let report = agent(&model, vec![change])
        .run(&React::default(), &mut context, &task("go"))
        .await
        .unwrap();
    assert_eq!(report.answer(), Some("done"));
    let said = context.said("task").join("\n");
    assert!(said.contains("a change of the todo list panicked: 糟了"), "{said}");
    assert!(context.list().items().is_empty());
}
