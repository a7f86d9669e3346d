//! An open store of conversations.

use crate::audit;
use crate::embedding::{EmbedderTrouble, Reembedder, adopt, embedder_of};
use crate::error::Failure;
use crate::indexer::Indexer;
use crate::owner::NotedOrigins;
use crate::passages::StoredTexts;
use crate::quota;
use crate::restore;
use crate::secret::{Secret, is_kept, secret_of};
use crate::{Error, OffloadPolicy, Options, ParkedName, Quota, Redaction, Session, disk, texts};
use foldback_backend_store::{BackendConfig, BackendStore};
use foldback_blockstore::{AllTodos, BlockStore, SearchAnswer, SearchRequest};
use foldback_chunker::ChunkerConfig;
use foldback_core::{Block, BlockId, Embedder, Message, Timestamp, TodoId, TokenCounter};
use foldback_disclosure::{Answer, Marks, RecallSource, ViewConfig};
use foldback_kv::{Engine, Error as KvError, Kv, Mode, Registry, Todo};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An open store of conversations. Several processes may open one store at once (with the default
/// engine), and several threads may use one `Memory`.
#[derive(Clone)]
pub struct Memory {
    pub(crate) shared: Arc<Shared>,
}

/// The state that every session of a memory shares.
pub(crate) struct Shared {
    /// Stopped first, while what they work on is still open.
    pub(crate) reembedder: Reembedder,
    pub(crate) indexer: Indexer,
    /// The store's folder; `None` in memory.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) kv: Arc<dyn Kv>,
    mode: Mode,
    pub(crate) registry: Registry,
    pub(crate) blocks: Arc<BlockStore>,
    /// For the owner's handle and for upkeep; nothing that an agent uses leads to it.
    pub(crate) all_todos: Arc<AllTodos>,
    pub(crate) payloads: Arc<BackendStore>,
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) embedder_trouble: Option<Arc<EmbedderTrouble>>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub(crate) offload: OffloadPolicy,
    pub(crate) chunker: ChunkerConfig,
    /// How todos are shown; `None` for each one's last setting.
    pub(crate) view: Option<ViewConfig>,
    pub(crate) redaction: Option<Redaction>,
    pub(crate) quota: Quota,
    pub(crate) audit: Option<audit::Log>,
    secret: Secret,
    /// Whether the next process will know the same secret.
    pub(crate) has_kept_secret: bool,
    /// Parked texts that may not be stored.
    pub(crate) unstored: Mutex<HashMap<(u32, ParkedName), String>>,
}

impl Shared {
    /// Returns the store's secret, which no text in it can know.
    pub(crate) fn secret(&self) -> Secret {
        self.secret
    }

    /// See [`Memory::find`].
    pub(crate) fn find(&self, todo: &TodoId) -> Result<Todo, Error> {
        let found = self.registry.find(todo)?;
        found.ok_or_else(|| Failure::NoTodo(todo.clone()).into())
    }

    /// Returns what the recall tools read of a todo for a caller that sees nothing of it.
    pub(crate) fn recall_source<'a>(
        &'a self,
        todo: &'a Todo,
        open: Option<&'a Block>,
    ) -> RecallSource<'a> {
        RecallSource {
            todo,
            marks: self.marks(todo),
            blocks: &self.blocks,
            payloads: &self.payloads,
            embedder: self.embedder.as_ref(),
            tokens: self.tokens.as_ref(),
            grants: Some(self),
            complex: false,
            open,
            view: None,
        }
    }

    /// Returns the marks around recalled text in the contexts of a todo.
    pub(crate) fn marks(&self, todo: &Todo) -> Marks {
        Marks::new(&self.secret, todo.id())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(log) = &self.audit {
            log.finish(self.kv.as_ref());
        }
    }
}

impl Memory {
    /// Opens the store in `dir`, or creates one if there is none.
    ///
    /// # Errors
    /// When the folder cannot be used, another engine or version wrote it, or it is damaged; with
    /// [`ErrorKind::Key`](crate::ErrorKind::Key) when it is encrypted and [`Options::encryption`] is not its key, or is
    /// not encrypted and a key is given.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        if options.engine == Engine::Memory {
            return Self::in_memory(options);
        }
        let key = options.encryption.as_ref();
        let opened = foldback_kv::open_with(dir, options.truth(), options.mode, key);
        opened.map_err(Error::from).and_then(|kv| Self::open_so(kv, Some(dir), options)).map_err(
            |error| match error.into_failure() {
                Failure::Kv(error @ KvError::Damaged { .. }) => Failure::NotOpened(error).into(),
                failure => failure.into(),
            },
        )
    }

    /// Creates a store that lives as long as the value.
    ///
    /// # Errors
    /// When a part of it cannot be created.
    pub fn in_memory(options: Options) -> Result<Self, Error> {
        Self::open_on(foldback_kv::memory(), None, options)
    }

    /// Opens a store on the caller's own storage engine: anything that keeps the promises of [`Kv`]. `dir` is the
    /// folder for what is not kept in records: large payloads and indexes. Without a folder, payloads are kept in the
    /// records and indexes in memory. The caller ensures that records and folder belong together; [`Options::engine`]
    /// is ignored. With [`Options::encryption`] the engine receives sealed values.
    ///
    /// # Errors
    /// When the folder cannot be used, or the engine fails.
    pub fn open_on(kv: Arc<dyn Kv>, dir: Option<&Path>, options: Options) -> Result<Self, Error> {
        let kv = match &options.encryption {
            Some(key) => foldback_kv::seal(kv, dir, options.mode, key)?,
            None => kv,
        };
        Self::open_so(kv, dir, options)
    }

    /// Opens a store whose records are already sealed, if they are to be.
    fn open_so(kv: Arc<dyn Kv>, dir: Option<&Path>, options: Options) -> Result<Self, Error> {
        restore::check_finished(kv.as_ref())?;
        Self::assemble(kv, dir, options)
    }

    /// Puts together a store, finished or not.
    pub(crate) fn assemble(
        kv: Arc<dyn Kv>,
        dir: Option<&Path>,
        options: Options,
    ) -> Result<Self, Error> {
        let dir = dir.map(Path::to_owned);
        if let Some(path) = dir.as_ref().filter(|_| options.mode == Mode::ReadWrite) {
            let made = std::fs::create_dir_all(path);
            made.map_err(|source| Failure::Io { path: path.clone(), source })?;
        }
        let payloads = payloads_of(&kv, dir.as_deref(), &options)?;
        let payloads = Arc::new(payloads);
        let texts = Arc::new(StoredTexts(payloads.clone()));
        let index = dir.as_ref().map(|dir| dir.join("index"));
        let quota = options.quota.and(&quota::of_store(kv.as_ref())?);
        let registry = Registry::new(kv.clone()).with_most(quota.todos);
        let origins = Arc::new(NotedOrigins(registry.clone()));
        let config = options.index.clone();
        let all_todos = AllTodos::open(kv.clone(), texts.clone(), origins, index.clone(), config);
        let all_todos = Arc::new(all_todos);
        let blocks = BlockStore::open_with_payloads(kv.clone(), texts, index, options.index)?;
        let blocks = Arc::new(blocks);
        let indexer = if dir.is_some() && options.mode == Mode::ReadWrite {
            let path = dir.clone().unwrap_or_default();
            Indexer::start(blocks.clone(), all_todos.clone())
                .map_err(|source| Failure::Io { path, source })?
        } else {
            Indexer::idle()
        };
        let (embedder, embedder_trouble) = embedder_of(kv.as_ref(), options.embedder)?;
        let chunker = options.chunker.with_same_topic(embedder.same_topic())?;
        let is_given = options.secret.is_some();
        let secret = options.secret.map_or_else(|| secret_of(kv.as_ref(), options.mode), Ok)?;
        let is_writable = options.mode == Mode::ReadWrite;
        let has_kept_secret = is_given || is_kept(kv.as_ref(), &secret);
        let kept = has_kept_secret.then_some(&secret);
        let audit =
            audit::log_of(options.audit.as_ref(), dir.as_ref(), kept, kv.as_ref(), is_writable)?;
        let shared = Shared {
            reembedder: Reembedder::default(),
            indexer,
            dir,
            registry,
            kv,
            mode: options.mode,
            blocks,
            all_todos,
            payloads,
            embedder,
            embedder_trouble: embedder_trouble.map(Arc::new),
            tokens: options.tokens,
            clock: options.clock,
            offload: options.offload,
            chunker,
            view: options.view,
            redaction: options.redaction,
            quota,
            audit,
            secret,
            has_kept_secret,
            unstored: Mutex::default(),
        };
        let memory = Self { shared: Arc::new(shared) };
        if options.mode == Mode::ReadWrite {
            memory.shared.dir.as_deref().map(disk::make_reserve);
            let is_new = memory.shared.registry.list(0, 1).is_ok_and(|todos| todos.is_empty());
            let embedding = memory.embedding();
            adopt(memory.shared.kv.as_ref(), embedding.embedder(), is_new)?;
            embedding.reembed_in_background()?;
        }
        Ok(memory)
    }

    /// Returns options with which another memory offloads, cuts, shows and redacts as this one does.
    #[must_use]
    pub fn options(&self) -> Options {
        Options::default()
            .with_offload(self.shared.offload.clone())
            .with_chunker(self.shared.chunker.clone())
            .with_view(self.shared.view.clone())
            .with_redaction(self.shared.redaction.clone())
            .with_quota(self.shared.quota.clone())
    }

    /// Returns the session of a todo, as it was left; a new todo begins empty, unless the store is only read.
    ///
    /// # Errors
    /// When the store fails or the todo's state is damaged; with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when
    /// there is no such todo in a store that is only read.
    pub fn session(&self, todo: &TodoId) -> Result<Session, Error> {
        let todo = match self.shared.mode {
            Mode::ReadOnly => self.find(todo)?,
            Mode::ReadWrite => self.shared.registry.create(todo, b"")?,
        };
        // An index that is missing or behind is rebuilt while the todo is in use.
        self.shared.indexer.wake(&todo);
        Session::resume(self.shared.clone(), todo)
    }

    /// Returns up to `limit` todos after `after`, in order of creation.
    ///
    /// # Errors
    /// When the store fails or there is no todo `after`: if it may be forgotten meanwhile, walk with
    /// [`todos_after`](Self::todos_after).
    pub fn todos(&self, after: Option<&TodoId>, limit: usize) -> Result<Vec<TodoId>, Error> {
        let after = after.map(|todo| self.find(todo)).transpose()?.map_or(0, |todo| todo.no());
        let todos = self.todos_after(after, limit)?;
        Ok(todos.into_iter().map(|todo| todo.id().clone()).collect())
    }

    /// Returns up to `limit` todos with [numbers](Todo::no) above `after`, in order of creation; 0 is before all of them.
    /// No number is given twice, so a walk goes on after a todo that has been forgotten since.
    ///
    /// # Errors
    /// When the store fails.
    pub fn todos_after(&self, after: u32, limit: usize) -> Result<Vec<Todo>, Error> {
        Ok(self.shared.registry.list(after, limit)?)
    }

    /// Returns how many messages a todo holds.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn len(&self, todo: &TodoId) -> Result<u64, Error> {
        Ok(self.shared.blocks.head(&self.find(todo)?)?.messages)
    }

    /// Returns the messages of a range, exactly as they were recorded.
    ///
    /// # Errors
    /// When there is no such todo or message, or one is damaged.
    pub fn messages(&self, todo: &TodoId, range: Range<u64>) -> Result<Vec<Message>, Error> {
        texts::exact_messages(&self.shared, &self.find(todo)?, range)
    }

    /// Returns how many closed blocks a todo has.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn closed_blocks(&self, todo: &TodoId) -> Result<u32, Error> {
        crate::maintenance::last_block(&self.shared, &self.find(todo)?)
    }

    /// Returns up to `limit` closed blocks after the `after`-th, in order of time.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn blocks(&self, todo: &TodoId, after: u32, limit: usize) -> Result<Vec<Block>, Error> {
        Ok(self.shared.blocks.blocks(&self.find(todo)?, after, limit)?)
    }

    /// Returns one closed block by its id; its todo must be `todo`.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn block(&self, todo: &TodoId, id: &BlockId) -> Result<Option<Block>, Error> {
        let todo = self.find(todo)?;
        if id.todo() != todo.id() {
            return Ok(None);
        }
        Ok(self.shared.blocks.block(&todo, id.n())?)
    }

    /// Returns the blocks of a todo that best answer a request by words and by meaning, best first (except for those in
    /// another script than the question's, which have places of their own). The [open messages](Self::open_block) are
    /// among them, as a block of their own. If the embedder fails, the words alone decide, and the answer says so.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn search(
        &self,
        todo: &TodoId,
        request: &SearchRequest<'_>,
    ) -> Result<SearchAnswer, Error> {
        let searcher = self.shared.searcher_with_open(&self.find(todo)?)?;
        let answer = searcher.search_with(request, self.shared.embedder.as_ref())?;
        self.shared.note_search(Some(todo), request.query(), &answer.hits)?;
        Ok(answer)
    }

    /// Runs one of the recall tools as for a model that sees nothing of the todo: the [open
    /// messages](Self::open_block) are searched, listed and loaded, too.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn recall(&self, todo: &TodoId, tool: &str, arguments: &str) -> Result<Answer, Error> {
        let todo = self.find(todo)?;
        let call = foldback_core::ToolCall::new("call", tool, arguments);
        let open = self.shared.open_block(&todo)?;
        let source = self.shared.recall_source(&todo, open.as_ref());
        let answer = foldback_disclosure::run_tool(&source, &call)?;
        self.shared.note_call(Some(todo.id()), tool, arguments, &answer)?;
        Ok(answer)
    }

    /// Returns the time by the memory's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    /// Returns the secret behind the marks of recalled text, for a memory that is to show the same as this one.
    #[must_use]
    pub fn secret(&self) -> [u8; 32] {
        self.shared.secret
    }

    /// Returns the payloads of this memory, for reading by reference.
    #[must_use]
    pub fn payloads(&self) -> &BackendStore {
        &self.shared.payloads
    }

    /// Returns the todo with this id.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn find(&self, todo: &TodoId) -> Result<Todo, Error> {
        self.shared.find(todo)
    }
}

/// Opens the payloads of a store.
fn payloads_of(
    kv: &Arc<dyn Kv>,
    dir: Option<&Path>,
    options: &Options,
) -> Result<BackendStore, Error> {
    let config = match options.engine {
        // What is in a record is found from every machine; a file is only on one.
        Engine::Postgres => BackendConfig::default().with_inline_max(BackendConfig::INLINE_LIMIT),
        _ => BackendConfig::default(),
    };
    Ok(match dir.map(|dir| dir.join("payloads")) {
        Some(folder) => {
            let place = options.payloads.as_ref();
            BackendStore::open_at(kv.clone(), folder, place, options.mode, config)?
        }
        None => BackendStore::open(kv.clone(), None, config)?,
    })
}
