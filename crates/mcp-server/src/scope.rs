//! What a server gives access to.

use foldback::Answer;
use foldback_core::TodoId;
use std::path::PathBuf;
use std::sync::Arc;

/// What a server gives access to, as decided by the person who starts it.
///
/// ```
/// use foldback_mcp_server::Scope;
///
/// let scope = Scope::roots();
/// assert!(!scope.records(), "a server only reads, unless it may do more");
/// ```
#[derive(Clone)]
pub struct Scope {
    pub(crate) chosen: Chosen,
    pub(crate) any_todo: bool,
    pub(crate) record: bool,
    /// The text that the tools' descriptions end with.
    pub(crate) mark: String,
    /// A function that receives the answers.
    pub(crate) hears: Option<Hears>,
}

/// A function that receives a tool's answer before the client does.
pub type Hears = Arc<dyn Fn(&Answer) + Send + Sync>;

/// A function that returns which todos a call may be about, the likeliest first, given the tool's name and its
/// arguments.
pub type Todos = Arc<dyn Fn(&str, &str) -> Vec<TodoId> + Send + Sync>;

/// How the todo is chosen.
#[derive(Clone)]
pub(crate) enum Chosen {
    /// It is this one.
    Todo(TodoId),
    /// It belongs to this folder.
    Folder(PathBuf),
    /// It belongs to a folder that the client names.
    Roots,
    /// It is one of the todos that a program names; it sees the client's conversations.
    Session(Todos),
}

impl Scope {
    /// Serves one todo.
    #[must_use]
    pub fn todo(todo: TodoId) -> Self {
        Self::of(Chosen::Todo(todo))
    }

    /// Serves the todo whose work was last in this folder.
    #[must_use]
    pub fn folder(folder: PathBuf) -> Self {
        Self::of(Chosen::Folder(folder))
    }

    /// Serves the todo whose work was last in a folder that the client names as one of its roots.
    #[must_use]
    pub fn roots() -> Self {
        Self::of(Chosen::Roots)
    }

    /// Serves the todos of one session of a client, whose conversations another part of this program sees: what is
    /// named in full is loaded from any of them, and everything else is looked up in the likeliest. Answers are text
    /// alone: clients would show the model the structured form in place of the text, as one line of escaped JSON.
    #[must_use]
    pub fn session(todos: Todos) -> Self {
        Self::of(Chosen::Session(todos))
    }

    fn of(chosen: Chosen) -> Self {
        Self { chosen, any_todo: false, record: false, mark: String::new(), hears: None }
    }

    /// Lets searching and loading reach every todo of the store. It is for the client of the person who
    /// owns the store.
    #[must_use]
    pub fn with_any_todo(self) -> Self {
        Self { any_todo: true, ..self }
    }

    /// Allows notes to be recorded. A folder then has a todo of its own for them, which is the one that is
    /// read, and is made with the first note.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: true, ..self }
    }

    /// Ends the tools' descriptions with this mark, by which a program that sees the client's requests recognises them.
    #[must_use]
    pub fn with_mark(self, mark: &str) -> Self {
        Self { mark: mark.to_owned(), ..self }
    }

    /// Passes each answer to a program that sees the client's requests, in which the answers come again.
    #[must_use]
    pub fn heard_by(self, hears: Hears) -> Self {
        Self { hears: Some(hears), ..self }
    }

    /// Returns whether it serves a session.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self.chosen, Chosen::Session(_))
    }

    /// Returns whether notes may be recorded.
    #[must_use]
    pub fn records(&self) -> bool {
        self.record
    }
}
