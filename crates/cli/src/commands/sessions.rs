//! `foldback sessions`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::table::{Column, Table};
use crate::output::{Output, text};
use crate::run::{RunRecord, Runs};
use clap::Args;
use serde::Serialize;

/// List the runs of the agent, the oldest first
///
/// JSON: [{"id", "task", "state", "strategy", "context", "model", "calls", "input_tokens",
/// "output_tokens", "cached_tokens", "cost", "sent_tokens", "full_tokens", "blocks", "began", "changed",
/// "why", "answer"}]; `state` is running, interrupted, done, cancelled or stopped, times in RFC 3339.
#[derive(Args)]
pub(crate) struct Sessions {}

#[derive(Serialize)]
struct Row {
    id: String,
    task: String,
    state: &'static str,
    strategy: String,
    context: String,
    model: String,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost: Option<f64>,
    sent_tokens: u64,
    full_tokens: u64,
    blocks: u32,
    began: String,
    changed: String,
    why: Option<String>,
    answer: Option<String>,
}

impl From<RunRecord> for Row {
    fn from(record: RunRecord) -> Self {
        let account = record.account;
        Self {
            id: record.id.to_string(),
            task: record.task,
            state: record.state.name(),
            strategy: record.strategy,
            context: record.context,
            model: record.model,
            calls: account.calls,
            input_tokens: account.usage.input,
            output_tokens: account.usage.output,
            cached_tokens: account.usage.cached_read,
            cost: account.cost,
            sent_tokens: account.sent,
            full_tokens: account.full,
            blocks: record.blocks,
            began: record.began.to_rfc3339(),
            changed: record.changed.to_rfc3339(),
            why: record.why,
            answer: record.answer,
        }
    }
}

impl Sessions {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let mut rows = Vec::new();
        let mut clean = true;
        for run in Runs::of(globals)?.list()? {
            match run {
                Ok((_, record)) => rows.push(Row::from(record)),
                Err(error) => {
                    clean = false;
                    out.note(error.sentence());
                }
            }
        }
        if out.is_json() {
            out.json(&rows)?;
            return Ok(Outcome::clean_if(clean));
        }
        let columns = [
            Column::Name("run"),
            Column::Name("state"),
            Column::Name("strategy"),
            Column::Name("context"),
            Column::Number("calls"),
            Column::Number("tokens"),
            Column::Number("cost"),
            Column::Number("began"),
            Column::Text("task"),
        ];
        let room = out.width().saturating_sub(FIGURES).max(TASK);
        let mut table = Table::new(out, &columns);
        for row in rows {
            table.row([
                row.id,
                row.state.to_owned(),
                row.strategy,
                row.context,
                text::number(row.calls),
                text::short(row.input_tokens + row.output_tokens),
                row.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.4}")),
                row.began.chars().take(16).collect::<String>().replace('T', " "),
                text::fit(&text::one_line(&row.task), room),
            ]);
        }
        if table.is_empty() {
            out.note("there is no run yet; `foldback run TASK` begins one, `foldback run --demo` shows one");
        } else {
            table.print(out)?;
        }
        Ok(Outcome::clean_if(clean))
    }
}

/// About how many columns the figures of a run take.
const FIGURES: usize = 80;

/// A task is shown in so many columns at least.
const TASK: usize = 24;
