//! One door to the formats in which conversations are written down.
//!
//! A [`Conversation`] is an id, its [messages](foldback_core::Message) and an [`Envelope`]: the
//! exact text of everything around the messages. Reading keeps every byte of a conversation, so
//! that writing gives it back. The format is told from the content, never from the file's name;
//! [`Conversations`] reads one after the other, from a plain file or one packed with zstd.
//!
//! Read as they are, and written back byte for byte: foldback JSON Lines (`{"id", "messages":
//! [...]}` per line), bare chat-completions arrays and chat-completions bodies.
//!
//! Converted: Anthropic Messages bodies and lists of their messages; bodies inside lines of logs and
//! batches; session logs of Claude Code and Codex; messages of LangChain and LangGraph. What a
//! message of ours has no place for stands under its key `source`, and whatever is no message under
//! the conversation's, so that nothing is lost and foldback JSON Lines hold it all. [`anthropic`]
//! writes request bodies; one that was read is written as it was.
//!
//! Anything else is an error that says what was tried, and what the text looks like where that is
//! known. Damage stays where it is: each line that cannot be read is an error by itself, and reading
//! goes on behind it.
//!
//! This crate repairs nothing and stores nothing. What is odd about a conversation (a call that
//! nobody answered, times that run backwards) is stated by [`Conversation::check`]; the repairs
//! belong to whoever makes a request of it. It knows no todo and no token count.
//!
//! White space around a conversation is not part of it: a byte order mark, the newline or CRLF
//! behind a line and blank lines are passed over. White space inside it is kept.
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

mod conversation;
mod conversations;
mod conversion;
mod draft;
mod envelope;
mod error;
mod finding;
mod format;
mod input;
mod limits;
mod message_line;
mod object;
mod options;
mod record;
mod scan;

pub use conversation::Conversation;
pub use conversations::{Conversations, read_bytes, read_file};
pub use envelope::Envelope;
pub use error::{Error, Place};
pub use finding::{Finding, FindingKind};
pub use format::{Format, anthropic, chat};
pub use limits::Limits;
pub use message_line::{MessageLines, read_message_line};
pub use options::Options;
