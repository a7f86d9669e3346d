//! What the model sees: the live view, the ledger, the prompt, and the tools that reach the rest.
//!
//! A [`LiveView`] is what a session shows: standing instructions, pinned messages, a ledger of
//! closed blocks, the latest block, the open tail, and at the end what changes from call to call.
//! It takes each message ([`Shown`]) and each sealed block, and produces a
//! [`Prompt`](foldback_core::Prompt) that any chat API accepts: calls and their results together,
//! ids unique, nothing empty. Its size does not grow with the conversation. What it leaves out is
//! one call away: `search_block`, `list_blocks` and `load` read a [`RecallSource`] and return an
//! [`Answer`], whose text is marked as recorded data and is stored as references ([`Fragment`]).
//!
//! Its [`FoldPolicy`] decides which blocks leave the view, and when: one with each block that closes, or
//! several at once when that is cheaper than reading them again from a provider's cache.
//!
//! Each thing is shown once: a result that is already in view becomes a line that names the place, and JSON is shown
//! without white space, with its objects of the same keys as rows. The recorded messages stay as they are.
//!
//! It is **not** a store: it reads, and never writes. It decides neither what is stored outside nor
//! where a block ends; it is given both, and also the [`Marks`] around recorded text. Nothing in it
//! depends on clock, files, environment or chance: the same messages give the same bytes.
//!
//! ```
//! use foldback_core::{
//!     Block, BlockHeader, BlockId, BlockType, Budget, CloseReason, Estimate, Message, SeqNo,
//!     SeqRange, TodoId,
//! };
//! use foldback_disclosure::{LiveView, Marks, Shown, ViewConfig};
//! use std::sync::Arc;
//!
//! let todo = TodoId::new("trip")?;
//! let mut view = LiveView::new(ViewConfig::default(), Marks::new(&[7; 32], &todo));
//! let said = [
//!     Message::user("Plan a trip to the coast."),
//!     Message::assistant("The train leaves at nine."),
//!     Message::user("And the hotel?"),
//!     Message::assistant("The Pier, room 12."),
//! ];
//! for (n, message) in said.into_iter().enumerate() {
//!     view.append(Shown::new(SeqNo(n as u64), Arc::new(message), vec![], None));
//! }
//!
//! // Two blocks are sealed. The latest stays in view; of the first, one line stays.
//! for (n, about) in [(1, "The train leaves at nine"), (2, "The hotel is The Pier")] {
//!     let header = BlockHeader {
//!         block_id: BlockId::new(todo.clone(), n),
//!         todo_id: todo.clone(),
//!         block_type: BlockType::Qa,
//!         keywords: vec![],
//!         core_semantic: about.to_owned(),
//!         create_time: "2025-01-01 10:00:00".to_owned(),
//!         data_ids: vec![],
//!     };
//!     let first = SeqNo(u64::from(n) * 2 - 2);
//!     let range = SeqRange::new(first, first.next()).ok_or("an empty range")?;
//!     view.fold(&Block { header, range, close_reason: CloseReason::Topic });
//! }
//!
//! let prompt = view.prompt(&Budget::default(), &Estimate);
//! let opening = prompt.messages[0].text();
//! assert!(opening.starts_with("Plan a trip to the coast."), "the task never folds");
//! assert!(opening.contains("b_trip_001 2025-01-01 10:00 qa | The train leaves at nine"));
//! assert_eq!(prompt.messages[1].text(), "And the hotel?");
//! assert_eq!(prompt.messages.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrangement;
mod contents;
mod live_view;

mod fold_policy;

mod layout;
mod look_alikes;
mod opening;
mod suffix;
mod turns;

mod entry;
mod light;
mod repair;

mod compact_json;
mod once;
mod repetition;

mod called;
mod failure;
mod failures;
mod hints;
mod ledger;

mod attribution;
mod declared_tools;
mod marks;
mod names;
mod quote;
mod quoted_text;
mod tools;

mod config;
mod error;
mod snapshot;

mod cut;
mod raw;

pub use arrangement::{Arrangement, Piece};
pub use attribution::Attribution;
pub use config::ViewConfig;
pub use entry::Shown;
pub use error::Error;
pub use failure::call_outcome;
pub use fold_policy::{Billed, CacheAware, FoldPolicy};
pub use hints::Hints;
pub use ledger::ledger_line;
pub use light::light;
pub use live_view::LiveView;
pub use marks::Marks;
pub use names::Names;
pub use quoted_text::Fragment;
pub use snapshot::Snapshot;
pub use tools::{
    ANSWER_SCHEMA, Answer, Argument, ArgumentKind, Grants, RecallSource, SearchElsewhere, Tool,
    definitions, load_elsewhere, recall_note, run_tool, tools,
};
