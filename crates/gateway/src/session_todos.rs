//! The todos of what passes through a gateway, for a server of the memory's tools beside it.

use foldback::{Answer, Fragment};
use foldback_core::{Message, TodoId};
use foldback_tool::canonical_json;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// How many calls, and how many answers, are remembered. A client runs a call as soon as it has the model's answer, and
/// sends the result with the next request.
const MOST_CALLS: usize = 64;

/// How many todos are known; older ones have not been recorded into for long.
const MOST_TODOS: usize = 1_000;

/// The names of the tools that read, as suffixes.
const TOOLS: [&str; 3] = ["search_block", "list_blocks", "load"];

/// The todos of what passes through a gateway, which of them called a tool last, and what was answered.
#[derive(Default)]
pub struct SessionTodos {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Ordered by last recording, the latest first.
    todos: Vec<TodoId>,
    calls: VecDeque<Called>,
    answers: VecDeque<Answer>,
}

/// A call of a model.
struct Called {
    todo: TodoId,
    tool: String,
    /// In canonical form.
    arguments: String,
}

impl SessionTodos {
    /// Returns all of them, beginning with the one that a call of this tool most likely comes from: a client may have
    /// given the tool a longer name.
    #[must_use]
    pub fn of_call(&self, tool: &str, arguments: &str) -> Vec<TodoId> {
        let arguments = one_form(arguments);
        let state = self.state.lock();
        let mut todos = state.todos.clone();
        let is_it = |call: &&Called| call.tool.ends_with(tool) && call.arguments == arguments;
        let caller = state.calls.iter().rev().find(is_it).map(|call| &call.todo);
        if let Some(at) = todos.iter().position(|todo| Some(todo) == caller) {
            let caller = todos.remove(at);
            todos.insert(0, caller);
        }
        todos
    }

    /// Records what a tool answered: a client's next request contains it.
    pub fn answered(&self, answer: &Answer) {
        let answers = &mut self.state.lock().answers;
        answers.push_front(answer.clone());
        answers.truncate(MOST_CALLS);
    }

    /// Returns what a tool answered with exactly this text, apart from white space at the end, which some
    /// clients drop.
    pub(crate) fn answer_of(&self, text: &str) -> Option<Answer> {
        let state = self.state.lock();
        let is_it = |answer: &&Answer| answer.text.trim_end() == text.trim_end();
        let mut answer = state.answers.iter().find(is_it)?.clone();
        let end = text.get(text.trim_end().len()..)?;
        if let Some(Fragment::Literal(last)) = answer.fragments.last_mut() {
            last.truncate(last.trim_end().len());
            last.push_str(end);
        }
        Some(Answer { text: text.to_owned(), ..answer })
    }

    /// Returns whether a tool of this name, as a client calls it, is one that reads, if the client calls `load` by
    /// that name.
    pub(crate) fn is_tool(name: &str, load: &str) -> bool {
        let server = load.strip_suffix("load").unwrap_or(load);
        name.strip_prefix(server).is_some_and(|tool| TOOLS.contains(&tool))
    }

    /// Records that this todo was recorded into last.
    pub(crate) fn note(&self, todo: &TodoId, messages: &[Message]) {
        let mut state = self.state.lock();
        state.todos.retain(|known| known != todo);
        state.todos.insert(0, todo.clone());
        state.todos.truncate(MOST_TODOS);
        let calls = messages.iter().flat_map(Message::tool_calls);
        for call in calls.filter(|call| TOOLS.iter().any(|tool| call.name.ends_with(tool))) {
            let (tool, arguments) = (call.name.clone(), one_form(&call.arguments));
            state.calls.push_back(Called { todo: todo.clone(), tool, arguments });
            if state.calls.len() > MOST_CALLS {
                state.calls.pop_front();
            }
        }
    }
}

fn one_form(arguments: &str) -> String {
    canonical_json(arguments).unwrap_or_else(|_| arguments.to_owned())
}
