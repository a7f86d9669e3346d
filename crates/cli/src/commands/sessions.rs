//! `foldback sessions`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::title::{self, INDENT};
use crate::output::{Output, text};
use crate::run::{RunRecord, Runs};
use clap::Args;
use serde::Serialize;

/// List the runs of the agent, oldest first
///
/// The turns of a conversation are listed together; each is a run of its own.
///
/// JSON: [{"id", "todo", "turn", "task", "state", "strategy", "context", "model", "calls", "input_tokens",
/// "output_tokens", "cached_tokens", "cost", "sent_tokens", "full_tokens", "blocks", "began", "changed",
/// "why", "answer"}]; `state` is running, interrupted, done, cancelled or stopped, times in RFC 3339.
#[derive(Args)]
pub(crate) struct Sessions {}

#[derive(Serialize)]
struct Row {
    id: String,
    /// The conversation, and the number of this turn in it.
    todo: String,
    turn: u32,
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
            todo: record.todo().to_string(),
            turn: 1,
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
        count_turns(&mut rows);
        if out.is_json() {
            out.json(&rows)?;
            return Ok(Outcome::clean_if(clean));
        }
        if rows.is_empty() {
            out.note("there are no runs yet; `foldback run TASK` begins one, `foldback run --demo` shows one");
        }
        for row in rows {
            row.print(out)?;
        }
        Ok(Outcome::clean_if(clean))
    }
}

/// Numbers the turns of each conversation, and groups them at the position of the first.
fn count_turns(rows: &mut Vec<Row>) {
    let mut turns: Vec<Vec<Row>> = Vec::new();
    for mut row in std::mem::take(rows) {
        match turns.iter_mut().find(|turns| turns.iter().any(|turn| turn.todo == row.todo)) {
            Some(turns) => {
                row.turn = turns.len() as u32 + 1;
                turns.push(row);
            }
            None => turns.push(vec![row]),
        }
    }
    rows.extend(turns.into_iter().flatten());
}

impl Row {
    /// Prints the run and what it took, with its task below.
    fn print(&self, out: &Output) -> Result<(), CliError> {
        let tokens = text::short(self.input_tokens + self.output_tokens);
        let turn = (self.turn > 1).then(|| format!("turn {} of {}", self.turn, self.todo));
        let mut facts: Vec<String> = turn.into_iter().collect();
        facts.extend([
            self.state.to_owned(),
            self.strategy.clone(),
            self.context.clone(),
            text::count(self.calls, "model call"),
            format!("{tokens} tokens"),
        ]);
        facts.extend(self.cost.map(|cost| format!("cost {cost:.4}")));
        facts.push(text::utc_minute(&self.began));
        let facts = facts.join(" · ");
        title::print(out, &self.id, &[&facts])?;
        let task = text::fit(&text::one_line(&self.task), out.width() - INDENT.len());
        out.line(format!("{INDENT}{task}"))
    }
}
