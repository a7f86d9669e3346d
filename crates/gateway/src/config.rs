//! What a gateway is set up with.

use crate::{GatewayError, Upstream};
use foldback::{CacheAware, FoldPolicy, Memory, ViewConfig};
use foldback_core::TodoId;
use std::path::PathBuf;
use std::sync::Arc;

/// What a gateway is set up with.
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// Where requests of Anthropic's API go.
    pub anthropic: Upstream,
    /// Where requests of OpenAI's APIs go, and whatever else.
    pub openai: Upstream,
    /// Whether conversations are recorded.
    pub keeping: Keeping,
    /// The file that a line is added to for each request: what it cost, and what it would have cost whole. Its sums
    /// are kept in any case.
    pub ledger: Option<PathBuf>,
    /// The folder that each exchange of a conversation is kept in, as a file of its own.
    pub traffic: Option<PathBuf>,
    /// How a model reaches what its requests do not show.
    pub recall: RecallBy,
    /// What the description of the agent's own `load` holds where that reaches what this gateway records, with
    /// [`RecallBy::Mcp`].
    pub load_mark: String,
    /// Of so many requests of which something is left out, one is counted whole by its provider, where that is
    /// Anthropic's API; 0 for none.
    pub check_every: u64,
    /// Whether a request is refused where its conversation cannot be recorded. By default it is passed on.
    pub fail_closed: bool,
    /// What clients must send as `x-foldback-token`. An address that other machines reach needs one.
    pub token: Option<String>,
    /// The todo that a conversation is recorded in where its client names none. Sub-agents have todos of their own.
    pub todo: Option<TodoId>,
    /// The folder that clients work in, where it is one: `foldback mcp` and searches know a conversation by it.
    pub folder: Option<String>,
    /// Takes a line for each thing that could not be done as it should be.
    pub log: Log,
}

/// Takes lines for a person to read.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl GatewayConfig {
    /// The providers' own addresses, nothing recorded.
    ///
    /// # Errors
    /// Never, in practice: the addresses that are written here can be read.
    pub fn new() -> Result<Self, GatewayError> {
        Ok(Self {
            anthropic: Upstream::new("https://api.anthropic.com")?,
            openai: Upstream::new("https://api.openai.com/v1")?,
            keeping: Keeping::Off,
            recall: RecallBy::Off,
            load_mark: String::new(),
            ledger: None,
            traffic: None,
            check_every: 0,
            fail_closed: false,
            token: None,
            todo: None,
            folder: None,
            log: Arc::new(|_| {}),
        })
    }
}

/// How a model reaches what its requests do not show. Only where it does, anything is left out of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecallBy {
    /// Not at all: every request goes as it came.
    #[default]
    Off,
    /// By tools that the agent has itself, from a server that reaches what the gateway records.
    Mcp,
    /// By tools that the gateway declares, once something is left out, and answers within a turn; the client sees nothing
    /// of them.
    Stream,
    /// The same, also in a conversation of which blocks were closed before this gateway saw it first, though nothing
    /// is left out of it.
    Always,
}

impl RecallBy {
    /// Whether the gateway answers the model's calls.
    pub(crate) fn is_unseen(self) -> bool {
        matches!(self, Self::Stream | Self::Always)
    }
}

/// How a model reaches what its requests do not show, and how its own `load` is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    pub(crate) by: RecallBy,
    pub(crate) mark: String,
}

/// Whether conversations are recorded, and where.
#[derive(Clone)]
#[non_exhaustive]
pub enum Keeping {
    /// Nothing is recorded.
    Off,
    /// In this store, which was opened for [this view](Keeping::view).
    On(Memory),
    /// They should be, and cannot: why.
    Impossible(String),
}

impl Keeping {
    /// A mark for the tools of a server that reaches what is recorded into this store: the same each time, so that
    /// what stands behind the tools stays in the provider's cache.
    #[must_use]
    pub fn load_mark(memory: &Memory) -> String {
        let key =
            blake3::derive_key("foldback 2026-11-23 mark of a server's tools", &memory.secret());
        let digest = blake3::Hash::from(key).to_hex();
        format!("({})", digest.get(..8).unwrap_or_default())
    }

    /// A name of this store that says nothing of where it is: by it two programs see that they have the same one.
    #[must_use]
    pub fn store_name(memory: &Memory) -> String {
        let key = blake3::derive_key("foldback 2026-11-23 name of a store", &memory.secret());
        blake3::Hash::from(key).to_hex().chars().take(16).collect()
    }

    /// What a store is opened with for a gateway: blocks leave when that is cheaper than reading them again, and
    /// what is new is whole, whatever its size. Nothing is shown in another form: while nothing leaves, the provider gets
    /// the client's own bytes.
    #[must_use]
    pub fn view() -> ViewConfig {
        let policy = FoldPolicy::CacheAware(CacheAware::default());
        let view = ViewConfig::default().with_fold_policy(policy).with_fresh_tokens(u64::MAX);
        view.with_compact_json(false).with_deduplicate(false)
    }
}
