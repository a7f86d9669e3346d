//! What a memory can be told at birth.

use crate::OffloadPolicy;
use foldback_blockstore::IndexConfig;
use foldback_chunker::ChunkerConfig;
use foldback_core::{Embedder, Estimate, Timestamp, TokenCounter};
use foldback_disclosure::ViewConfig;
use foldback_kv::{Engine, Mode};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A secret for runs whose bytes or tokens are compared, which everybody knows.
pub const KNOWN_SECRET: [u8; 32] = [0; 32];

/// What a memory can be told at birth. The default is the embedded one: SQLite, the built-in
/// embedder, the estimate of tokens, nothing to download.
#[derive(Clone)]
pub struct Options {
    /// The storage engine.
    pub engine: Engine,
    /// Whether the store may be written.
    pub mode: Mode,
    /// Which texts are stored outside the conversation.
    pub offload: OffloadPolicy,
    /// How blocks are cut.
    pub chunker: ChunkerConfig,
    /// How much the live view shows.
    pub view: ViewConfig,
    /// When a todo gets an index of its own.
    pub index: IndexConfig,
    /// What makes vectors of texts: `None` for the store's own (see
    /// [`choose_embedder`](crate::Memory::choose_embedder)), which is the built-in one unless it was
    /// told of another. One that is given becomes the own of a new store; where a store has another,
    /// [`embedder_trouble`](crate::Memory::embedder_trouble) says so.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What the [marks](foldback_disclosure::Marks) of recalled text are made of: `None` for the
    /// store's own secret, which is random, is made with the store and stays with it. One that is given is
    /// kept nowhere; it is for runs whose bytes are compared, as [`KNOWN_SECRET`] is.
    pub secret: Option<[u8; 32]>,
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
            view: ViewConfig::default(),
            index: IndexConfig::default(),
            embedder: None,
            secret: None,
            tokens: Arc::new(Estimate),
            clock: Arc::new(system_clock),
        }
    }
}

/// The time of the system, to the millisecond.
fn system_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
