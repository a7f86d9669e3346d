//! `foldback blocks`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::block::{self, range};
use crate::output::json::JsonList;
use crate::output::table::{Column, Table};
use crate::output::{Output, text};
use crate::{store, walk};
use clap::Args;
use foldback_core::{Block, BlockHeader, CloseReason, SeqNo};
use serde::Serialize;

/// List the closed blocks of a todo, in order of time
///
/// The listing for people ends with the open messages, as the block that they would be; JSON has closed blocks only.
///
/// JSON: [{"block_id", "todo_id", "block_type", "keywords", "core_semantic", "create_time",
/// "data_ids", "first_seq", "last_seq", "close_reason"}]
#[derive(Args)]
pub(crate) struct Blocks {
    #[command(flatten)]
    todo: TodoArg,
}

/// A block with the keys that scripts read.
#[derive(Serialize)]
pub(crate) struct BlockJson<'a> {
    #[serde(flatten)]
    header: &'a BlockHeader,
    first_seq: SeqNo,
    last_seq: SeqNo,
    close_reason: CloseReason,
}

/// On a narrower terminal, a table has no room for readable sentences.
const TABLE_WIDTH: usize = 110;

impl Blocks {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        let todo = self.todo.todo;
        memory.find(&todo)?;
        if out.is_json() {
            let mut list = JsonList::begin(out)?;
            for block in walk::blocks(&memory, &todo) {
                list.push(&BlockJson::of(&block?))?;
            }
            list.end()?;
            return Ok(Outcome::Done);
        }
        let open = memory.open_block(&todo)?.map(Ok);
        if out.width() < TABLE_WIDTH {
            let mut any = false;
            for shown in walk::blocks(&memory, &todo).chain(open) {
                let shown = shown?;
                any = true;
                block::print(out, &shown, &text::utc_minute(&shown.header.create_time))?;
            }
            note_none(out, any);
            return Ok(Outcome::Done);
        }
        let mut table = Table::new(
            out,
            &[
                Column::Name("block"),
                Column::Number("messages"),
                Column::Name("type"),
                Column::Name("closed by"),
                Column::Text("what happened"),
            ],
        );
        for block in walk::blocks(&memory, &todo).chain(open) {
            let block = block?;
            table.row([
                block.header.block_id.to_string(),
                range(block.range),
                block.header.block_type.to_string(),
                block.close_reason.to_string(),
                text::one_line(&block.header.core_semantic),
            ]);
        }
        note_none(out, !table.is_empty());
        if !table.is_empty() {
            table.print(out)?;
        }
        Ok(Outcome::Done)
    }
}

impl<'a> BlockJson<'a> {
    pub(crate) fn of(block: &'a Block) -> Self {
        Self {
            header: &block.header,
            first_seq: block.range.first(),
            last_seq: block.range.last(),
            close_reason: block.close_reason,
        }
    }
}

fn note_none(out: &Output, any: bool) {
    if !any {
        out.note("nothing is recorded in this todo yet");
    }
}
