//! `list_blocks`: what there is, in order of time.

use super::argument::{Argument, ArgumentKind, Arguments};
use super::recall_source::named;
use super::{Answer, RecallSource, Tool};
use crate::Error;
use crate::ledger::{ledger_line, shown_id};
use crate::quoted_text::QuotedText;
use foldback_blockstore::Error as BlockError;
use foldback_core::{Block, BlockId, BlockType};
use foldback_kv::Space;

pub(crate) const TOOL: Tool = Tool {
    name: "list_blocks",
    title: "List the blocks of a conversation",
    description: "Lists the closed blocks of this task by time, one per line, to show what there is.",
    arguments: &[
        Argument {
            name: "cursor",
            help: "Starts after the block with this number.",
            kind: ArgumentKind::Count { least: 0, most: u32::MAX as usize, default: 0 },
            required: false,
        },
        Argument {
            name: "limit",
            help: "At most this many lines.",
            kind: ArgumentKind::Count { least: 1, most: 50, default: LIMIT },
            required: false,
        },
        Argument {
            name: "block_type",
            help: "Only this type.",
            kind: ArgumentKind::BlockType,
            required: false,
        },
    ],
    example: r#"{"cursor": 0, "limit": 20}"#,
    run,
};

/// The number of lines of an answer if no limit is given.
const LIMIT: usize = 20;

/// How many blocks are read at once.
const PAGE: usize = 100;

/// One call looks through this many blocks for those of a rare type; the cursor continues from there.
const LOOK_THROUGH: u32 = 5_000;

fn run(recall: &RecallSource<'_>, arguments: &Arguments) -> Result<Answer, Error> {
    let first = u32::try_from(arguments.count("cursor")).unwrap_or(u32::MAX);
    let limit = arguments.count("limit");
    let wanted = arguments.block_type("block_type");
    let total = match recall.blocks.last_block(recall.todo) {
        Ok(last) => last.map_or(0, |block| block.header.block_id.n()),
        // A damaged last block is still the last.
        Err(error) => damaged(&error).ok_or(error)?,
    };
    let mut cursor = first;
    let mut lines = Vec::new();
    let mut references = Vec::new();
    'pages: while cursor < total && cursor - first < LOOK_THROUGH {
        let (page, bad) = read(recall, cursor, PAGE.min(limit.max(LIMIT)))?;
        if page.is_empty() && bad.is_none() {
            break;
        }
        for block in page {
            if lines.len() == limit {
                break 'pages;
            }
            cursor = block.header.block_id.n();
            if wanted.is_none_or(|wanted| wanted == block.header.block_type) {
                lines.push(ledger_line(&block.header, recall.tokens));
                references.push(shown_id(&block.header.block_id));
            }
        }
        if let Some(bad) = bad {
            if lines.len() == limit {
                break;
            }
            // Its type is unknown, so it is named whatever is wanted.
            cursor = bad;
            let id = BlockId::new(recall.todo.id().clone(), bad);
            lines.push(format!("{} is damaged", shown_id(&id)));
        }
    }
    let open = recall.open.filter(|open| {
        cursor >= total && wanted.is_none_or(|wanted| wanted == open.header.block_type)
    });
    // The open messages are a line like any other: if there is no room, the next call lists them.
    let is_open_left = open.is_some() && lines.len() >= limit;
    let open = open.filter(|_| !is_open_left);
    if let Some(open) = open {
        let line = ledger_line(&open.header, recall.tokens);
        let id = shown_id(&open.header.block_id);
        lines.push(line.replacen(&id, &named(open), 1));
        references.push(id);
    }
    let mut answer = QuotedText::default();
    answer.push(&head((first, cursor, total), wanted, open.is_some()));
    if lines.is_empty() && total > 0 && first < total {
        answer.push("None of them is of this type.\n");
    }
    for line in &lines {
        answer.push_quote(line, None);
        answer.push("\n");
    }
    let mut next = None;
    if first < total && (cursor < total || is_open_left) {
        let mut more = format!("\"cursor\": {cursor}");
        if limit != LIMIT {
            more.push_str(&format!(", \"limit\": {limit}"));
        }
        if let Some(wanted) = wanted {
            more.push_str(&format!(", \"block_type\": \"{wanted}\""));
        }
        answer.push(&format!("For more, call list_blocks with {{{more}}}."));
        next = Some(format!("{{{more}}}"));
    } else if total > 0 && first < total {
        answer.push("These are the last. load reads a block.");
    }
    Ok(Answer { next, ..Answer::of(answer).showing(references) })
}

/// Returns what is listed: the blocks after `first` up to `cursor`, of this many.
fn head(
    (first, cursor, total): (u32, u32, u32),
    wanted: Option<BlockType>,
    has_open: bool,
) -> String {
    let of_type = wanted.map_or(String::new(), |wanted| format!(" of type {wanted}"));
    let span = match (first < cursor, total) {
        (_, 0) => "no block is closed yet".to_owned(),
        (true, _) => format!("blocks {} to {cursor} of {total}{of_type}", first + 1),
        (false, _) => {
            let closed = if has_open { "closed " } else { "" };
            format!("no {closed}blocks after block {first}; there are {total}")
        }
    };
    format!("[list_blocks: {span}]\n")
}

/// Returns up to `limit` blocks after `after`, as far as they can be read, and the number of the
/// damaged one that follows them, if any.
fn read(
    recall: &RecallSource<'_>,
    after: u32,
    limit: usize,
) -> Result<(Vec<Block>, Option<u32>), BlockError> {
    let error = match recall.blocks.blocks(recall.todo, after, limit) {
        Ok(blocks) => return Ok((blocks, None)),
        Err(error) => error,
    };
    let Some(bad) = damaged(&error).filter(|bad| *bad > after) else { return Err(error) };
    match (bad - after - 1) as usize {
        0 => Ok((Vec::new(), Some(bad))),
        before => Ok((recall.blocks.blocks(recall.todo, after, before)?, Some(bad))),
    }
}

/// Returns the number of the block whose record the error calls damaged.
fn damaged(error: &BlockError) -> Option<u32> {
    match error {
        BlockError::Corrupt { key, .. } if key.space == Space::Block => u32::try_from(key.n).ok(),
        _ => None,
    }
}
