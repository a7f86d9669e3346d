//! `foldback todos`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::json::JsonList;
use crate::output::table::{Column, Table};
use crate::output::{Output, text};
use crate::{store, walk};
use clap::Args;
use foldback::{Grant, Memory};
use foldback_core::{TodoId, thousands};
use serde::Serialize;

/// List the todos of the store, in order of creation
///
/// JSON: [{"todo_id", "messages", "blocks", "open", "foreign_id"}]; `open` counts the messages after the last closed
/// block, `foreign_id` is the conversation's own id, or the name of its file if it has none, where the todo's id does
/// not show it. What cannot be read of a todo is null, and if its blocks are, the exit code is 1. With --grants:
/// [{"from", "to", "ref", "at"}], the grants between todos, `at` in RFC 3339; a damaged grant is left out.
#[derive(Args)]
pub(crate) struct Todos {
    /// List the blocks and payloads that todos have granted each other instead
    #[arg(long)]
    grants: bool,

    /// With --grants, only what this todo gave or received
    #[arg(long, value_name = "ID", requires = "grants")]
    todo: Option<TodoId>,
}

#[derive(Serialize)]
struct Row {
    todo_id: TodoId,
    messages: Option<u64>,
    blocks: Option<u32>,
    open: Option<usize>,
    foreign_id: Option<String>,
}

impl Todos {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        if self.grants {
            return self.list_grants(&memory, out);
        }
        let mut clean = true;
        if out.is_json() {
            let mut list = JsonList::begin(out)?;
            for todo in walk::todos(&memory) {
                let row = row(&memory, todo?, out);
                clean &= row.blocks.is_some();
                list.push(&row)?;
            }
            list.end()?;
            return Ok(Outcome::clean_if(clean));
        }
        let mut rows = Vec::new();
        for todo in walk::todos(&memory) {
            rows.push(row(&memory, todo?, out));
        }
        clean &= rows.iter().all(|row| row.blocks.is_some());
        let own_ids = rows.iter().any(|row| row.foreign_id.is_some());
        let numbers = ["messages", "blocks", "open"].map(Column::Number);
        let mut columns = [&[Column::Name("todo")][..], &numbers].concat();
        columns.extend(own_ids.then_some(Column::Text("own id")));
        let mut table = Table::new(out, &columns);
        for row in rows {
            let number = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), thousands);
            let own_id = text::one_line(&row.foreign_id.unwrap_or_default());
            let cells = [
                row.todo_id.to_string(),
                number(row.messages),
                number(row.blocks.map(u64::from)),
                number(row.open.map(|open| open as u64)),
            ];
            table.row(cells.into_iter().chain(own_ids.then_some(own_id)));
        }
        if table.is_empty() {
            out.note("the store has no todos yet; `foldback import FILE` adds one");
        } else {
            table.print(out)?;
        }
        Ok(Outcome::clean_if(clean))
    }
}

#[derive(Serialize)]
struct GrantRow {
    from: TodoId,
    to: TodoId,
    r#ref: String,
    at: String,
}

impl Todos {
    fn list_grants(&self, memory: &Memory, out: &Output) -> Result<Outcome, CliError> {
        let mut rows = Vec::new();
        let mut add = |todo: &TodoId, wanted: &dyn Fn(&Grant) -> bool| -> Result<(), CliError> {
            let grants = memory.grants().list(todo)?.into_iter().filter(wanted);
            rows.extend(grants.map(|grant| GrantRow {
                from: grant.from,
                to: grant.to,
                r#ref: grant.reference.to_string(),
                at: grant.at.to_rfc3339(),
            }));
            Ok(())
        };
        match &self.todo {
            Some(todo) => add(todo, &|_| true)?,
            None => {
                for todo in walk::todos(memory) {
                    let todo = todo?;
                    // Each grant is kept with both of its todos; here it counts for the receiver.
                    add(&todo, &|grant| grant.to == todo)?;
                }
            }
        }
        if out.is_json() {
            out.json(&rows)?;
            return Ok(Outcome::Done);
        }
        let columns = ["to", "from", "reference"].map(Column::Name);
        let mut table = Table::new(out, &[&columns[..], &[Column::Text("when")]].concat());
        for row in rows {
            table.row([row.to.to_string(), row.from.to_string(), row.r#ref, row.at]);
        }
        if table.is_empty() {
            out.note("there are no grants; `foldback grant` grants a block or a payload");
        } else {
            table.print(out)?;
        }
        Ok(Outcome::Done)
    }
}

/// Reads what is known of a todo. Damage is reported and does not hide the other todos.
fn row(memory: &Memory, todo: TodoId, out: &Output) -> Row {
    let told = |error: &foldback::Error| out.note(format_args!("{todo}: {error}"));
    let foreign_id =
        memory.conversations().info(&todo).inspect_err(told).ok().and_then(|info| info.foreign_id);
    let session = memory.session(&todo).inspect_err(told).ok();
    let messages = session.as_ref().map(foldback::Session::len).or_else(|| memory.len(&todo).ok());
    let blocks = session.as_ref().map(foldback::Session::blocks);
    let open = session.as_ref().map(foldback::Session::open);
    Row { todo_id: todo, messages, blocks, open, foreign_id }
}
