//! `[memory]`: where messages are kept, what is stored outside them, and how blocks are cut.

use super::Wrong;
use crate::payloads::Payloads;
use foldback::{ChunkerConfig, IndexConfig, OffloadPolicy, Options, Quota};
use foldback_kv::Engine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where messages are kept, what is stored outside them, and how blocks are cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MemorySettings {
    /// The store's folder.
    pub(crate) store: Option<PathBuf>,
    /// The storage engine, by name.
    pub(crate) engine: String,
    /// The place of large payloads, if it is not the store's folder.
    pub(crate) payloads: Option<String>,
    /// The embedder of a new store.
    pub(crate) embedder: Option<String>,
    /// Whether secrets are replaced by marks before anything of them is stored.
    pub(crate) redact: bool,
    /// The file with the key that removed secrets are sealed with.
    pub(crate) redaction_key_file: Option<PathBuf>,
    /// The file with the key that the store is encrypted with.
    pub(crate) encryption_key_file: Option<PathBuf>,
    /// The command that prints that key.
    pub(crate) encryption_key_command: Option<String>,
    /// Whether each load, search and tool call is logged.
    pub(crate) audit: bool,
    /// The most todos of the store.
    pub(crate) max_todos: Option<u32>,
    /// The most messages of a todo.
    pub(crate) max_messages: Option<u64>,
    /// The most closed blocks of a todo.
    pub(crate) max_blocks: Option<u32>,
    /// The most bytes of a todo's messages.
    pub(crate) max_bytes: Option<u64>,
    /// The most bytes of one payload.
    pub(crate) max_payload_bytes: Option<u64>,
    /// Texts of more tokens than this are stored outside the conversation.
    pub(crate) offload_tokens: usize,
    /// The same for single tools, by name.
    pub(crate) offload_tool_tokens: BTreeMap<String, usize>,
    /// The fewest messages of a block.
    pub(crate) block_min: u32,
    /// The most messages of a block, and of the open tail.
    pub(crate) block_max: u32,
    /// The silence that ends a block, between messages that carry a time.
    pub(crate) gap_seconds: u32,
    /// How many newer messages a change of topic waits for.
    pub(crate) look_ahead: u32,
    /// The score from which a change of topic ends a block.
    pub(crate) topic_threshold: f64,
    /// The calibrated similarity over which neighbouring rough blocks are merged.
    pub(crate) merge_over: f64,
    /// A conversation of more blocks than this gets an index on disk.
    pub(crate) index_after_blocks: u32,
    /// So does one whose payloads hold more passages than this.
    pub(crate) index_after_passages: u32,
    /// The vectors of an indexed conversation with more of them than this are searched by a graph.
    pub(crate) graph_after_vectors: usize,
    /// The memory of recently searched conversations.
    pub(crate) search_cache_mib: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        let index = IndexConfig::default();
        let chunker = ChunkerConfig::default();
        Self {
            store: None,
            engine: Engine::default().name().to_owned(),
            payloads: None,
            embedder: None,
            redact: false,
            redaction_key_file: None,
            encryption_key_file: None,
            encryption_key_command: None,
            audit: false,
            max_todos: None,
            max_messages: None,
            max_blocks: None,
            max_bytes: None,
            max_payload_bytes: None,
            offload_tokens: OffloadPolicy::default().tokens,
            offload_tool_tokens: BTreeMap::new(),
            block_min: chunker.min(),
            block_max: chunker.max(),
            gap_seconds: 300,
            look_ahead: 3,
            topic_threshold: -1.0,
            merge_over: 0.72,
            index_after_blocks: index.index_after_blocks,
            index_after_passages: index.index_after_passages,
            graph_after_vectors: index.hnsw_after_vectors,
            search_cache_mib: index.cache_bytes >> 20,
        }
    }
}

impl MemorySettings {
    /// The storage engine.
    pub(crate) fn engine(&self) -> Engine {
        // The name was checked earlier.
        self.engine.parse().unwrap_or_default()
    }

    /// The place of large payloads.
    pub(crate) fn payloads(&self) -> Option<Payloads> {
        // The address was checked earlier.
        self.payloads.as_ref().and_then(|place| place.parse().ok())
    }

    /// The options of a memory, with these blocks and offloading.
    pub(crate) fn options(&self, options: Options) -> Options {
        let offload = options.offload.clone().with_tokens(self.offload_tokens);
        let offload = self
            .offload_tool_tokens
            .iter()
            .fold(offload, |offload, (tool, tokens)| offload.with_tool_tokens(tool, *tokens));
        // The numbers were checked earlier.
        let chunker = self.chunker().unwrap_or_else(|_| options.chunker.clone());
        let index = options.index.clone();
        let index = index
            .with_index_after_blocks(self.index_after_blocks)
            .with_index_after_passages(self.index_after_passages)
            .with_hnsw_after_vectors(self.graph_after_vectors)
            .with_cache_bytes(self.search_cache_mib << 20);
        let quota = Quota::default()
            .with_todos(self.max_todos)
            .with_messages(self.max_messages)
            .with_blocks(self.max_blocks)
            .with_bytes(self.max_bytes)
            .with_payload_bytes(self.max_payload_bytes);
        options.with_offload(offload).with_chunker(chunker).with_index(index).with_quota(quota)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        if self.engine.parse::<Engine>().is_err() {
            let names = Engine::ALL.map(Engine::name).join(", ");
            let what = match self.engine.contains("://") {
                // It may hold a password.
                true => format!(
                    "an address is no engine; there are {names}, and FOLDBACK_POSTGRES_URL holds the address for postgres"
                ),
                false => format!("there is no engine {:?}; there are {names}", self.engine),
            };
            return Err(("memory.engine", what));
        }
        if let Some(payloads) = &self.payloads {
            let read = payloads.parse::<Payloads>();
            read.map_err(|error| ("memory.payloads", error.to_string()))?;
        }
        if let Some(embedder) = &self.embedder {
            crate::cli::embedder(embedder).map_err(|what| ("memory.embedder", what))?;
        }
        if self.search_cache_mib > usize::MAX >> 20 {
            let what =
                format!("{} MiB are more than this machine can address", self.search_cache_mib);
            return Err(("memory.search_cache_mib", what));
        }
        self.chunker().map(|_| ())
    }

    fn chunker(&self) -> Result<ChunkerConfig, Wrong> {
        let chunker = ChunkerConfig::default();
        let chunker = chunker.with_sizes(self.block_min, self.block_max);
        let key = if self.block_max > 8 { "memory.block_max" } else { "memory.block_min" };
        let chunker = chunker.map_err(|error| (key, error.to_string()))?;
        let chunker = chunker.with_gap_seconds(self.gap_seconds);
        let chunker = chunker.map_err(|error| ("memory.gap_seconds", error.to_string()))?;
        let chunker = chunker.with_look_ahead(self.look_ahead);
        let chunker = chunker.map_err(|error| ("memory.look_ahead", error.to_string()))?;
        let chunker = chunker.with_topic_threshold(self.topic_threshold as f32);
        let chunker = chunker.map_err(|error| ("memory.topic_threshold", error.to_string()))?;
        let chunker = chunker.with_merge_over(self.merge_over as f32);
        chunker.map_err(|error| ("memory.merge_over", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults are written as numbers here; they are the library's.
    #[test]
    fn what_is_not_said_is_as_the_library_has_it() {
        let (settings, own) = (MemorySettings::default(), Options::default());
        assert_eq!(settings.chunker().unwrap(), own.chunker);
        assert_eq!(settings.options(Options::default()).offload, own.offload);
        assert_eq!(settings.options(Options::default()).index, own.index);
        assert_eq!(settings.engine(), own.engine);
    }
}
