//! What the tools read from, and what they answer.

use crate::cut::one_line;
use crate::quote::{Fragment, Woven};
use crate::{Error, Marks};
use foldback_backend_store::BackendStore;
use foldback_blockstore::BlockStore;
use foldback_core::{Embedder, Reference, TokenCounter};
use foldback_kv::Todo;

/// What the tools read from: one todo's blocks and payloads. Nothing is written.
#[derive(Clone, Copy)]
pub struct Shelf<'a> {
    /// The session's own todo; of others only what was granted to it can be reached, by its name.
    pub todo: &'a Todo,
    /// The marks that recorded text stands between in that todo's answers, whatever todo it is of.
    pub marks: Marks,
    /// Its messages and blocks.
    pub blocks: &'a BlockStore,
    /// Its payloads.
    pub payloads: &'a BackendStore,
    /// What makes a vector of a question.
    pub embedder: &'a dyn Embedder,
    /// What budgets are counted with.
    pub tokens: &'a dyn TokenCounter,
    /// What was granted to the todo; `None` for nothing.
    pub grants: Option<&'a dyn Grants>,
    /// Whether the task is a complex one: then less similar blocks are answers too.
    pub complex: bool,
}

/// What of other todos a todo may read.
pub trait Grants: Sync {
    /// The other todo, where this very block or payload of it was granted to `to`. `None` for what
    /// was not granted and for what never was: the two are told alike.
    ///
    /// # Errors
    /// When the store fails.
    fn granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error>;
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the model reads. Its first line is the note.
    pub text: String,
    /// The same text in pieces, so that a store keeps references instead of bodies: joined, they
    /// are the text.
    pub fragments: Vec<Fragment>,
    /// What was consulted, in one line.
    pub note: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl Answer {
    /// An answer that tells what was wrong and what to do.
    pub(crate) fn error(tool: &str, message: &str) -> Self {
        let mut woven = Woven::default();
        woven.push(&format!("[{tool}: error] {message}"));
        Self { is_error: true, ..Self::of(woven) }
    }

    /// The answer of this text, whose first line is the note.
    pub(crate) fn of(woven: Woven) -> Self {
        let (text, fragments) = woven.finish();
        let note = recall_note(&text);
        Self { text, fragments, note, is_error: false }
    }
}

/// The line that stands for an answer once it is folded: its first.
#[must_use]
pub fn recall_note(text: &str) -> String {
    one_line(text.lines().next().unwrap_or_default(), 300)
}
