//! What a server speaks for.

use foldback::Answer;
use foldback_core::TodoId;
use std::path::PathBuf;
use std::sync::Arc;

/// What a server speaks for, as the person decides who starts it.
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
    /// What the tools' descriptions end with.
    pub(crate) mark: String,
    /// Hears what is answered.
    pub(crate) hears: Option<Hears>,
}

/// Hears what a tool answers, before the client does.
pub type Hears = Arc<dyn Fn(&Answer) + Send + Sync>;

/// Says which todos a call may be about, the likeliest first: of the tool's name and its arguments.
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
    /// One todo.
    #[must_use]
    pub fn todo(todo: TodoId) -> Self {
        Self::of(Chosen::Todo(todo))
    }

    /// The todo whose work was last in this folder.
    #[must_use]
    pub fn folder(folder: PathBuf) -> Self {
        Self::of(Chosen::Folder(folder))
    }

    /// The todo whose work was last in a folder that the client names as one of its roots.
    #[must_use]
    pub fn roots() -> Self {
        Self::of(Chosen::Roots)
    }

    /// Those of one session of a client, whose conversations another part of this program sees: what is named in
    /// full is loaded from any of them, and everything else is asked of the likeliest. Answers are texts alone: clients
    /// would show the model the structured form in the text's place, as one line of escaped JSON.
    #[must_use]
    pub fn session(todos: Todos) -> Self {
        Self::of(Chosen::Session(todos))
    }

    fn of(chosen: Chosen) -> Self {
        Self { chosen, any_todo: false, record: false, mark: String::new(), hears: None }
    }

    /// The same; searching and loading reach every todo of the store. It is for the client of the person
    /// whose store it is.
    #[must_use]
    pub fn with_any_todo(self) -> Self {
        Self { any_todo: true, ..self }
    }

    /// The same; notes may be recorded. A folder then has a todo of its own for them, which is the one that
    /// is read, and is made with the first note.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: true, ..self }
    }

    /// The same; the tools' descriptions end with this mark, by which a program knows them that sees the client's requests.
    #[must_use]
    pub fn with_mark(self, mark: &str) -> Self {
        Self { mark: mark.to_owned(), ..self }
    }

    /// The same; a program hears what is answered that sees the client's requests, in which the answers come again.
    #[must_use]
    pub fn heard_by(self, hears: Hears) -> Self {
        Self { hears: Some(hears), ..self }
    }

    /// Whether it speaks for a session.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self.chosen, Chosen::Session(_))
    }

    /// Whether notes may be recorded.
    #[must_use]
    pub fn records(&self) -> bool {
        self.record
    }
}
