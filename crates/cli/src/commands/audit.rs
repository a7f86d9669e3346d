//! `foldback audit`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, text};
use crate::store;
use clap::Args;
use foldback::{AuditFilter, AuditLine};
use foldback_core::{Timestamp, TodoId};
use serde::Serialize;

/// Print what was looked up in the store, and check that its log was not changed
///
/// With memory.audit, each load, search and tool call adds a line to audit.jsonl in the store's folder: the time, the
/// entry point (door), the todo, the references asked for and given, and a keyed digest of the query. Each line
/// includes the check of the one before it.
///
/// JSON Lines: {"n", "at", "door", "todo", "what", "asked", "query", "given", "error", "before", "check"}, then
/// {"lines", "clean", "broken_line", "why"}. The exit code is 1 if a line is broken. Lines after it are not printed,
/// except after a line "lines_lost", which says that earlier ones are gone, because the file was deleted, moved or cut
/// off.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback audit --todo coding-session
  foldback audit --since 2026-11-01 --query \"staging port\" --json")]
pub(crate) struct Audit {
    /// Only look-ups in this todo
    #[arg(long, value_name = "ID")]
    todo: Option<TodoId>,

    /// Only look-ups since then: a day or a time in RFC 3339 format
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,

    /// Only look-ups with exactly this query
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
}

/// Reads a day or a time.
fn time(text: &str) -> Result<Timestamp, String> {
    let full = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let wrong =
        || format!("{text:?} is not a day or time such as 2026-11-26 or 2026-11-26T13:39:10Z");
    Timestamp::parse(&full).ok_or_else(wrong)
}

#[derive(Serialize)]
struct EndJson {
    lines: u64,
    clean: bool,
    broken_line: Option<u64>,
    why: Option<String>,
}

impl Audit {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        let filter = AuditFilter { todo: self.todo, since: self.since, query: self.query };
        let mut printed = Ok(());
        let report = memory.audit().read(&filter, |line| {
            if printed.is_ok() {
                printed = print(&line, out);
            }
        })?;
        printed?;
        let clean = report.broken.is_none();
        if out.is_json() {
            let (broken_line, why) = report.broken.unzip();
            out.json(&EndJson { lines: report.lines, clean, broken_line, why })?;
        } else if let Some((line, why)) = report.broken {
            out.line(format!("line {line} is broken: {}", text::one_line(&why)))?;
        } else {
            out.note(format_args!("{}, none broken", text::count(report.lines, "line")));
        }
        if !globals.settings.memory.audit {
            out.note(
                "the audit log is off, so look-ups are not recorded; memory.audit = true (FOLDBACK_MEMORY_AUDIT=true) \
                 switches it on",
            );
        }
        Ok(Outcome::clean_if(clean))
    }
}

fn print(line: &AuditLine, out: &Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(line);
    }
    let list = |references: &[String]| match references {
        [] => "-".to_owned(),
        some => some.join(" "),
    };
    let todo = line.todo.as_deref().unwrap_or("(all)");
    let refused = if line.error { "  refused" } else { "" };
    out.line(text::one_line(&format!(
        "{}  {:<7}  {todo}  {}  {}  ->  {}{refused}",
        line.at,
        line.door,
        line.what,
        list(&line.asked),
        list(&line.given),
    )))
}
