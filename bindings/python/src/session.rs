//! One conversation while it goes on.

use crate::argument::Whole;
use crate::conversation_tree::{ConversationTree, Given};
use crate::error::{Failure, detached};
use crate::message_format::MessageFormat;
use crate::opener::Opener;
use crate::prompt::{Answer, Prompt};
use foldback::core::{Budget, ContextManager, Message, SeqNo, TodoId, ToolCall};
use foldback::{Close, Memory as Store};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// One conversation while it goes on.
#[pyclass(frozen, module = "foldback._foldback")]
pub(crate) struct Session {
    opener: Opener,
    pub(crate) open: Arc<OpenSession>,
}

/// What a session works on until it or its memory is closed.
#[derive(Default)]
pub(crate) struct OpenSession(Mutex<Option<Open>>);

struct Open {
    store: Arc<Store>,
    session: foldback::Session,
    /// Read when a conversation is given whole for the first time.
    tree: Option<ConversationTree>,
}

impl Session {
    pub(crate) fn open(store: &Arc<Store>, todo: &TodoId) -> Result<Self, Failure> {
        let open = Open { store: Arc::clone(store), session: store.session(todo)?, tree: None };
        let open = Arc::new(OpenSession(Mutex::new(Some(open))));
        Ok(Self { opener: Opener::this(), open })
    }

    /// Works on what is open. After a panic nothing is known about it, so it is not worked on again.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Open) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            // First: in a fork the lock may be one that a thread of the parent held.
            self.opener.check()?;
            let lock = self.open.0.lock();
            let mut open = lock.map_err(|_| {
                Failure::internal(
                    "an earlier call of this session ended in a bug; open the session again",
                )
            })?;
            let open = open.as_mut();
            work(open.ok_or_else(|| Failure::invalid("the session's memory is closed"))?)
        })
    }
}

impl OpenSession {
    /// Closes the session, once a call that is running has ended.
    pub(crate) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.opener.let_go(std::mem::take(&mut self.open));
    }
}

#[pymethods]
impl Session {
    /// The name of the conversation in the store.
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |open| Ok(open.session.todo().to_string()))
    }

    /// How many messages are recorded.
    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| Ok(open.session.len()))
    }

    /// How many blocks are closed.
    fn blocks(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |open| Ok(open.session.blocks()))
    }

    /// Records messages of a format, each as JSON, in one transaction. Returns the blocks that they closed.
    fn record(&self, py: Python<'_>, messages: Vec<String>, format: &str) -> PyResult<Vec<String>> {
        let format = format.to_owned();
        self.with(py, |open| {
            let format = MessageFormat::named(&format)?;
            let mut read = Vec::with_capacity(messages.len());
            for json in &messages {
                read.extend(format.read(json)?);
            }
            let recorded = open.session.record_all(read)?;
            let closed = recorded.into_iter().flat_map(|one| one.closed);
            Ok(closed.map(|id| id.to_string()).collect())
        })
    }

    /// Shows the conversation that begins with the first `known` messages of the one that was given last and goes on
    /// with these messages of chat-completions, and records what of it is new. Each comes with what identifies it.
    fn sync(&self, py: Python<'_>, known: usize, messages: Vec<(String, String)>) -> PyResult<()> {
        self.with(py, |open| {
            let mut given = Vec::with_capacity(messages.len());
            for (json, identity) in messages {
                let message = Message::from_json(&json).map_err(Failure::invalid)?;
                given.push(Given { message, identity });
            }
            if open.tree.is_none() {
                open.tree = Some(ConversationTree::open(&open.store, open.session.todo())?);
            }
            let Open { session, tree, .. } = open;
            if given.is_empty() && session.is_forgotten()? {
                // Its error says so, as that of recording something new does.
                session.refresh()?;
            }
            let tree =
                tree.as_mut().ok_or_else(|| Failure::internal("a tree that was read is gone"))?;
            tree.show(session, known, given)
        })
    }

    /// The message at this place of the conversation that was given last, as it is recorded.
    fn recorded(&self, py: Python<'_>, place: usize) -> PyResult<String> {
        self.with(py, |open| {
            let range = open.tree.as_ref().and_then(|tree| tree.recorded(place));
            let range = range.ok_or_else(|| Failure::internal("a message has no place"))?;
            let messages = open.store.messages(open.session.todo(), range)?;
            let message = messages.first().ok_or_else(|| Failure::internal("a place is empty"))?;
            Ok(message.json().to_owned())
        })
    }

    /// Forgets what is at hand, and reads it again from the store.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| {
            open.tree = None;
            Ok(open.session.refresh()?)
        })
    }

    /// The request to send now, of at most so many tokens.
    fn prompt(
        &self,
        py: Python<'_>,
        format: &str,
        tokens: Option<Whole<usize>>,
    ) -> PyResult<Prompt> {
        let tokens = tokens.map(|tokens| tokens.0);
        let format = format.to_owned();
        self.with(py, |open| {
            let format = MessageFormat::named(&format)?;
            let prompt = open.session.prompt(&Budget { tokens });
            Ok(Prompt::new(prompt, open.session.prefix_moves(), format))
        })
    }

    /// The memory tools that this conversation's policy offers: name, description, schema of the arguments.
    fn tools(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        self.with(py, |open| {
            let tools = ContextManager::tools(&open.session).iter().cloned();
            Ok(tools.map(|tool| (tool.name, tool.description, tool.parameters)).collect())
        })
    }

    /// Answers a call of a memory tool.
    fn call(&self, py: Python<'_>, tool: &str, arguments: &str, id: &str) -> PyResult<Answer> {
        self.with(py, |open| Ok(open.session.call(&ToolCall::new(id, tool, arguments))?.into()))
    }

    /// Keeps a message in every prompt.
    fn pin(&self, py: Python<'_>, message: Whole<u64>) -> PyResult<()> {
        self.with(py, |open| Ok(open.session.pin(SeqNo(message.0))?))
    }

    /// So many tokens of the agent's own are sent in front of every prompt.
    fn set_front_tokens(&self, py: Python<'_>, tokens: Whole<u64>) -> PyResult<()> {
        self.with(py, |open| {
            ContextManager::set_front_tokens(&mut open.session, tokens.0);
            Ok(())
        })
    }

    /// Closes the open block, because the conversation is over.
    fn close(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |open| {
            let closed = open.session.close(Close::End)?;
            Ok(closed.iter().map(ToString::to_string).collect())
        })
    }
}
