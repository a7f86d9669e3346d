//! What a run is about, and its result.

use super::account::{Account, SummariesAccount};
use super::record::{RunRecord, RunState};
use crate::error::CliError;
use crate::output::table::{Column, Table};
use crate::output::{self, Output, text};
use foldback_core::thousands;
use serde::Serialize;

/// The lines at the beginning of a run; `billing` gives the price of its input.
pub(super) fn head(record: &RunRecord, billing: &str) -> String {
    let RunRecord { id, strategy, context, model, .. } = record;
    format!(
        "{id} · {strategy} · context {context} · model {model}\n{billing}\n{}",
        text::one_line(&record.task)
    )
}

/// What a program reads at the end of a run.
#[derive(Serialize)]
struct ReportLine<'a> {
    event: &'static str,
    run: &'a str,
    todo: &'a str,
    state: &'static str,
    answer: Option<&'a str>,
    why: Option<&'a str>,
    task: &'a str,
    strategy: &'a str,
    context: &'a str,
    model: &'a str,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost: Option<f64>,
    sent_tokens: u64,
    full_tokens: u64,
    summaries: SummariesAccount,
    blocks: u32,
    workspace: Option<String>,
}

/// Prints the result of a run: the answer, and a few figures.
pub(super) fn print(record: &RunRecord, out: &Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&report(record));
    }
    if let Some(answer) = &record.answer {
        if !out.is_quiet() {
            out.line("")?;
        }
        out.line(text::plain(answer.trim_end()))?;
    }
    if out.is_quiet() {
        return Ok(());
    }
    out.line("")?;
    let mut table = Table::new(out, &[Column::Name(""), Column::Text("")]);
    for (name, value) in figures(record) {
        table.row([name.to_owned(), value]);
    }
    table.print(out)
}

/// Prints the result of a chat turn: the answer, unless it is already shown, and a line with what it took.
pub(crate) fn print_turn(record: &RunRecord, is_said: bool, out: &Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&report(record));
    }
    if let Some(answer) = record.answer.as_ref().filter(|_| !is_said) {
        out.line(text::plain(answer.trim_end()))?;
    }
    match record.state {
        RunState::Done => {}
        _ if out.is_quiet() => print_failure(record),
        _ => out.remark(format_args!("this turn is {}", state(record))),
    }
    print_account(&record.account, out);
    Ok(())
}

/// Prints on stderr what something took: `3 calls · 1,203 tokens in, 40 out · cost 0.0031`.
pub(crate) fn print_account(account: &Account, out: &Output) {
    let mut facts = vec![
        text::count(account.calls, "call"),
        format!(
            "{} tokens in, {} out",
            thousands(account.usage.input),
            thousands(account.usage.output)
        ),
    ];
    facts.extend(account.cost.map(|cost| format!("cost {cost:.4}")));
    out.remark(facts.join(" · "));
}

/// Reports on stderr that there is no answer, for a user who wants only the answer.
pub(super) fn print_failure(record: &RunRecord) {
    output::error(format_args!("the run {} is {}", record.id, state(record)));
}

fn report(record: &RunRecord) -> ReportLine<'_> {
    let account = &record.account;
    ReportLine {
        event: "report",
        run: record.id.as_str(),
        todo: record.todo().as_str(),
        state: record.state.name(),
        answer: record.answer.as_deref(),
        why: record.why.as_deref(),
        task: &record.task,
        strategy: &record.strategy,
        context: &record.context,
        model: &record.model,
        calls: account.calls,
        input_tokens: account.usage.input,
        output_tokens: account.usage.output,
        cached_tokens: account.usage.cached_read,
        cost: account.cost,
        sent_tokens: account.sent,
        full_tokens: account.full,
        summaries: account.summaries,
        blocks: record.blocks,
        workspace: record.settings.workspace.as_ref().map(|dir| dir.display().to_string()),
    }
}

/// The state of a run, and why.
fn state(record: &RunRecord) -> String {
    match &record.why {
        Some(why) => format!("{}: {}", record.state.name(), text::one_line(why)),
        None => record.state.name().to_owned(),
    }
}

/// The figures of a run, each with its name.
fn figures(record: &RunRecord) -> Vec<(&'static str, String)> {
    let RunRecord { id, account, .. } = record;
    let todo = record.todo();
    let state = state(record);
    let mut tokens =
        format!("{} in, {} out", thousands(account.usage.input), thousands(account.usage.output));
    if account.usage.cached_read > 0 {
        let read = thousands(account.usage.cached_read);
        tokens.push_str(&format!("; {read} of those in from the provider's cache"));
    }
    let mut figures =
        vec![("run", format!("{id}, {state}")), ("model", text::count(account.calls, "call"))];
    figures.push(("tokens", tokens));
    figures.extend(account.cost.map(|cost| ("cost", format!("{cost:.4}"))));
    let summaries = &account.summaries;
    if summaries.calls > 0 {
        let (calls, cost) = (text::count(summaries.calls, "call"), summaries.cost);
        let (input, output) =
            (thousands(summaries.input_tokens), thousands(summaries.output_tokens));
        let cost = cost.map(|cost| format!(", cost {cost:.4}")).unwrap_or_default();
        let words = format!("{calls}, {input} in, {output} out{cost}; counted above");
        figures.push(("summaries", words));
    }
    if account.full != account.sent && record.context != "full" {
        let (sent, full) = (account.sent as f64, account.full as f64);
        // A short run pays for the tools of its memory, and has nothing to fold yet.
        let saved = match full > sent {
            true => text::saved(sent, full),
            false => {
                let more = account.sent.saturating_sub(account.full);
                format!("nothing, {} more", text::count(more, "token"))
            }
        };
        let (sent, full) = (thousands(account.sent), thousands(account.full));
        let words = format!("{saved}: {sent} sent, {full} if everything had stayed (estimated)");
        figures.push(("saved", words));
    }
    if record.blocks > 0 {
        let blocks = text::count(u64::from(record.blocks), "block");
        figures.push(("look", format!("`foldback blocks --todo {todo}` lists its {blocks}")));
    }
    if record.is_final {
        // What is done stays done, and the next question can be a smaller one.
        figures.push(("next", format!("foldback run --todo {todo} \"...\"")));
    } else if record.state != RunState::Done {
        let raised = match record.out_of_steps {
            true => record.limits.more_steps(),
            false => record.spent_up.and_then(|what| record.limits.raised(what, account)),
        };
        let raised = raised.map(|bound| format!(" {bound}")).unwrap_or_default();
        figures.push(("resume", format!("foldback run --resume {id}{raised}")));
    }
    figures
}
