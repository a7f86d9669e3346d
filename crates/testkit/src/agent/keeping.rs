//! Contexts that keep todo lists, the results of sub-tasks, and every conversation; and a model with a
//! script for each of them.

use super::script::full;
use foldback_agent::{AgentEvent, Observer};
use foldback_baselines::Full;
use foldback_core::{
    BlockId, ContextError, ContextLayer, ContextManager, Estimate, ItemState, Message, Recorded,
    Reference, Role, SubTasks, TodoId, TodoList, ToolCall,
};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What all contexts of one family keep.
#[derive(Default)]
pub struct Kept {
    lists: BTreeMap<TodoId, TodoList>,
    conversations: BTreeMap<TodoId, Vec<Message>>,
    /// The granted reads: `from -> to: reference`.
    pub grants: Vec<String>,
    /// How often a result was handed back.
    pub finished: usize,
    /// A todo whose conversation accepts the request and nothing more.
    pub broken: Option<TodoId>,
}

/// A context that shows everything, and keeps what a store would. Each todo has exactly the blocks 1 to
/// 9; the last message is in block 1.
pub struct Keeping {
    inner: Box<dyn ContextManager>,
    /// What it keeps, with the contexts of its sub-tasks.
    pub kept: Arc<Mutex<Kept>>,
    /// Whether it keeps references.
    shares: bool,
}

impl Keeping {
    /// Returns a context without a conversation.
    pub fn new() -> Self {
        Self { inner: full(), kept: Arc::default(), shares: true }
    }

    /// Returns a context that keeps lists, and nothing that could be granted.
    pub fn words_only() -> Self {
        Self { shares: false, ..Self::new() }
    }

    /// Returns the context as another process finds it.
    pub fn reopened(self) -> Self {
        let mut inner = full();
        for message in self.kept.lock().conversations.get(inner.todo()).into_iter().flatten() {
            inner.record(message.clone()).unwrap();
        }
        Self { inner, ..self }
    }

    /// Returns the todo list of its todo.
    pub fn list(&self) -> TodoList {
        self.kept.lock().lists.get(self.inner.todo()).cloned().unwrap_or_default()
    }

    /// Returns what was said in a todo, as `role: text` or the calls' arguments.
    pub fn said(&self, id: &str) -> Vec<String> {
        let kept = self.kept.lock();
        let said = kept.conversations.get(&todo(id)).into_iter().flatten();
        said.map(|message| {
            let calls = message.tool_calls().iter().map(|call| call.arguments.as_str());
            let calls = calls.collect::<Vec<_>>().join(" ");
            format!("{}: {}{calls}", message.role().as_str(), message.text())
        })
        .collect()
    }

    /// Returns the todos that were begun.
    pub fn todos(&self) -> Vec<String> {
        self.kept.lock().conversations.keys().map(ToString::to_string).collect()
    }
}

impl Default for Keeping {
    fn default() -> Self {
        Self::new()
    }
}

fn wrong(message: String) -> ContextError {
    ContextError { message, source: None }
}

impl ContextLayer for Keeping {
    fn inner(&self) -> &dyn ContextManager {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.inner.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let todo = self.inner.todo().clone();
        if *message.role() == Role::Assistant && self.kept.lock().broken.as_ref() == Some(&todo) {
            return Err(wrong("the store is gone".to_owned()));
        }
        self.kept.lock().conversations.entry(todo).or_default().push(message.clone());
        self.inner.record(message)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        let mut inner = Full.start(todo.clone(), Arc::new(Estimate));
        for message in self.kept.lock().conversations.get(&todo).into_iter().flatten() {
            inner.record(message.clone())?;
        }
        Ok(Box::new(Self { inner, kept: self.kept.clone(), shares: self.shares }))
    }

    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        Some(self)
    }
}

impl SubTasks for Keeping {
    fn todo_list(&mut self) -> TodoList {
        self.list()
    }

    fn set_todo_list(&mut self, list: &TodoList) -> Result<(), ContextError> {
        let before = self.todo_list();
        list.check_change(&before).map_err(|error| wrong(error.to_string()))?;
        let returned = |item: &foldback_core::TodoItem| {
            before.item(&item.id).map(|item| item.references.clone()).unwrap_or_default()
        };
        let made_up = list.items().iter().find(|item| item.references != returned(item));
        if let Some(item) = made_up {
            return Err(wrong(format!("{} claims to have returned what it has not", item.id)));
        }
        self.kept.lock().lists.insert(self.inner.todo().clone(), list.clone());
        Ok(())
    }

    fn finish_item(
        &mut self,
        item: &TodoId,
        state: ItemState,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<bool, ContextError> {
        if !self.shares {
            return Ok(false);
        }
        self.kept.lock().finished += 1;
        let mut list = self.todo_list();
        for reference in references {
            let Reference::Block(block) = reference else {
                return Err(wrong(format!("there is no {reference}")));
            };
            if block.n() > 9 {
                return Err(wrong(format!("there is no {reference}")));
            }
        }
        list.add_result(item, result, references).map_err(|error| wrong(error.to_string()))?;
        list.set_state(item, state).map_err(|error| wrong(error.to_string()))?;
        self.kept.lock().lists.insert(self.inner.todo().clone(), list);
        Ok(true)
    }

    fn grant(&mut self, to: &TodoId, references: &[Reference]) -> Result<bool, ContextError> {
        if !self.shares {
            return Ok(false);
        }
        let mut kept = self.kept.lock();
        for reference in references {
            if matches!(reference, Reference::Block(block) if block.n() > 9) {
                return Err(wrong(format!("there is no {reference}")));
            }
            kept.grants.push(format!("{} -> {to}: {reference}", self.inner.todo()));
        }
        Ok(true)
    }

    fn granted(&mut self) -> Result<Vec<Reference>, ContextError> {
        Ok(Vec::new())
    }

    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError> {
        Ok(self.shares.then(|| BlockId::new(self.inner.todo().clone(), 1)))
    }
}

/// Returns the todo of this name.
pub fn todo(id: &str) -> TodoId {
    TodoId::new(id).unwrap()
}

/// Returns a model that answers each session by its own script, in order.
pub fn scripts<const N: usize>(scripts: [(&str, Vec<Answer>); N]) -> Arc<ScriptedModel> {
    let scripts = scripts.map(|(session, answers)| (session.to_owned(), VecDeque::from(answers)));
    let scripts = Mutex::new(BTreeMap::from(scripts));
    Arc::new(ScriptedModel::answering(move |request| {
        let session = request.session.clone().unwrap_or_default();
        let answer = scripts.lock().get_mut(&session).and_then(VecDeque::pop_front);
        answer.unwrap_or_else(|| panic!("{session} has no answer left: {request:?}"))
    }))
}

/// Returns the last tool result that a request shows; the todo list may be recited after it.
pub fn last_result(request: &ChatRequest) -> String {
    let result = request.messages.iter().rfind(|message| message.tool_call_id().is_some());
    result.map(|message| message.text().into_owned()).unwrap_or_default()
}

/// Returns an answer that calls one tool.
pub fn calling(tool: &str, arguments: serde_json::Value) -> Answer {
    ToolCall::new(&format!("call-{tool}"), tool, &arguments.to_string()).into()
}

/// An observer that keeps what it receives: todos and events, in order.
#[derive(Default)]
pub struct Watching(pub Mutex<Vec<(String, AgentEvent)>>);

impl Observer for Watching {
    fn observe(&self, todo: &TodoId, event: &AgentEvent) {
        self.0.lock().push((todo.to_string(), event.clone()));
    }
}

impl Watching {
    /// Returns the states of the todo list, one for each change: `read=completed draft=pending`.
    pub fn lists(&self, id: &str) -> Vec<String> {
        let mut lists: Vec<String> = Vec::new();
        for (todo, event) in &*self.0.lock() {
            let AgentEvent::Todos { list } = event else { continue };
            assert_eq!(todo, id, "a list is told by whoever's it is");
            let items = list.items().iter().map(|item| format!("{}={}", item.id, item.state));
            let line = items.collect::<Vec<_>>().join(" ");
            if lists.last() != Some(&line) {
                lists.push(line);
            }
        }
        lists
    }
}
