//! Options for opening a memory.

use crate::{Audit, OffloadPolicy, Quota, Redaction};
use foldback_backend_store::PayloadPlace;
use foldback_blockstore::IndexConfig;
use foldback_chunker::ChunkerConfig;
use foldback_core::{Embedder, Estimate, Timestamp, TokenCounter};
use foldback_disclosure::ViewConfig;
use foldback_kv::{EncryptionKey, Engine, Mode, Server, Truth};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A publicly known secret for runs whose bytes or tokens are compared.
pub const KNOWN_SECRET: [u8; 32] = [0; 32];

/// Options for opening a memory. The default is embedded: SQLite, the built-in embedder, estimated
/// tokens, nothing to download.
///
/// ```
/// use foldback::{Engine, OffloadPolicy, Options};
///
/// let options = Options::default()
///     .with_engine(Engine::Redb)
///     .with_offload(OffloadPolicy::default().with_tokens(2_000).with_tool_tokens("search", 0));
/// assert_eq!(options.offload.tokens, 2_000);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The storage engine.
    pub engine: Engine,
    /// The address of the database, if the engine is [`Engine::Postgres`].
    pub server: Option<Server>,
    /// Whether the store may be written.
    pub mode: Mode,
    /// Which texts are stored outside the conversation.
    pub offload: OffloadPolicy,
    /// Where the files of large payloads are kept: `None`, the default, for the store's folder. A store that was opened
    /// for writing with a place is opened with that place or not at all. One without a folder, such as a store in
    /// memory, keeps all payloads in its records, whatever is named here.
    pub payloads: Option<PayloadPlace>,
    /// How blocks are cut.
    pub chunker: ChunkerConfig,
    /// How much the live view shows. `None` keeps what each todo was last shown under, which its session
    /// stores, and uses the default for a new one.
    pub view: Option<ViewConfig>,
    /// When a todo gets an index of its own.
    pub index: IndexConfig,
    /// The embedder: `None` for the store's own (see
    /// [`Embedding::choose`](crate::Embedding::choose)), which is the built-in one unless another
    /// was chosen. One that is given becomes a new store's own; if a store already has another,
    /// [`Embedding::trouble`](crate::Embedding::trouble) says so.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The secret behind the [marks](foldback_disclosure::Marks) of recalled text: `None` for the store's
    /// own, which is random, is made with the store and stays with it. One that is given is not stored; it
    /// is for runs whose bytes are compared, as [`KNOWN_SECRET`] is.
    pub secret: Option<[u8; 32]>,
    /// Whether secrets are replaced by marks before anything is stored, indexed, embedded or counted: `None`, the
    /// default, keeps every message as it came.
    pub redaction: Option<Redaction>,
    /// The key with which everything in the store's folder is sealed: `None`, the default, opens a store that is
    /// not encrypted. A new store is encrypted if a key is given.
    pub encryption: Option<EncryptionKey>,
    /// Whether each load, search and tool call is logged in the store's folder: `None`, the default, logs nothing.
    pub audit: Option<Audit>,
    /// How much one todo may hold: by default as much as fits on the disk.
    pub quota: Quota,
    /// The counter of tokens.
    pub tokens: Arc<dyn TokenCounter>,
    /// The clock for the time of recording, of grants and of the audit log. It does not decide where blocks end: a
    /// silence is measured between the times that messages carry.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Sqlite,
            server: None,
            mode: Mode::ReadWrite,
            offload: OffloadPolicy::default(),
            payloads: None,
            chunker: ChunkerConfig::default(),
            view: None,
            index: IndexConfig::default(),
            embedder: None,
            secret: None,
            redaction: None,
            encryption: None,
            audit: None,
            quota: Quota::default(),
            tokens: Arc::new(Estimate),
            clock: Arc::new(system_clock),
        }
    }
}

impl Options {
    /// Sets the storage engine.
    #[must_use]
    pub fn with_engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the database that holds the records, with which the engine is [`Engine::Postgres`]. The store's folder then
    /// holds indexes, which can be made again, and the files of large payloads.
    #[must_use]
    pub fn with_server(mut self, server: Server) -> Self {
        self.engine = Engine::Postgres;
        self.server = Some(server);
        self
    }

    /// Sets the place of the records: [an engine](Self::with_engine), or [a database](Self::with_server).
    #[must_use]
    pub fn with_truth(self, truth: Truth) -> Self {
        match truth {
            Truth::Folder(engine) => self.with_engine(engine),
            Truth::Server(server) => self.with_server(server),
        }
    }

    /// Sets whether the store may be written or only read.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets which texts are stored outside the conversation.
    #[must_use]
    pub fn with_offload(mut self, offload: OffloadPolicy) -> Self {
        self.offload = offload;
        self
    }

    /// Sets where the files of large payloads are [kept](Self::payloads); `None` for the store's folder.
    #[must_use]
    pub fn with_payloads(mut self, place: impl Into<Option<PayloadPlace>>) -> Self {
        self.payloads = place.into();
        self
    }

    /// Sets how blocks are cut.
    #[must_use]
    pub fn with_chunker(mut self, chunker: ChunkerConfig) -> Self {
        self.chunker = chunker;
        self
    }

    /// Sets the [live view](Self::view) for every todo; `None` for each todo's own.
    #[must_use]
    pub fn with_view(mut self, view: impl Into<Option<ViewConfig>>) -> Self {
        self.view = view.into();
        self
    }

    /// Sets when a todo gets an index of its own.
    #[must_use]
    pub fn with_index(mut self, index: IndexConfig) -> Self {
        self.index = index;
        self
    }

    /// Sets the [embedder](Self::embedder); `None` for the store's own.
    #[must_use]
    pub fn with_embedder(mut self, embedder: impl Into<Option<Arc<dyn Embedder>>>) -> Self {
        self.embedder = embedder.into();
        self
    }

    /// Sets the [secret](Self::secret); `None` for the store's own.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<Option<[u8; 32]>>) -> Self {
        self.secret = secret.into();
        self
    }

    /// Sets how secrets are [replaced by marks](Self::redaction); `None` keeps everything as it came.
    #[must_use]
    pub fn with_redaction(mut self, redaction: impl Into<Option<Redaction>>) -> Self {
        self.redaction = redaction.into();
        self
    }

    /// Sets the [key](Self::encryption) of an encrypted store; `None` for one that is not encrypted.
    #[must_use]
    pub fn with_encryption(mut self, key: impl Into<Option<EncryptionKey>>) -> Self {
        self.encryption = key.into();
        self
    }

    /// Sets whether look-ups are [logged](Self::audit); `None` for no log.
    #[must_use]
    pub fn with_audit(mut self, audit: impl Into<Option<Audit>>) -> Self {
        self.audit = audit.into();
        self
    }

    /// Sets how much one todo may hold.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Sets the counter of tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenCounter>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl Options {
    /// Returns the place of the records.
    pub(crate) fn truth(&self) -> Truth {
        match (self.engine, &self.server) {
            (Engine::Postgres, Some(server)) => Truth::Server(server.clone()),
            (engine, _) => Truth::Folder(engine),
        }
    }
}

/// Returns the system's time, to the millisecond.
fn system_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
