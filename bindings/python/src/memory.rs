//! A store of conversations.

use crate::argument::{KeyBytes, Whole};
use crate::error::{Failure, detached, raise};
use crate::opener::{Opener, check_folder, note_folder};
use crate::prompt::Answer;
use crate::session::{OpenSession, Session};
use foldback::core::{Estimate, Message, Prices, Reference, TodoId, message_tokens};
use foldback::{
    CacheAware, EncryptionKey, Engine, FoldPolicy, Memory as Store, Mode, Options, Redaction,
    SearchRequest, Truth, ViewConfig,
};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A store of conversations. The store closes with the last call, session or memory that holds it.
#[pyclass(frozen, module = "foldback._foldback")]
pub(crate) struct Memory {
    opener: Opener,
    held: Mutex<Held>,
}

/// What a memory holds until it is closed.
#[derive(Default)]
struct Held {
    store: Option<Arc<Store>>,
    /// Closed with the memory, because each holds the store as well.
    sessions: Vec<Weak<OpenSession>>,
}

impl Held {
    fn store(&self) -> Result<Arc<Store>, Failure> {
        self.store.clone().ok_or_else(|| Failure::invalid("the memory is closed; open it again"))
    }
}

impl Memory {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> Result<Arc<Store>, Failure> {
        // First: in a fork the lock may be one that a thread of the parent held.
        self.opener.check()?;
        self.held().store()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.opener.let_go(std::mem::take(held));
    }
}

/// A tool as it is declared: its name, its description, the JSON schema of its arguments.
type Tool = (String, String, String);

/// A hit of a search: the block's id, its header, its score, its first message's number and that of the one after
/// its last.
type Hit = (String, String, f32, u64, u64);

#[pymethods]
impl Memory {
    #[new]
    #[pyo3(signature = (
        folder, policy, prices=None, least_cached=None, engine="sqlite", read_only=false, key=None, redact=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        py: Python<'_>,
        folder: Option<PathBuf>,
        policy: &str,
        prices: Option<(f64, f64)>,
        least_cached: Option<Whole<u64>>,
        engine: &str,
        read_only: bool,
        key: Option<KeyBytes>,
        redact: bool,
    ) -> PyResult<Self> {
        if let Some(folder) = &folder {
            check_folder(py, folder).map_err(|failure| raise(py, &failure))?;
        }
        let store = detached(py, || {
            let mode = if read_only { Mode::ReadOnly } else { Mode::ReadWrite };
            let options = Options::default()
                .with_view(view(policy, prices, least_cached.map(|tokens| tokens.0))?)
                .with_truth(truth_named(engine)?)
                .with_mode(mode)
                .with_encryption(key.map(|key| EncryptionKey::new(key.0)))
                .with_redaction(redact.then(Redaction::default));
            Ok(Arc::new(match &folder {
                Some(folder) => Store::open(folder, options)?,
                None => Store::in_memory(options)?,
            }))
        })?;
        if let Some(folder) = &folder {
            note_folder(py, folder, &store);
        }
        let store = Some(store);
        let held = Mutex::new(Held { store, sessions: Vec::new() });
        Ok(Self { opener: Opener::this(), held })
    }

    /// The conversation of this name, which is begun where there is none.
    fn session(&self, py: Python<'_>, name: &str) -> PyResult<Session> {
        detached(py, || {
            let session = Session::open(&self.store()?, &TodoId::from_foreign(name))?;
            let mut held = self.held();
            // It may have been closed meanwhile.
            held.store()?;
            held.sessions.retain(|session| session.strong_count() > 0);
            held.sessions.push(Arc::downgrade(&session.open));
            Ok(session)
        })
    }

    /// Closes the memory and its sessions, and waits until a call that is running has ended. It may be closed already.
    /// In a fork there is nothing to close: the end of a `with` block there leaves the parent's store alone.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.opener.is_this() {
            return Ok(());
        }
        detached(py, || {
            let held = std::mem::take(&mut *self.held());
            held.sessions.iter().filter_map(Weak::upgrade).for_each(|session| session.close());
            Ok(())
        })
    }

    /// The conversations with numbers above this one, in their order: the number and the name of each.
    fn names(&self, py: Python<'_>, after: u32, most: usize) -> PyResult<Vec<(u32, String)>> {
        detached(py, || {
            let todos = self.store()?.todos_after(after, most)?;
            Ok(todos.iter().map(|todo| (todo.no(), todo.id().to_string())).collect())
        })
    }

    /// The messages of a conversation, as JSON.
    fn messages(&self, py: Python<'_>, name: &str, from: u64, to: u64) -> PyResult<Vec<String>> {
        detached(py, || {
            let todo = TodoId::from_foreign(name);
            let to = to.min(self.store()?.len(&todo)?);
            let messages = self.store()?.messages(&todo, from.min(to)..to)?;
            Ok(messages.iter().map(|message| message.json().to_owned()).collect())
        })
    }

    /// The blocks of a conversation that answer a question best.
    fn search(
        &self,
        py: Python<'_>,
        name: &str,
        query: &str,
        k: Whole<usize>,
    ) -> PyResult<Vec<Hit>> {
        detached(py, || {
            if k.0 == 0 {
                return Err(Failure::invalid(
                    "k is the most blocks to find, at least 1, and not 0",
                ));
            }
            let request = SearchRequest::new(query).k(k.0);
            let answer = self.store()?.search(&TodoId::from_foreign(name), &request)?;
            let hit = |hit: foldback::Hit| {
                let range = hit.block.range;
                let end = range.last().0 + 1;
                let header = hit.block.header;
                (header.block_id.to_string(), header.core_semantic, hit.score, range.first().0, end)
            };
            Ok(answer.hits.into_iter().map(hit).collect())
        })
    }

    /// Answers a call of a memory tool for a caller who sees nothing of the conversation.
    fn call(&self, py: Python<'_>, name: &str, tool: &str, arguments: &str) -> PyResult<Answer> {
        let todo = TodoId::from_foreign(name);
        detached(py, || Ok(self.store()?.recall(&todo, tool, arguments)?.into()))
    }

    /// The memory tools as they are declared to a model under the policy `strict`.
    #[staticmethod]
    fn tools() -> Vec<Tool> {
        let reading = foldback::MemoryTool::all().into_iter().filter(|tool| !tool.writes);
        reading.map(|tool| (tool.name.into(), tool.description.into(), tool.parameters)).collect()
    }

    /// The estimated tokens of a message.
    #[staticmethod]
    fn tokens(py: Python<'_>, message: &str) -> PyResult<usize> {
        detached(py, || {
            let message = Message::from_json(message).map_err(Failure::invalid)?;
            Ok(message_tokens(&Estimate, &message))
        })
    }

    /// The bytes of a stored part of a conversation.
    fn payload(&self, py: Python<'_>, name: &str, reference: &str) -> PyResult<Vec<u8>> {
        detached(py, || {
            let todo = TodoId::from_foreign(name);
            let reference = Reference::parse_in(&todo, reference).map_err(Failure::invalid)?;
            let mut bytes = Vec::new();
            self.store()?.references().write(&todo, &reference, &mut bytes)?;
            Ok(bytes)
        })
    }

    /// Removes a conversation for good.
    fn forget(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || Ok(self.store()?.maintenance().forget(&TodoId::from_foreign(name))?))
    }
}

/// How conversations are shown under a policy of this name; prices are those of a token that is read from the
/// provider's cache and of one that is written there, where an ordinary one costs 1.
fn view(
    policy: &str,
    prices: Option<(f64, f64)>,
    least_cached: Option<u64>,
) -> Result<ViewConfig, Failure> {
    let mut settings = CacheAware::default();
    if let Some(tokens) = least_cached {
        settings = settings.with_least_cached(tokens);
    }
    if let Some((read, write)) = prices {
        let prices = Prices { read, write, plain: 1.0 };
        settings = settings.with_prices(prices).map_err(Failure::invalid)?;
    }
    let policy = match policy {
        "auto" => FoldPolicy::auto(settings),
        "strict" => FoldPolicy::Strict,
        "cache-aware" => FoldPolicy::CacheAware(settings),
        other => {
            let known = "\"auto\", \"strict\" or \"cache-aware\"";
            return Err(Failure::invalid(format!("the policy is {known}, and not {other:?}")));
        }
    };
    Ok(ViewConfig::default().with_fold_policy(policy))
}

/// The name of an engine, or the address of a database, which no error repeats.
fn truth_named(name: &str) -> Result<Truth, Failure> {
    name.parse().map_err(|_| {
        let known: Vec<String> = Engine::ALL.iter().map(ToString::to_string).collect();
        Failure::invalid(format!("the engine is one of {}, and not {name:?}", known.join(", ")))
    })
}
