//! One call of `delegate`: items start as soon as they may, those that wait for a failed one are cancelled,
//! and each is handed back as soon as it has ended.

mod plan;

use super::SubAgents;
use super::assignment::{Assignment, ended};
use super::conclusion::{conclusion, named};
use super::report::report;
use crate::agent::{AgentError, Report};
use crate::todo::{as_told, failed, grant, short_name};
use crate::{RunEvent, RunLog};
use foldback_core::{
    ContextManager, ItemState, Reference, TodoId, TodoItem, TodoList, TodoListError,
};
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolOutput};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;

/// The items of a call, and their states.
pub(super) struct Delegation<'a> {
    sub_agents: &'a SubAgents,
    call: &'a CallContext,
    context: &'a ContextHandle,
    assignments: Vec<Assignment>,
    /// The items of the assignments, in their order and current state.
    items: Vec<TodoItem>,
}

/// The working sub-agents.
type Working<'a> = FuturesUnordered<BoxFuture<'a, Worked>>;

/// A sub-agent that has ended: its place among the items, its conversation, and its outcome.
type Worked = (usize, Box<dyn ContextManager>, Option<Result<Report, AgentError>>);

impl<'a> Delegation<'a> {
    /// Returns the items that sub-agents will work on.
    pub(super) fn ids(&self) -> Vec<TodoId> {
        self.items.iter().map(|item| item.id.clone()).collect()
    }

    /// Opens each item's conversation, and grants it the references that it is given. If an item cannot be
    /// worked on, nothing is begun.
    pub(super) async fn prepare(&mut self) -> Result<(), ToolError> {
        let (sub_agents, context) = (self.sub_agents, self.context);
        let waiting = self.items.iter().zip(&mut self.assignments);
        let mut waiting: Vec<(&TodoItem, &mut Assignment)> =
            waiting.filter(|(item, _)| item.state == ItemState::Pending).collect();
        for (item, assignment) in &mut waiting {
            let name =
                called(assignment.given_name.as_deref(), short_name(context.todo(), &item.id));
            let child = context.child(item.id.clone()).await;
            let child = child.map_err(|error| in_item(&name, failed(context, &error)))?;
            if child.recorded() > 0 && !assignment.was_begun {
                return Err(ToolError::arguments(format!(
                    "item {name} is new, but other work was done under that name before; give new work an id \
                     of its own"
                )));
            }
            let agent = sub_agents.agent(assignment.tools.as_deref(), child.tools());
            let agent = agent.map_err(|error| in_item(&name, ToolError::arguments(error)))?;
            assignment.worker = Some((agent, child));
        }
        for (item, assignment) in waiting {
            let references = assignment.references.clone();
            let has_any = !references.is_empty();
            if has_any && !grant(context, item.id.clone(), references).await? {
                assignment.references.clear();
            }
            let Some((_, child)) = &mut assignment.worker else { continue };
            let granted = child.sub_tasks().map_or(Ok(Vec::new()), |kept| kept.granted());
            let granted = granted.map_err(|error| failed(context, &error))?;
            for reference in granted {
                // References that items return are listed beside their words.
                if reference.todo() == context.todo() && !assignment.references.contains(&reference)
                {
                    assignment.references.push(reference);
                }
            }
        }
        Ok(())
    }

    /// Has all items worked on, and reports their results.
    pub(super) async fn run(mut self) -> Result<ToolOutput, ToolError> {
        self.set_list().await?;
        let mut working = FuturesUnordered::new();
        let mut broken = None;
        loop {
            if broken.is_none() && !self.call.cancelled.is_cancelled() {
                broken = self.start(&mut working).await.err();
            }
            let Some((at, child, report)) = working.next().await else { break };
            // Sub-agents that are still working were asked to stop by the same token.
            if self.call.cancelled.is_cancelled() {
                continue;
            }
            // A store that fails for one item is no reason to lose the results of the others.
            if let Err(error) = self.hand_back(at, child, report).await {
                let name = self.items.get(at).map(|item| self.name(&item.id));
                broken.get_or_insert(in_item(&name.unwrap_or_default(), error));
            }
        }
        if self.call.cancelled.is_cancelled() {
            return Err(ToolError::permanent("the sub-agents were stopped before they finished"));
        }
        match broken {
            Some(error) => Err(error),
            None => report(self.context.todo(), &self.items, &self.assignments),
        }
    }

    /// Begins the items that may begin now.
    async fn start(&mut self, working: &mut Working<'a>) -> Result<(), ToolError> {
        self.call_off().await?;
        while working.len() < self.sub_agents.max_parallel
            && let Some(at) = self.ready()
        {
            working.extend(self.begin(at).await?);
        }
        Ok(())
    }

    /// Returns the first item that has not begun and no longer waits for anything.
    fn ready(&self) -> Option<usize> {
        let is_over = |id: &TodoId| {
            let on = self.items.iter().find(|item| item.id == *id);
            // An item outside this call was finished before it.
            on.is_none_or(|on| on.state == ItemState::Completed)
        };
        self.items.iter().position(|item| {
            item.state == ItemState::Pending && item.depends_on.iter().all(is_over)
        })
    }

    /// Fails the items that wait for a failed one, and those that wait for them.
    async fn call_off(&mut self) -> Result<(), ToolError> {
        let has_failed = |items: &[TodoItem], id: &TodoId| {
            items.iter().any(|item| item.id == *id && item.state == ItemState::Failed)
        };
        loop {
            let found = self.items.iter().enumerate().find_map(|(at, item)| {
                let on = item.depends_on.iter().find(|id| has_failed(&self.items, id))?;
                (item.state == ItemState::Pending).then(|| (at, on.clone()))
            });
            let Some((at, on)) = found else { return Ok(()) };
            let result = format!("not started: it waits for {}, which failed", self.name(&on));
            self.settle(at, ItemState::Failed, result, Vec::new()).await?;
        }
    }

    /// Begins the work on an item, which proceeds when the returned future is polled.
    async fn begin(&mut self, at: usize) -> Result<Option<BoxFuture<'a, Worked>>, ToolError> {
        if let Some(item) = self.items.get_mut(at) {
            item.state = ItemState::InProgress;
        }
        let list = self.set_list().await?;
        let (Some(item), Some(assignment)) = (self.items.get(at), self.assignments.get_mut(at))
        else {
            return Ok(None);
        };
        let Some((agent, mut child)) = assignment.worker.take() else { return Ok(None) };
        let request = assignment.request(self.context.todo(), item, &list);
        let (log, id) = (RunLog::of(self.call), &item.id);
        log.emit(RunEvent::Delegated { item: id, request: &request });
        let (sub_agents, call) = (self.sub_agents, self.call);
        let run = assignment.run.clone();
        let worked = async move {
            let work = sub_agents.work(&agent, call, child.as_mut(), (run, request));
            // A panic must not affect its siblings.
            let report = AssertUnwindSafe(work).catch_unwind().await.ok();
            (at, child, report)
        };
        Ok(Some(worked.boxed()))
    }

    /// Takes back an item from a sub-agent that has ended.
    async fn hand_back(
        &mut self,
        at: usize,
        mut child: Box<dyn ContextManager>,
        report: Option<Result<Report, AgentError>>,
    ) -> Result<(), ToolError> {
        let panicked = || Ok((ItemState::Failed, "the sub-agent panicked".to_owned()));
        let (state, words) = report.map_or_else(panicked, ended)?;
        let last = child.sub_tasks().map_or(Ok(None), |kept| kept.conclude());
        let last = last.map_err(|error| failed(self.context, &error))?;
        let mut references: Vec<Reference> = last.map(Reference::Block).into_iter().collect();
        for reference in named(child.todo(), &words) {
            if !references.contains(&reference) {
                references.push(reference);
            }
        }
        // Others that wait for their turn may write to the todo from now on.
        drop(child);
        let result = conclusion(&words, self.sub_agents.conclusion_tokens);
        self.settle(at, state, result, references).await
    }

    /// Records the result of an item, and reports it to observers.
    async fn settle(
        &mut self,
        at: usize,
        state: ItemState,
        result: String,
        references: Vec<Reference>,
    ) -> Result<(), ToolError> {
        let Some(item) = self.items.get_mut(at) else { return Ok(()) };
        let id = item.id.clone();
        let context = self.context;
        let words = || Some(result.clone());
        let mut kept = context.finish_item(id.clone(), state, words(), references.clone()).await;
        let mut returned = references;
        if kept.is_err() && !returned.is_empty() {
            // A reference that leads nowhere does not count. Each is tried separately, before the end: an
            // item that has ended returns nothing more. A failure of the store is reported with the words.
            let (mut sound, mut unreadable) = (Vec::new(), Vec::new());
            for reference in returned {
                let one = vec![reference.clone()];
                match context.finish_item(id.clone(), item.state, None, one).await {
                    Ok(_) => sound.push(reference),
                    Err(_) => unreadable.push(reference),
                }
            }
            returned = sound;
            if let Some(assignment) = self.assignments.get_mut(at) {
                assignment.unreadable = unreadable;
            }
            kept = context.finish_item(id.clone(), state, words(), Vec::new()).await;
        }
        let is_kept = kept.map_err(|error| failed(context, &error))?;
        item.state = state;
        item.result = words();
        if is_kept {
            let known = item.references.clone();
            item.references.extend(returned.into_iter().filter(|one| !known.contains(one)));
        } else {
            self.set_list().await?;
        }
        let item = id;
        let (log, result) = (RunLog::of(self.call), &*result);
        log.emit(RunEvent::HandedBack { item: &item, state, result });
        self.emit_list().await
    }

    /// Writes the states of the items into the todo list, and returns the list.
    async fn set_list(&mut self) -> Result<TodoList, ToolError> {
        let items = self.items.clone();
        let changed = self.context.change_todo_list(move |list| merged(&list, &items)).await;
        let list = changed.map_err(|error| failed(self.context, &error))?;
        let list = list.map_err(|error| self.wrong(&error))?;
        RunLog::of(self.call).emit(RunEvent::Todos { list: &list });
        Ok(list)
    }

    /// Emits the todo list as the context holds it.
    async fn emit_list(&mut self) -> Result<(), ToolError> {
        let list = self.context.todo_list().await.map_err(|error| failed(self.context, &error))?;
        if !list.items().is_empty() {
            RunLog::of(self.call).emit(RunEvent::Todos { list: &list });
        }
        Ok(())
    }

    /// Returns the model's name for an item.
    fn name(&self, id: &TodoId) -> String {
        let mut items = self.items.iter().zip(&self.assignments);
        let assignment = items.find(|(item, _)| item.id == *id).map(|(_, assignment)| assignment);
        let given = assignment.and_then(|assignment| assignment.given_name.as_deref());
        called(given, short_name(self.context.todo(), id))
    }

    /// Returns the error for an invalid list, as the model's mistake.
    fn wrong(&self, error: &TodoListError) -> ToolError {
        ToolError::arguments(as_told(self.context.todo(), &error.to_string()))
    }
}

/// Returns the list with these items in their current state; items that it lacks are added at its end. What
/// an item has returned is kept from the list.
fn merged(list: &TodoList, items: &[TodoItem]) -> Result<TodoList, TodoListError> {
    let mut all = list.items().to_vec();
    for item in items {
        let known = all.iter_mut().find(|known| known.id == item.id);
        let references = known.as_ref().map(|known| known.references.clone()).unwrap_or_default();
        let item = TodoItem { references, ..item.clone() };
        match known {
            Some(known) => *known = item,
            None => all.push(item),
        }
    }
    let merged = TodoList::new(all)?;
    merged.check_change(list)?;
    Ok(merged)
}

/// Returns the model's name for an item, with its actual name if that differs.
fn called(given: Option<&str>, short: &str) -> String {
    given.map_or_else(|| short.to_owned(), |given| format!("{given} ({short})"))
}

/// Adds the item's name to a failure.
fn in_item(name: &str, error: ToolError) -> ToolError {
    ToolError { message: format!("item {name}: {}", error.message), ..error }
}
