//! The nouns of foldback, and the ports that cross crate lines.
//!
//! A conversation is a gapless sequence of [`Message`]s, each with a [`SeqNo`]. A closed part of
//! it is a [`Block`]: a [`BlockHeader`] and a [`SeqRange`]. A large text that is stored outside the conversation is
//! named by a [`PayloadRef`]. Everything belongs to one [`TodoId`].
//!
//! The ports are traits for anyone who wants to replace a part: an [`Embedder`], a [`TokenCounter`], or a whole context
//! policy, a [`ContextManager`]; a [`ContextLayer`] wraps one.
//!
//! It is **not** a place for anything that happens: this crate opens no file, holds no lock, reads no clock, and knows
//! no async runtime and no storage engine. An implementation of a port needs no other crate of foldback.
//!
//! ```
//! use foldback_core::{Message, Role};
//!
//! // The parsed form is kept beside the exact text, so that an export is exact.
//! let text = r#"{"role": "user", "content": "caf\u00e9", "x-note": 1.50}"#;
//! let message = Message::from_json(text)?;
//! assert_eq!(message.role(), &Role::User);
//! assert_eq!(message.text(), "café");
//! assert_eq!(message.json(), text);
//! # Ok::<(), foldback_core::MessageError>(())
//! ```

mod affinity;
mod background_work;
mod block;
mod cache_terms;
mod content;
mod context;
mod context_layer;
mod embedder;
mod error_text;
mod escapes;
mod excerpt;
mod failpoint;
mod hand_over;
mod id;
mod line;
mod literal;
mod message;
mod numeral;
mod object;
mod pairing;
mod panic_text;
mod payload;
mod prices;
mod reference;
mod role;
pub mod script;
mod seq;
mod side_calls;
mod stored;
mod sub_tasks;
mod time;
mod todo_list;
mod tokens;
mod tool_call;
mod trust;

#[cfg(feature = "failpoints")]
pub use fail;

pub use affinity::nodes_by_affinity;
pub use background_work::{BackgroundJob, BackgroundJobDone, BackgroundWork};
pub use block::{Block, BlockHeader, BlockType, CloseReason};
pub use cache_terms::CacheTerms;
pub use content::{Content, Part};
pub use context::{
    Budget, ContextError, ContextManager, Prompt, Recorded, Shortened, Shortening, ToolAnswer,
    ToolDefinition,
};
pub use context_layer::ContextLayer;
pub use embedder::{EmbedError, Embedder, Scale, Vectors};
pub use error_text::error_text;
pub use escapes::{is_json_like, unescaped};
pub use excerpt::{abbreviated, beginning, first_chars, last_chars};
pub use hand_over::{HandOver, HandOverError};
pub use id::{BlockId, IdError, TenantId, TodoId, ToolCallId};
pub use line::one_line;
pub use literal::{Escape, decode_literal, escape_into, quoted};
pub use message::{CallOutcome, Message, MessageError};
pub use numeral::thousands;
pub use object::Object;
pub use pairing::{Pairing, PairingTracker, Violation, check_request};
pub use panic_text::panic_text;
pub use payload::{Check, PayloadKind, PayloadRef, PayloadRefError};
pub use prices::Prices;
pub use reference::{Reference, ReferenceError};
pub use role::Role;
pub use seq::{SeqNo, SeqRange};
pub use side_calls::{SideCall, SideCalls};
pub use stored::{Offload, Piece, Site, Source, StoredMessage, argument_text};
pub use sub_tasks::{SubTasks, sub_tasks_of};
pub use time::Timestamp;
pub use todo_list::{ItemState, TodoItem, TodoList, TodoListError};
pub use tokens::{
    Estimate, Excerpt, TokenCounter, excerpt, fair_shares, first_tokens, message_tokens,
};
pub use tool_call::ToolCall;
pub use trust::{OBSERVATIONS, Trust};
