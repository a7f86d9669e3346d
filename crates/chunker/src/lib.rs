//! Cuts a stream of messages into closed semantic blocks.
//!
//! A [`Chunker`] receives one [`Event`] after another, and returns the blocks that each one
//! [`Closed`]. It decides by what can be seen in the messages: calls and their results, questions
//! and their answers, silence, words and phrases that show a change of topic, and the similarity of
//! vectors if there are any. It remembers a small [`State`], stored with each message, from which
//! it resumes exactly where it was. [`describe()`] makes the metadata of a closed block.
//!
//! It is not a splitter of long texts, and it calls no model: it never waits for anything. It has
//! no clock, no files and no randomness. The same messages give the same blocks, one by one or all
//! at once.
//!
//! ```
//! use foldback_chunker::{Chunker, ChunkerConfig, Event, Input};
//! use foldback_core::{CloseReason, Message, ToolCall, ToolCallId};
//!
//! let mut chunker = Chunker::new(ChunkerConfig::default());
//! let call = ToolCall::new("c1", "read", r#"{"path": "data.txt"}"#);
//! let mut closed = Vec::new();
//! for message in [
//!     Message::user("Read data.txt, please."),
//!     Message::calls("", vec![call]),
//!     Message::tool_result(&ToolCallId::new("c1"), "12 lines"),
//!     Message::assistant("It has 12 lines."),
//! ] {
//!     closed.extend(chunker.push(Event::Message(Input::of(&message))));
//! }
//! closed.extend(chunker.push(Event::End));
//! assert_eq!(closed.len(), 1);
//! assert_eq!(closed[0].range.len(), 4);
//! assert_eq!(closed[0].reason, CloseReason::End);
//! ```

mod background;
mod chunker;
mod cjk_cues;
mod closed;
mod cohesion;
mod config;
mod cues;
mod describe;
mod english_cues;
mod event;
mod frames;
mod names;
mod paths;
mod phase;
mod phrases;
mod reading;
mod score;
mod sentence;
mod signals;
mod sketch;
mod state;
mod stems;
mod terms;
mod width;
mod window;

pub use chunker::Chunker;
pub use closed::{Closed, Evidence};
pub use config::{ChunkerConfig, Error};
pub use describe::{Described, describe};
pub use event::{Event, Input};
pub use phase::{Complexity, Phase};
pub use score::Score;
pub use state::State;
pub use terms::{says_nothing, words};
