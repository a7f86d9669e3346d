//! A context of constant size that loses nothing: an agent's memory, assembled.
//!
//! A [`Memory`] is a store of conversations. A [`Session`] is one of them in progress: it takes
//! messages as they arrive, cuts them into closed blocks, keeps large inputs and outputs outside,
//! and shows a live view of constant size. What is not in view is one tool call away, word for
//! word: `search_block`, `list_blocks` and `load` are answered by [`Session::call`].
//!
//! The methods of the memory cover the first steps: open, session, search, read. Everything else has a handle of its
//! own: [whole conversations](Memory::conversations) in and out, [grants](Memory::grants) between todos, contents by
//! [reference](Memory::references), the [embedder](Memory::embedding), and the store's [upkeep](Memory::maintenance).
//! Errors are matched by their [kind](Error::kind).
//!
//! A sub-task gets a todo of its own ([`Session::child_session`]), and its history stays there. What it
//! returns (blocks, payloads) is granted to its parent and to the items of the parent's [todo
//! list](Session::set_todo_list) that wait for it; a caller with the memory may [grant](Grants::grant)
//! more. A tool can be [handed](foldback_core::HandOver) what a reference names, and only its result enters
//! the conversation.
//!
//! It is **not** an agent: it calls no model and runs no tool but its own three. It summarises
//! nothing.
//!
//! ```
//! use foldback::core::{Budget, Message, TodoId, ToolCall};
//! use foldback::{Memory, Options};
//!
//! let memory = Memory::in_memory(Options::default())?;
//! let mut session = memory.session(&TodoId::new("report")?)?;
//! session.record(Message::user("Which port does the staging server use?"))?;
//! session.record(Message::assistant("It listens on 8443."))?;
//! for i in 0..60 {
//!     session.record(Message::user(&format!("Now translate line {i} of the poem.")))?;
//!     session.record(Message::assistant(&format!("Line {i} reads: the moon, again.")))?;
//! }
//!
//! // The view stays small ...
//! let prompt = session.prompt(&Budget::default());
//! assert!(prompt.window <= 12);
//!
//! // ... and the rest comes back.
//! let call = ToolCall::new("c1", "search_block", r#"{"query": "staging server port"}"#);
//! assert!(session.call(&call)?.text.contains("8443"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod memory;
mod notes;
mod owner;
mod session;
mod standing;
mod tools;

mod audit;
mod branch;
mod disk;
mod holes;
mod live;
mod message_vectors;
mod named_text;
mod offload;
mod parked;
mod passages;
mod quota;
mod record;
mod recovery;
mod redaction;
mod secret;
mod sent;
mod sent_tree;
mod sketch;
mod tenants;
mod texts;

mod grants;
mod hand_over;
mod references;
mod todo_list;

mod conversations;
mod embedding;
mod indexer;
mod maintenance;
mod restore;

#[cfg(doctest)]
mod no_read_without_todo;

mod error;
mod open_block;
mod options;
mod question_words;

pub use audit::{Audit, AuditEvent, AuditFilter, AuditLine, AuditLog, AuditReport};
pub use conversations::{Conversations, Followed, Import, Salvage, TodoInfo};
pub use disk::release_reserve;
pub use embedding::{
    EmbedderTrouble, Embedding, EmbeddingFailures, EmbeddingProgress, StoreEmbedder,
};
pub use error::{Error, ErrorKind};
pub use foldback_backend_store::{BackendStore, PayloadPlace};
pub use foldback_blockstore::{
    AllTodosAnswer, AllTodosRequest, CaughtUp, Head, Hit, IndexConfig, NotSearched, Origin,
    SearchAnswer, SearchRequest, Unsearched, UnsearchedPart, WhyUnsearched,
};
pub use foldback_chunker::ChunkerConfig;
pub use foldback_core as core;
pub use foldback_disclosure::{
    Answer, Arrangement, Billed, CacheAware, FoldPolicy, Fragment, Marks, Piece, ViewConfig,
    call_outcome,
};
pub use foldback_embedder as embedder;
pub use foldback_kv as kv;
pub use foldback_kv::{EncryptionKey, Engine, Lost, Mode, Server, Todo, Truth};
pub use foldback_transcript::{Conversation, Envelope};
pub use grants::{Grant, Grants};
pub use maintenance::{Checkup, Maintenance};
pub use memory::Memory;
pub use notes::NoteName;
pub use offload::OffloadPolicy;
pub use options::{KNOWN_SECRET, Options};
pub use owner::Owner;
pub use parked::ParkedName;
pub use question_words::question_words;
pub use quota::Quota;
pub use record::Close;
pub use redaction::{Redaction, RedactionKey};
pub use references::References;
pub use restore::Restored;
pub use sent::{NewSent, Sent, SentAgain};
pub use sent_tree::SentTree;
pub use session::Session;
pub use sketch::Sketch;
pub use standing::Standing;
pub use tenants::{Tenant, Tenants};
pub use todo_list::{Outcome, Returned};
pub use tools::MemoryTool;
