//! The truth of messages and blocks in one transactional store, and the search over it.
//!
//! A [`BlockStore`] writes messages, the blocks that they close, their vectors and the session's
//! state in one transaction, and reads them back without a gap or with an error that names the
//! bad record. Its [`Searcher`] is a snapshot of one todo that finds blocks by words, by names (paths, ids,
//! identifiers, error codes) and by meaning, and every [`Hit`] explains its score. A block is found as soon as it is
//! committed, by this and by any other process.
//!
//! [`AllTodos`] searches everything as one list, for the person whose store it is; a block store does
//! not lead to it.
//!
//! It is **not** a place for payloads, though their texts are searched under their blocks if it is given a reader of
//! them ([`PayloadTexts`]); and it embeds no message: vectors come with the messages, and with the question or from the
//! embedder that is passed to a search. Nothing that it keeps on disk besides the store is needed: indexes are made
//! from the truth, and may be deleted at any time.
//!
//! ```
//! use foldback_blockstore::{BlockStore, Commit, Head, IndexConfig, NewMessage, SearchRequest};
//! use foldback_core::{
//!     Block, BlockHeader, BlockId, BlockType, CloseReason, Message, Piece, SeqNo, SeqRange,
//!     StoredMessage, TodoId, Vectors,
//! };
//!
//! let kv = foldback_kv::memory();
//! let todo = foldback_kv::Registry::new(kv.clone()).create(&TodoId::new("trip")?, b"")?;
//! let store = BlockStore::open(kv, None, IndexConfig::default())?;
//!
//! let said = Message::user("The invoice number is INV-2025-117.");
//! let stored = StoredMessage {
//!     pieces: vec![Piece::Text(said.json().to_owned())],
//!     offloads: vec![],
//!     recall: false,
//!     recorded_at: 0,
//! };
//! let header = BlockHeader {
//!     block_id: BlockId::new(todo.id().clone(), 1),
//!     todo_id: todo.id().clone(),
//!     block_type: BlockType::Chat,
//!     keywords: vec!["INV-2025-117".to_owned()],
//!     core_semantic: "The user gives the invoice number.".to_owned(),
//!     create_time: "2025-01-01 10:00:00".to_owned(),
//!     data_ids: vec![],
//! };
//! let range = SeqRange::new(SeqNo(0), SeqNo(0)).ok_or("an empty range")?;
//! let block = Block { header, range, close_reason: CloseReason::End };
//! store.commit(
//!     Commit {
//!         todo: &todo,
//!         head: Head::default(),
//!         messages: &[NewMessage { stored, vectors: Vectors::default() }],
//!         blocks: &[block],
//!         session: vec![],
//!         extra: vec![],
//!         delete: vec![],
//!     },
//!     "no-model",
//! )?;
//!
//! let hits = store.searcher(&todo)?.search(&SearchRequest::new("which invoice?"))?;
//! assert_eq!(hits[0].block.header.block_id.to_string(), "b_trip_001");
//! println!("{}", hits[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod store;

mod all_todos;
mod answer;
mod commit;
mod found_block;
mod head;
mod hit;
mod omission;
mod open_messages;
mod parts;
mod request;
mod searcher;
mod unsearched;

mod records;
mod revector;
mod vectors;

mod analysis;
mod block_doc;
mod block_text;
mod carried;
mod dates;
mod dot;
mod passage;
mod payload_texts;
mod rank;
mod scores;
mod standing;

mod cache;
mod disk;
mod doctor;
mod index_copy;
mod memory_index;
mod pool;

mod error;

pub use all_todos::{AllTodos, AllTodosAnswer, AllTodosRequest, CaughtUp, Origin, Origins};
pub use analysis::Finder;
pub use answer::SearchAnswer;
pub use cache::Maintained;
pub use commit::{Commit, NewMessage};
pub use doctor::{Finding, FindingKind};
pub use error::Error;
pub use head::Head;
pub use hit::{Explanation, Hit, PassageHit, TermShare, VectorSide};
pub use open_messages::{OpenMessages, ReadMessage};
pub use payload_texts::PayloadTexts;
pub use request::{Ranking, SearchRequest};
pub use revector::VectorState;
pub use searcher::Searcher;
pub use store::{BlockStore, IndexConfig};
pub use unsearched::{NotSearched, Unsearched, UnsearchedPart, WhyUnsearched};
pub use vectors::MessageVectors;
