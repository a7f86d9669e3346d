//! The plan of a flow as the todo list of its context.

use crate::requests::Results;
use crate::{StepStatus, TextPlan};
use foldback_agent::StrategyRun;
use foldback_core::{
    ContextError, ContextManager, ItemState, Reference, TodoId, TodoItem, TodoList, abbreviated,
    sub_tasks_of,
};

/// Returns the todo of an attempt at a step: it is worked on there, and the step's item in the list names it.
pub(crate) fn step_todo(run: &StrategyRun<'_>, at: usize, attempt: u32) -> TodoId {
    run.child_todo(&step_name(run.todo(), &run.task().run, at, attempt))
}

fn step_name(todo: &TodoId, run: &str, at: usize, attempt: u32) -> String {
    // A run often has the name of its todo.
    let run = if run == todo.as_str() || run.is_empty() { "" } else { &format!("{run}:") };
    let attempt = if attempt > 1 { &format!(":try-{attempt}") } else { "" };
    format!("{run}step-{}{attempt}", at + 1)
}

/// Returns the plan as a todo list, with the results of its steps. A step in progress depends on all that are
/// done before it, so that it may read what they returned.
pub(crate) fn todo_list(
    plan: &TextPlan,
    todo: impl Fn(usize) -> TodoId,
    results: &Results,
) -> Result<TodoList, ContextError> {
    let mut done = Vec::new();
    let items = plan.steps.iter().enumerate().map(|(at, step)| {
        let mut item = TodoItem::new(todo(at), &abbreviated(step.text.trim(), TodoList::MAX_TITLE));
        let result = results.get(&at);
        item.result =
            result.map(|result| abbreviated(&result.text, TodoList::MAX_RESULT).into_owned());
        item.references.extend(result.and_then(|result| result.reference.clone()));
        item.state = match step.status {
            StepStatus::NotStarted => ItemState::Pending,
            StepStatus::InProgress => ItemState::InProgress,
            StepStatus::Completed => ItemState::Completed,
            StepStatus::Blocked => ItemState::Failed,
        };
        if step.status == StepStatus::InProgress {
            let first = done.len().saturating_sub(TodoList::MAX_DEPENDENCIES);
            item = item.after(done.iter().skip(first).cloned());
        } else if step.status == StepStatus::Completed {
            done.push(item.id.clone());
        }
        item
    });
    TodoList::new(items.collect()).map_err(|error| ContextError {
        message: format!("the plan cannot be the todo list: {error}"),
        source: Some(Box::new(error)),
    })
}

/// Passes the list to the context. A list that a killed run left further along is not set back; the run
/// reaches that point again.
pub(crate) fn show(context: &mut dyn ContextManager, list: &TodoList) -> Result<(), ContextError> {
    let kept = sub_tasks_of(context)?;
    if list.check_change(&kept.todo_list()).is_ok() {
        kept.set_todo_list(list)?;
    }
    Ok(())
}

/// Passes the result of an item to the context, and returns whether the context keeps the reference. A result
/// that a killed run left there is not withdrawn.
pub(crate) fn finish(
    context: &mut dyn ContextManager,
    item: &TodoItem,
    reference: Option<&Reference>,
) -> Result<bool, ContextError> {
    let kept = sub_tasks_of(context)?;
    let list = kept.todo_list();
    let may_end = |known: &TodoItem| known.state.may_become(item.state);
    if !list.item(&item.id).is_some_and(may_end) {
        return Ok(false);
    }
    let (result, references) =
        (item.result.as_deref(), reference.map_or(&[][..], std::slice::from_ref));
    kept.finish_item(&item.id, item.state, result, references)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::StepResult;

    #[test]
    fn om9_a_plan_is_a_todo_list_whatever_its_texts_are() {
        let mut plan =
            TextPlan::new("p", "T", ["一".repeat(600), format!("{}👩‍👩‍👧 ok", " ".repeat(600))]);
        plan.steps[0].status = StepStatus::Blocked;
        let todo = TodoId::new("task").unwrap();
        let results = Results::from([(0, StepResult::of(&"因".repeat(5_000)))]);
        let id = |at| TodoId::new(&format!("task.{}", step_name(&todo, "run", at, 1))).unwrap();
        let list = todo_list(&plan, id, &results).unwrap();
        let [first, second] = list.items() else { panic!("{list:?}") };
        assert_eq!((first.id.as_str(), first.state), ("task.run:step-1", ItemState::Failed));
        assert_eq!(first.title.chars().count(), TodoList::MAX_TITLE);
        assert_eq!(first.result.as_ref().unwrap().chars().count(), TodoList::MAX_RESULT);
        assert_eq!((second.title.as_str(), &second.result), ("👩‍👩‍👧 ok", &None));
        assert_eq!(step_name(&todo, "task", 1, 3), "step-2:try-3");
    }
}
