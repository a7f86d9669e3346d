//! The one door to the formats in which conversations are recorded.
//!
//! A [`Conversation`] is an id, its [messages](foldback_core::Message) and an [`Envelope`]: the exact text of
//! everything around the messages. Reading keeps every byte of a conversation, so that writing reproduces it. The
//! format is detected from the content, never from the file's name; [`Conversations`] reads one conversation after the
//! other, from a plain file or one packed with zstd.
//!
//! Read as they are, and written back byte for byte: foldback JSON Lines (`{"id", "messages":
//! [...]}` per line), bare chat-completions arrays and chat-completions bodies.
//!
//! Converted: Anthropic Messages bodies and lists of their messages; bodies inside lines of logs and batches, with the
//! answer as the last message; session logs of Claude Code and Codex; sessions of OpenCode; messages of LangChain and
//! LangGraph. Data for which our messages have no place is kept under the message's key `source`, and anything that is
//! not a message under the conversation's, so that nothing is lost and foldback JSON Lines hold it all. [`anthropic`]
//! writes request bodies; one that was read is written as it was.
//!
//! The conversation's `source` has the `format`, facts of the file or session, and:
//!
//! - `records`: each line that is not a message, as it is (`{"line", "record"}`), and their `counts`
//!   by kind. A value of over 4 KiB that belongs to a message is also kept here, so that messages
//!   stay small: `{"line", "message", "key", "record"}`, the message counted from 0; the message
//!   names such keys in `in_records`.
//! - `further_lines`: what the further lines of a response say in addition to its content.
//! - `unfinished_response`: the line of a response that the log does not say is complete. Its
//!   message may change as the log grows, and so may everything after it. All other messages stay
//!   as they are, unless the session itself goes back to an earlier point.
//! - `unfinished`: the last line, if it was half-written.
//! - `partial`, `seams`, `fork_point`, `parent_call`, `meta`, ...: its relation to other
//!   conversations and files.
//!
//! A conversation that has an `id` and `messages` with roles is one of ours, whatever other keys it
//! has; it is converted only if its calls are blocks of Anthropic's API.
//!
//! Anything else is an error that says which formats were tried, and what the text looks like if
//! that is known. Damage is local: each line that cannot be read is an error of its own, and reading
//! continues after it.
//!
//! This crate repairs nothing and stores nothing. [`Conversation::check`] reports what is odd about
//! a conversation (an unanswered call, times that run backwards); repairs are left to the code that
//! makes a request from it. The crate knows neither todos nor token counts.
//!
//! [`Growing`] reads a file while another program writes it, and returns what is new.
//!
//! White space around a conversation is not part of it: a byte order mark, the newline or CRLF
//! after a line and blank lines are skipped. White space inside it is kept.
//!
//! ```
//! let line = r#"{"id": "a1", "messages": [{"role": "user", "content": "caf\u00e9"}], "x": 1.50}"#;
//! let mut conversations = foldback_transcript::read_bytes(line.as_bytes())?;
//! let conversation = conversations.next().transpose()?.ok_or("no conversation")?;
//! assert_eq!(conversation.id.as_deref(), Some("a1"));
//! assert_eq!(conversation.messages[0].text(), "café");
//! assert_eq!(conversation.envelope.get("x").as_deref(), Some("1.50"));
//! assert_eq!(conversation.to_original(), line);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent_meta;
mod comparable;
mod conversation;
mod conversations;
mod conversion;
mod draft;
mod envelope;
mod error;
mod finding;
mod format;
mod growing;
mod input;
mod limits;
mod looks;
mod message_line;
mod object;
mod options;
mod record;
mod scan;

pub use comparable::comparable;
pub use conversation::Conversation;
pub use conversations::{Conversations, read_bytes, read_file};
pub use envelope::Envelope;
pub use error::{Error, Place};
pub use finding::{Finding, FindingKind};
pub use format::{Format, anthropic, chat, responses};
pub use growing::{Growing, Grown};
pub use limits::Limits;
pub use message_line::{MessageLines, read_message_line};
pub use options::Options;
