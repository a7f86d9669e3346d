//! How a memory is opened.

use crate::{Audit, OffloadPolicy, Quota, Redaction};
use foldback_blockstore::IndexConfig;
use foldback_chunker::ChunkerConfig;
use foldback_core::{Embedder, Estimate, Timestamp, TokenCounter};
use foldback_disclosure::ViewConfig;
use foldback_kv::{EncryptionKey, Engine, Mode};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A secret for runs whose bytes or tokens are compared, which everybody knows.
pub const KNOWN_SECRET: [u8; 32] = [0; 32];

/// How a memory is opened. The default is the embedded one: SQLite, the built-in embedder, the estimate
/// of tokens, nothing to download.
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
    /// Whether the store may be written.
    pub mode: Mode,
    /// Which texts are stored outside the conversation.
    pub offload: OffloadPolicy,
    /// How blocks are cut.
    pub chunker: ChunkerConfig,
    /// How much the live view shows: `None` for what a todo was last shown under, which its session keeps,
    /// and the default for a new one.
    pub view: Option<ViewConfig>,
    /// When a todo gets an index of its own.
    pub index: IndexConfig,
    /// What makes vectors of texts: `None` for the store's own (see
    /// [`Embedding::choose`](crate::Embedding::choose)), which is the built-in one unless it was
    /// told of another. One that is given becomes the own of a new store; where a store has another,
    /// [`Embedding::trouble`](crate::Embedding::trouble) says so.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What the [marks](foldback_disclosure::Marks) of recalled text are made of: `None` for the
    /// store's own secret, which is random, is made with the store and stays with it. One that is given is
    /// kept nowhere; it is for runs whose bytes are compared, as [`KNOWN_SECRET`] is.
    pub secret: Option<[u8; 32]>,
    /// Whether secrets are replaced by marks before anything of them is stored, indexed, embedded or counted: `None`,
    /// which is the default, keeps every message as it came.
    pub redaction: Option<Redaction>,
    /// The key that everything in the store's folder is sealed with: `None`, the default, opens a store that is not
    /// encrypted. A new store is encrypted where there is one.
    pub encryption: Option<EncryptionKey>,
    /// Whether each load, search and tool call is noted in a log in the store's folder: `None`, the default, notes
    /// nothing.
    pub audit: Option<Audit>,
    /// How much one todo may hold: by default as much as the disk takes.
    pub quota: Quota,
    /// What counts tokens.
    pub tokens: Arc<dyn TokenCounter>,
    /// What tells the time, for messages that carry none.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Sqlite,
            mode: Mode::ReadWrite,
            offload: OffloadPolicy::default(),
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
    /// The same, with this storage engine.
    #[must_use]
    pub fn with_engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// The same, opened for writing or for reading only.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same, with other texts stored outside the conversation.
    #[must_use]
    pub fn with_offload(mut self, offload: OffloadPolicy) -> Self {
        self.offload = offload;
        self
    }

    /// The same, with blocks cut otherwise.
    #[must_use]
    pub fn with_chunker(mut self, chunker: ChunkerConfig) -> Self {
        self.chunker = chunker;
        self
    }

    /// The same, with this [live view](Self::view) for every todo; `None` for each todo's own.
    #[must_use]
    pub fn with_view(mut self, view: impl Into<Option<ViewConfig>>) -> Self {
        self.view = view.into();
        self
    }

    /// The same, with other rules for when a todo gets an index of its own.
    #[must_use]
    pub fn with_index(mut self, index: IndexConfig) -> Self {
        self.index = index;
        self
    }

    /// The same, with this [embedder](Self::embedder); `None` for the store's own.
    #[must_use]
    pub fn with_embedder(mut self, embedder: impl Into<Option<Arc<dyn Embedder>>>) -> Self {
        self.embedder = embedder.into();
        self
    }

    /// The same, with this [secret](Self::secret); `None` for the store's own.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<Option<[u8; 32]>>) -> Self {
        self.secret = secret.into();
        self
    }

    /// The same, with secrets [replaced by marks](Self::redaction); `None` for everything as it came.
    #[must_use]
    pub fn with_redaction(mut self, redaction: impl Into<Option<Redaction>>) -> Self {
        self.redaction = redaction.into();
        self
    }

    /// The same, with the [key](Self::encryption) of an encrypted store; `None` for one that is not.
    #[must_use]
    pub fn with_encryption(mut self, key: impl Into<Option<EncryptionKey>>) -> Self {
        self.encryption = key.into();
        self
    }

    /// The same, with what is looked up [noted](Self::audit); `None` for no log.
    #[must_use]
    pub fn with_audit(mut self, audit: impl Into<Option<Audit>>) -> Self {
        self.audit = audit.into();
        self
    }

    /// The same, with this much in one todo at most.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// The same, with tokens counted by this counter.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenCounter>) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same, with the time told by this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

/// The time of the system, to the millisecond.
fn system_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
