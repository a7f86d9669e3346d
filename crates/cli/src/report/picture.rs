//! The data of one conversation, as the page reads it.
//!
//! Messages are numbered from 0 in the order of recording, calls from 1. Keys that occur once for
//! each message or call are short.

use crate::replay::{Forgot, Report};
use foldback_core::{BlockType, CloseReason, PayloadKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// One conversation.
#[derive(Serialize)]
pub(crate) struct Picture {
    pub(crate) report: Report,
    /// The tokens of the recall tools, which every prompt declares.
    pub(crate) tools_tokens: u64,
    /// The greatest number of characters of one text in this picture; longer ones have lost their
    /// middle.
    pub(crate) text_chars: usize,
    pub(crate) messages: Vec<Said>,
    pub(crate) forms: Vec<Form>,
    pub(crate) calls: Vec<Call>,
    pub(crate) blocks: Vec<BlockSeen>,
    pub(crate) payloads: Vec<PayloadSeen>,
    /// By the name of the baseline.
    pub(crate) forgot: BTreeMap<&'static str, Vec<Forgot>>,
    pub(crate) searches: Vec<Search>,
}

/// The contents of a message.
#[derive(Clone, Serialize)]
pub(crate) struct Said {
    /// The role.
    pub(crate) r: String,
    /// The speaker's name or, of a result, the tool's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<String>,
    /// The text.
    pub(crate) t: String,
    /// Calls: the tool and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) c: Vec<(String, String)>,
    /// Of an answer of the model its own number, and of a result that of the message with its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<usize>,
    /// Of a result whose call did not succeed: `failed` or `not_made` as recorded, or `reads_failed` if only its text
    /// says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x: Option<&'static str>,
    /// The time, if the source has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// The tokens.
    pub(crate) k: u64,
}

/// A message of a prompt that is not a recorded one unchanged.
#[derive(Serialize)]
pub(crate) struct Form {
    #[serde(flatten)]
    pub(crate) said: Said,
    /// The recorded message that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<usize>,
    /// The recorded message whose text comes before this one's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pin: Option<usize>,
}

/// A call of the model.
#[derive(Serialize)]
pub(crate) struct Call {
    /// How many messages there were.
    pub(crate) at: usize,
    /// The prompt: `m` for the recorded message m as it is, `-1 - f` for the form f.
    pub(crate) v: Vec<i64>,
    /// How many of these are standing instructions; after them comes one user turn of pinned
    /// messages and ledger.
    pub(crate) h: usize,
    /// The number of the block that is shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) b: Option<u32>,
    /// How many messages at the end change from call to call.
    pub(crate) s: usize,
    /// The tokens of the prompt, tools included.
    pub(crate) k: u64,
    /// The cost of all prompts so far, in tokens at the plain price.
    pub(crate) c: f64,
    /// The tokens under each baseline, in the page's order of policies.
    pub(crate) o: Vec<u64>,
    /// The cost so far under each baseline.
    pub(crate) oc: Vec<f64>,
}

/// A block, and how it was made.
#[derive(Serialize)]
pub(crate) struct BlockSeen {
    pub(crate) n: u32,
    pub(crate) id: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// How many messages there were when it closed.
    pub(crate) at: usize,
    pub(crate) block_type: BlockType,
    pub(crate) close_reason: CloseReason,
    pub(crate) evidence: String,
    pub(crate) core_semantic: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) data_ids: Vec<String>,
    pub(crate) tokens: u64,
    /// The tokens of the line that replaces it.
    pub(crate) line_tokens: u64,
}

/// A part that is stored outside.
#[derive(Serialize)]
pub(crate) struct PayloadSeen {
    pub(crate) reference: String,
    /// The message that contained it.
    pub(crate) seq: u64,
    /// The part of that message: `the result of read_file`.
    pub(crate) what: String,
    pub(crate) kind: PayloadKind,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    /// What the view shows in its place.
    pub(crate) preview: String,
}

/// A search that a model might have made at a call.
#[derive(Serialize)]
pub(crate) struct Search {
    pub(crate) call: u64,
    pub(crate) query: String,
    /// The source of the query.
    pub(crate) from: &'static str,
    pub(crate) hits: Vec<SearchHit>,
}

/// A block that a search has found.
#[derive(Serialize)]
pub(crate) struct SearchHit {
    pub(crate) block: u32,
    pub(crate) score: f64,
    pub(crate) bm25: f64,
    pub(crate) cosine: f64,
    pub(crate) relevance: f64,
    pub(crate) exact: bool,
    /// Whether the block was whole in the prompt of the call.
    pub(crate) in_view: bool,
    /// Whether the model's own tool would have returned it: that tool leaves out what is too far off.
    pub(crate) returned: bool,
    /// The message of the line.
    pub(crate) seq: Option<u64>,
    /// The line with most of the query.
    pub(crate) line: String,
}
