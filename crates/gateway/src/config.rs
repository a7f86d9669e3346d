//! The settings of a gateway.

use crate::{GatewayError, Tenants, Upstream};
use foldback::{CacheAware, FoldPolicy, Memory, ViewConfig};
use foldback_core::TodoId;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a gateway.
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// Where requests of Anthropic's API go.
    pub anthropic: Upstream,
    /// Where requests of OpenAI's APIs go, and all others.
    pub openai: Upstream,
    /// Whether conversations are recorded.
    pub keeping: Keeping,
    /// The file that receives a line for each request: what it cost, and what it would have cost whole. The sums
    /// are kept in any case.
    pub ledger: Option<PathBuf>,
    /// The folder in which each exchange of a conversation is kept, as a file of its own.
    pub traffic: Option<PathBuf>,
    /// How a model reaches what its requests no longer show.
    pub recall: RecallBy,
    /// A mark in the description of the agent's own `load`, if that tool reaches what this gateway records,
    /// with [`RecallBy::Mcp`].
    pub load_mark: String,
    /// Of this many requests from which something is left out, one is counted whole by its provider, if that
    /// is Anthropic's API; 0 for none.
    pub check_every: u64,
    /// Whether a request is refused if its conversation cannot be recorded. By default it is passed on.
    pub fail_closed: bool,
    /// The token that clients must send as `x-foldback-token`. Required if other machines can reach the address.
    pub token: Option<String>,
    /// The tenants that may send requests, with tokens of their own. What they say is recorded in their stores alone.
    /// Without [`token`](Self::token), only tenants are answered.
    pub tenants: Option<Arc<dyn Tenants>>,
    /// The todo that a conversation is recorded in if its client names none. Sub-agents have todos of their own.
    pub todo: Option<TodoId>,
    /// The folder that clients work in, if there is one: `foldback mcp` and searches find a conversation by it.
    pub folder: Option<String>,
    /// Receives a line about each thing that failed.
    pub log: Log,
}

/// Receives lines for a person to read.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl GatewayConfig {
    /// Returns the providers' own addresses, with nothing recorded.
    ///
    /// # Errors
    /// Never, in practice: the built-in addresses are valid.
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
            tenants: None,
            todo: None,
            folder: None,
            log: Arc::new(|_| {}),
        })
    }

    /// Checks that a gateway of this configuration may listen on an address: one that other machines can reach needs a token,
    /// or tenants.
    ///
    /// # Errors
    /// [`GatewayError::Exposed`] if it may not.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), GatewayError> {
        let is_guarded = self.token.is_some() || self.tenants.is_some();
        match address.ip().is_loopback() || is_guarded {
            true => Ok(()),
            false => Err(GatewayError::Exposed(address)),
        }
    }
}

/// How a model reaches what its requests do not show. Only if it can is anything left out of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecallBy {
    /// Not at all: every request is sent unchanged.
    #[default]
    Off,
    /// By tools that the agent has itself, from a server that reaches what the gateway records.
    Mcp,
    /// By tools that the gateway declares, once something is left out, and answers within a turn; the client does not
    /// see them.
    Stream,
    /// As `Stream`, and also in a conversation with blocks that were closed before this gateway first saw it, even
    /// if nothing is left out of it.
    Always,
}

impl RecallBy {
    /// Returns whether the gateway answers the model's calls.
    pub(crate) fn is_unseen(self) -> bool {
        matches!(self, Self::Stream | Self::Always)
    }
}

/// How a model reaches what its requests do not show, and how its own `load` is recognised.
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
    /// They should be, and cannot, for this reason.
    Impossible(String),
}

impl Keeping {
    /// Returns a mark for the tools of a server that reaches what is recorded into this store: the same each time,
    /// so that what follows the tools stays in the provider's cache.
    #[must_use]
    pub fn load_mark(memory: &Memory) -> String {
        let key =
            blake3::derive_key("foldback 2026-11-23 mark of a server's tools", &memory.secret());
        let digest = blake3::Hash::from(key).to_hex();
        format!("({})", digest.get(..8).unwrap_or_default())
    }

    /// Returns a name of this store that does not reveal its place: two programs use it to see whether they share
    /// a store.
    #[must_use]
    pub fn store_name(memory: &Memory) -> String {
        let key = blake3::derive_key("foldback 2026-11-23 name of a store", &memory.secret());
        blake3::Hash::from(key).to_hex().chars().take(16).collect()
    }

    /// Returns the view with which a store is opened for a gateway: blocks leave when that is cheaper than reading them
    /// again, and new content is whole, whatever its size. Nothing is reformatted: while nothing leaves, the provider
    /// gets the client's own bytes.
    #[must_use]
    pub fn view() -> ViewConfig {
        let policy = FoldPolicy::CacheAware(CacheAware::default());
        let view = ViewConfig::default().with_fold_policy(policy).with_fresh_tokens(u64::MAX);
        view.with_compact_json(false).with_deduplicate(false)
    }
}
