//! One call of `delegate`: what may start does, what waited in vain is called off, and each item is handed
//! back as soon as it has ended.

use super::SubAgents;
use super::assignment::{Assignment, ended, title};
use super::conclusion::{conclusion, named};
use super::delegate::Ordered;
use super::report::report;
use crate::agent::{AgentError, Report};
use crate::todo::{as_told, failed, grant, item_id, short_name};
use crate::{RunEvent, RunLog};
use foldback_core::{
    ContextManager, ItemState, Reference, TodoId, TodoItem, TodoList, TodoListError,
};
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolOutput};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;

/// The items of a call, and where they stand.
pub(super) struct Delegation<'a> {
    sub_agents: &'a SubAgents,
    call: &'a CallContext,
    context: &'a ContextHandle,
    assignments: Vec<Assignment>,
    /// The items of the assignments, in their order, as they stand now.
    items: Vec<TodoItem>,
}

/// The sub-agents that work.
type Working<'a> = FuturesUnordered<BoxFuture<'a, Worked>>;

/// A sub-agent that has ended: its place among the items, its conversation, and what became of it.
type Worked = (usize, Box<dyn ContextManager>, Option<Result<Report, AgentError>>);

impl<'a> Delegation<'a> {
    /// Checks what is ordered. Where something of it is wrong, nothing is begun.
    pub(super) async fn plan(
        sub_agents: &'a SubAgents,
        call: &'a CallContext,
        context: &'a ContextHandle,
        ordered: Vec<Ordered>,
    ) -> Result<Self, ToolError> {
        let list = context.todo_list().await.map_err(|error| failed(context, &error))?;
        let (assignments, items) = (Vec::new(), Vec::new());
        let mut delegation = Self { sub_agents, call, context, assignments, items };
        for ordered in ordered {
            delegation.take(&list, ordered)?;
        }
        let planned = merged(&list, &delegation.items).map_err(|error| delegation.wrong(&error))?;
        delegation.check_waits(&planned)?;
        Ok(delegation)
    }

    /// The items that sub-agents will work on.
    pub(super) fn ids(&self) -> Vec<TodoId> {
        self.items.iter().map(|item| item.id.clone()).collect()
    }

    /// Takes one item that is ordered.
    fn take(&mut self, list: &TodoList, ordered: Ordered) -> Result<(), ToolError> {
        let parent = self.context.todo();
        let id = item_id(parent, list, &ordered.id);
        let short = short_name(parent, &id).to_owned();
        let given = ordered.id.trim();
        let is_own = given == short || given == id.as_str();
        let given_name = (!is_own).then(|| given.to_owned());
        let name = called(given_name.as_deref(), &short);
        if ordered.task.trim().is_empty() {
            let message =
                format!("item {name} has no task; write all that the sub-agent has to know");
            return Err(ToolError::arguments(message));
        }
        if self.items.iter().any(|item| item.id == id) {
            let message = format!("item {name} is given away twice; give each item once");
            return Err(ToolError::arguments(message));
        }
        let run = format!("{}/{short}", self.call.idempotency_key);
        let has_begun = self.has_begun(&run)?;
        let known = list.item(&id);
        let was_begun = has_begun
            || known.is_some_and(|item| {
                item.state != ItemState::Pending || !item.references.is_empty()
            });
        let mut item = known.cloned().unwrap_or_else(|| {
            TodoItem::new(id.clone(), &title(ordered.title.as_deref(), &ordered.task))
        });
        // What this very call has begun before its process was killed, it may have ended as well.
        if !(matches!(item.state, ItemState::Completed | ItemState::Failed) && has_begun) {
            if item.state == ItemState::Completed {
                let message = format!(
                    "item {name} is completed already; give new work an id of its own, and let it depend on \
                     this one"
                );
                return Err(ToolError::arguments(message));
            }
            if item.state.is_reopened_by(ItemState::Pending) {
                item.result = None;
            }
            item.state = ItemState::Pending;
        }
        let mut depends_on: Vec<TodoId> =
            ordered.depends_on.iter().map(|name| item_id(parent, list, name)).collect();
        let mut references = Vec::new();
        for written in &ordered.references {
            let reference = Reference::parse_in(parent, written.trim());
            let reference =
                reference.map_err(|error| ToolError::arguments(format!("item {name}: {error}")))?;
            let state = returned_by(list, &reference).map(|item| item.state);
            if state == Some(ItemState::Completed) {
                // What an item returned can be read by those that depend on it.
                depends_on.push(reference.todo().clone());
            } else if reference.todo() == parent || state.is_some() {
                // Nobody can wait for what failed, and what it has found can be used all the same.
                if !references.contains(&reference) {
                    references.push(reference);
                }
            } else {
                return Err(ToolError::arguments(format!(
                    "item {name} cannot be given {written}: it is neither of your own conversation nor \
                     returned by an item of your list; write what is needed into the task"
                )));
            }
        }
        for on in depends_on {
            if !item.depends_on.contains(&on) {
                item.depends_on.push(on);
            }
        }
        let (task, tools) = (ordered.task, ordered.tools);
        let worker = None;
        self.assignments.push(Assignment {
            task,
            given_name,
            references,
            unreadable: Vec::new(),
            tools,
            run,
            was_begun,
            worker,
        });
        self.items.push(item);
        Ok(())
    }

    /// Whether the journal knows this run.
    fn has_begun(&self, run: &str) -> Result<bool, ToolError> {
        let records = self.sub_agents.template.executor.records(run);
        let records = records.map_err(|error| ToolError::permanent(error.to_string()))?;
        Ok(!records.is_empty())
    }

    /// Refuses items that wait for what nobody in this call brings.
    fn check_waits(&self, list: &TodoList) -> Result<(), ToolError> {
        for item in self.items.iter().filter(|item| item.state == ItemState::Pending) {
            let outside = |id: &&TodoId| !self.items.iter().any(|other| other.id == **id);
            let waits = item.depends_on.iter().filter(outside).filter_map(|id| list.item(id));
            let over =
                |on: &TodoItem| matches!(on.state, ItemState::Completed | ItemState::Cancelled);
            if let Some(on) = waits.into_iter().find(|on| !over(on)) {
                let (item, on, state) = (self.name(&item.id), self.name(&on.id), on.state);
                return Err(ToolError::arguments(format!(
                    "item {item} waits for {on}, which is {state}; give {on} away as well, or do it first"
                )));
            }
        }
        Ok(())
    }

    /// Opens each item's conversation, and lets it read what it is given. Where an item cannot be worked
    /// on, nothing is begun.
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
                    "item {name} is new, and other work was done under that name before; give new work an id \
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
                // What items return is told beside their words.
                if reference.todo() == context.todo() && !assignment.references.contains(&reference)
                {
                    assignment.references.push(reference);
                }
            }
        }
        Ok(())
    }

    /// Has all items worked on, and tells what came of them.
    pub(super) async fn run(mut self) -> Result<ToolOutput, ToolError> {
        self.set_list().await?;
        let mut working = FuturesUnordered::new();
        let mut broken = None;
        loop {
            if broken.is_none() && !self.call.cancelled.is_cancelled() {
                broken = self.start(&mut working).await.err();
            }
            let Some((at, child, report)) = working.next().await else { break };
            // Those that still work were told to stop by the same token.
            if self.call.cancelled.is_cancelled() {
                continue;
            }
            // A store that fails one item is no reason to lose what the others bring.
            if let Err(error) = self.hand_back(at, child, report).await {
                let name = self.items.get(at).map(|item| self.name(&item.id));
                broken.get_or_insert(in_item(&name.unwrap_or_default(), error));
            }
        }
        if self.call.cancelled.is_cancelled() {
            return Err(ToolError::permanent("the sub-agents were stopped before they were done"));
        }
        match broken {
            Some(error) => Err(error),
            None => report(self.context.todo(), &self.items, &self.assignments),
        }
    }

    /// Begins what may be begun now.
    async fn start(&mut self, working: &mut Working<'a>) -> Result<(), ToolError> {
        self.call_off().await?;
        while working.len() < self.sub_agents.max_parallel
            && let Some(at) = self.ready()
        {
            working.extend(self.begin(at).await?);
        }
        Ok(())
    }

    /// The first item that nobody has begun and that waits for nothing any more.
    fn ready(&self) -> Option<usize> {
        let is_over = |id: &TodoId| {
            let on = self.items.iter().find(|item| item.id == *id);
            // What is not in this call was over before it.
            on.is_none_or(|on| on.state == ItemState::Completed)
        };
        self.items.iter().position(|item| {
            item.state == ItemState::Pending && item.depends_on.iter().all(is_over)
        })
    }

    /// Lets the items fail that wait for one that failed, and those that wait for them.
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
            let result = format!("not begun: it waits for {}, which failed", self.name(&on));
            self.settle(at, ItemState::Failed, result, Vec::new()).await?;
        }
    }

    /// Begins the work on an item; it goes on when what is given is polled.
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
            // One that panics must not take its siblings along.
            let report = AssertUnwindSafe(work).catch_unwind().await.ok();
            (at, child, report)
        };
        Ok(Some(worked.boxed()))
    }

    /// Takes back an item whose sub-agent has ended.
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
        // Whoever was waiting for its turn may write to the todo from now on.
        drop(child);
        let result = conclusion(&words, self.sub_agents.conclusion_tokens);
        self.settle(at, state, result, references).await
    }

    /// Records what an item came to, and tells whoever watches.
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
            // A reference that leads nowhere is none. Each is tried by itself, before the end: an item
            // that has ended has returned all that it will. A store that fails tells it with the words.
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

    /// Writes where the items stand into the todo list, and gives that.
    async fn set_list(&mut self) -> Result<TodoList, ToolError> {
        let items = self.items.clone();
        let changed = self.context.change_todo_list(move |list| merged(&list, &items)).await;
        let list = changed.map_err(|error| failed(self.context, &error))?;
        let list = list.map_err(|error| self.wrong(&error))?;
        RunLog::of(self.call).emit(RunEvent::Todos { list: &list });
        Ok(list)
    }

    /// Emits what the context made of the todo list.
    async fn emit_list(&mut self) -> Result<(), ToolError> {
        let list = self.context.todo_list().await.map_err(|error| failed(self.context, &error))?;
        if !list.items().is_empty() {
            RunLog::of(self.call).emit(RunEvent::Todos { list: &list });
        }
        Ok(())
    }

    /// What the model calls an item.
    fn name(&self, id: &TodoId) -> String {
        let mut items = self.items.iter().zip(&self.assignments);
        let assignment = items.find(|(item, _)| item.id == *id).map(|(_, assignment)| assignment);
        let given = assignment.and_then(|assignment| assignment.given_name.as_deref());
        called(given, short_name(self.context.todo(), id))
    }

    /// A list that makes no sense, as the model's mistake.
    fn wrong(&self, error: &TodoListError) -> ToolError {
        ToolError::arguments(as_told(self.context.todo(), &error.to_string()))
    }
}

/// The list with these items as they stand; what it does not have is added at its end. What an item has
/// returned is the list's own.
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

/// The item of the list that has returned this.
fn returned_by<'l>(list: &'l TodoList, reference: &Reference) -> Option<&'l TodoItem> {
    list.item(reference.todo()).filter(|item| item.references.contains(reference))
}

/// An item by the name that the model gave it, and by the one that it has, where that is another.
fn called(given: Option<&str>, short: &str) -> String {
    given.map_or_else(|| short.to_owned(), |given| format!("{given} ({short})"))
}

/// A failure that concerns one item.
fn in_item(name: &str, error: ToolError) -> ToolError {
    ToolError { message: format!("item {name}: {}", error.message), ..error }
}
