//! The check of an order before any of it begins.

use super::super::SubAgents;
use super::super::assignment::{Assignment, title};
use super::super::delegate::Ordered;
use super::{Delegation, called, merged};
use crate::todo::{failed, item_id, short_name};
use foldback_core::{ItemState, Reference, TodoId, TodoItem, TodoList};
use foldback_tool::{CallContext, ContextHandle, ToolError};

/// The items that an item waits for, and the references that it is given to read.
struct Given {
    depends_on: Vec<TodoId>,
    references: Vec<Reference>,
}

impl<'a> Delegation<'a> {
    /// Checks an order. If any of it is wrong, nothing is begun.
    pub(in crate::sub_agents) async fn plan(
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

    /// Takes one ordered item.
    fn take(&mut self, list: &TodoList, ordered: Ordered) -> Result<(), ToolError> {
        let parent = self.context.todo();
        let id = item_id(parent, list, &ordered.id);
        let short = short_name(parent, &id).to_owned();
        let given = ordered.id.trim();
        let is_own = given == short || given == id.as_str();
        let given_name = (!is_own).then(|| given.to_owned());
        let name = called(given_name.as_deref(), &short);
        if ordered.task.trim().is_empty() {
            let message = format!(
                "item {name} has no task; write everything that the sub-agent needs to know"
            );
            return Err(ToolError::arguments(message));
        }
        if self.items.iter().any(|item| item.id == id) {
            let message = format!("item {name} is delegated twice; delegate each item once");
            return Err(ToolError::arguments(message));
        }
        let run = format!("{}/{short}", self.call.idempotency_key);
        let has_begun = self.has_begun(&run)?;
        let known = list.item(&id);
        let was_begun = has_begun
            || known.is_some_and(|item| {
                item.state != ItemState::Pending || !item.references.is_empty()
            });
        let item = known
            .cloned()
            .unwrap_or_else(|| TodoItem::new(id, &title(ordered.title.as_deref(), &ordered.task)));
        let mut item = due(item, has_begun, &name)?;
        let Given { depends_on, references } = self.given(list, &ordered, &name)?;
        for on in depends_on {
            if !item.depends_on.contains(&on) {
                item.depends_on.push(on);
            }
        }
        let (task, tools) = (ordered.task, ordered.tools);
        self.assignments.push(Assignment {
            task,
            given_name,
            references,
            unreadable: Vec::new(),
            tools,
            run,
            was_begun,
            worker: None,
        });
        self.items.push(item);
        Ok(())
    }

    /// Returns the references that an item is given to read, and the items that it waits for.
    fn given(&self, list: &TodoList, ordered: &Ordered, name: &str) -> Result<Given, ToolError> {
        let parent = self.context.todo();
        let mut depends_on: Vec<TodoId> =
            ordered.depends_on.iter().map(|name| item_id(parent, list, name)).collect();
        let mut references = Vec::new();
        for written in &ordered.references {
            let reference = Reference::parse_in(parent, written.trim());
            let reference =
                reference.map_err(|error| ToolError::arguments(format!("item {name}: {error}")))?;
            let state = returned_by(list, &reference).map(|item| item.state);
            if state == Some(ItemState::Completed) {
                // Items that depend on another can read what it returned.
                depends_on.push(reference.todo().clone());
            } else if reference.todo() == parent || state.is_some() {
                // A failed item cannot be waited for, but its findings can still be used.
                if !references.contains(&reference) {
                    references.push(reference);
                }
            } else {
                return Err(ToolError::arguments(format!(
                    "item {name} cannot be given {written}: it is neither from your own conversation nor \
                     returned by an item of your list; write what is needed into the task"
                )));
            }
        }
        Ok(Given { depends_on, references })
    }

    /// Returns whether the journal knows this run.
    fn has_begun(&self, run: &str) -> Result<bool, ToolError> {
        let records = self.sub_agents.template.executor.records(run);
        let records = records.map_err(|error| ToolError::permanent(error.to_string()))?;
        Ok(!records.is_empty())
    }

    /// Refuses items that wait for one that is not worked on in this call.
    fn check_waits(&self, list: &TodoList) -> Result<(), ToolError> {
        for item in self.items.iter().filter(|item| item.state == ItemState::Pending) {
            let outside = |id: &&TodoId| !self.items.iter().any(|other| other.id == **id);
            let waits = item.depends_on.iter().filter(outside).filter_map(|id| list.item(id));
            let over =
                |on: &TodoItem| matches!(on.state, ItemState::Completed | ItemState::Cancelled);
            if let Some(on) = waits.into_iter().find(|on| !over(on)) {
                let (item, on, state) = (self.name(&item.id), self.name(&on.id), on.state);
                return Err(ToolError::arguments(format!(
                    "item {item} waits for {on}, which is {state}; delegate {on} as well, or do it first"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the item as it is to be worked on.
///
/// # Errors
/// When it is already completed, by another call than this one.
fn due(mut item: TodoItem, has_begun: bool, name: &str) -> Result<TodoItem, ToolError> {
    // This same call, before its process was killed, may have begun the item and also ended it.
    if matches!(item.state, ItemState::Completed | ItemState::Failed) && has_begun {
        return Ok(item);
    }
    if item.state == ItemState::Completed {
        return Err(ToolError::arguments(format!(
            "item {name} is already completed; give new work an id of its own, and let it depend on \
             this one"
        )));
    }
    if item.state.is_reopened_by(ItemState::Pending) {
        item.result = None;
    }
    item.state = ItemState::Pending;
    Ok(item)
}

/// Returns the item of the list that returned this.
fn returned_by<'l>(list: &'l TodoList, reference: &Reference) -> Option<&'l TodoItem> {
    list.item(reference.todo()).filter(|item| item.references.contains(reference))
}
