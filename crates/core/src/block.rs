//! A closed part of a conversation.

use crate::{BlockId, SeqRange, TodoId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A closed block: its metadata, the messages it holds and why it closed. Its body is stored
/// once, as the messages of its range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The metadata, which is known without reading the block.
    pub header: BlockHeader,
    /// The messages of the block.
    pub range: SeqRange,
    /// Why the block closed.
    pub close_reason: CloseReason,
}

/// The metadata of one block, serialised with exactly these seven keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockHeader {
    /// The block's name.
    pub block_id: BlockId,
    /// The todo that the block belongs to.
    pub todo_id: TodoId,
    /// What happened in it.
    pub block_type: BlockType,
    /// Tool names, file names, ids, error names and references first, then rare words.
    pub keywords: Vec<String>,
    /// Who did what with what: one sentence, at most 50 characters in CJK or 20 words.
    pub core_semantic: String,
    /// The time of the first message that has one, otherwise the time of recording: `2025-01-01 10:00:00`, UTC.
    pub create_time: String,
    /// The payloads that the block's messages have or name, as `store://<n>-<check>`; a name that leads nowhere is not
    /// among them.
    pub data_ids: Vec<String>,
}

/// What happened in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockType {
    /// A tool was called.
    ToolCall,
    /// A question was asked and answered.
    Qa,
    /// Anything else that was said.
    Chat,
}

impl BlockType {
    /// Returns the name used in a header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolCall => "tool_call",
            Self::Qa => "qa",
            Self::Chat => "chat",
        }
    }
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a block closed. Topic, gap and switch are changes of topic; loop and size cut within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// The subject changed.
    Topic,
    /// Nothing was said for five minutes or more, between messages that carry a time.
    Gap,
    /// The work went to another todo, or to another branch of the conversation.
    Switch,
    /// A tool loop, or a question and its answer, was complete.
    Loop,
    /// The block was full.
    Size,
    /// The conversation ended.
    End,
    /// The conversation has not ended: these are the open messages after the last closed block, as a search sees them.
    /// No block is stored with this reason.
    Open,
}

impl CloseReason {
    /// Returns whether the block ended because the topic did, rather than for its size or shape.
    #[must_use]
    pub fn is_topic_cut(self) -> bool {
        matches!(self, Self::Topic | Self::Gap | Self::Switch)
    }

    /// Returns the name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Gap => "gap",
            Self::Switch => "switch",
            Self::Loop => "loop",
            Self::Size => "size",
            Self::End => "end",
            Self::Open => "open",
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
