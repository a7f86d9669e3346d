//! `foldback ledger`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::table::{Column, Table};
use crate::output::{Output, text};
use crate::store;
use clap::{Args, ValueEnum};
use foldback_core::{Timestamp, thousands};
use foldback_gateway::{Checked, Entry, Sums};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Show what passed through the gateway, what it cost, and what it would have cost in full
///
/// Tokens are the provider's own count, from its answers. The full cost of a conversation is the actual one until
/// something is left out; from then on it is computed from what the provider's cache would have held and what is new. A
/// cost is given in tokens at the plain price and covers input only: answers cost the same either way. It includes what
/// the model used to look things up within a turn, unseen by the client; "recalls" are those requests. If a provider
/// does not report tokens, four bytes count as one token, and `estimated` counts the request.
///
/// JSON: [{"name", "first", "last", "requests", "folded", "estimated", "sent": {"bytes", "read", "written", "plain",
/// "cost"}, "whole": {the same}, "output", "recalls": {"requests", "read", "written", "plain", "output", "cost"},
/// "checked": {"requests", "counted", "whole"}}], the oldest first; times in RFC 3339. `output` is of the answers to
/// what was sent, without those to recalls; `checked` has the tokens of those that a gateway with `--check-every` had
/// counted whole, as the provider counted them and as they are here.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback ledger
  foldback ledger --by model --since 2026-11-01")]
pub(crate) struct Ledger {
    /// What the sums are grouped by
    #[arg(long, value_enum, default_value_t = By::Session)]
    by: By,

    /// Only requests from this day or time on, in UTC: 2026-11-23, or 2026-11-23T10:00:00Z
    #[arg(long, value_name = "DATE", value_parser = since)]
    since: Option<Timestamp>,
}

/// What the sums are grouped by.
#[derive(Clone, Copy, ValueEnum)]
enum By {
    Session,
    Day,
    Model,
}

#[derive(Serialize)]
struct Row {
    name: String,
    first: String,
    last: String,
    #[serde(flatten)]
    sums: Sums,
}

impl Ledger {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let rows = self.rows(globals)?;
        if out.is_json() {
            out.json(&rows)?;
            return Ok(Outcome::Done);
        }
        if rows.is_empty() {
            out.note("nothing has passed through a gateway yet; `foldback wrap` and `foldback gateway` start one");
            return Ok(Outcome::Done);
        }
        let name = match self.by {
            By::Session => "session",
            By::Day => "day (UTC)",
            By::Model => "model",
        };
        let numbers = ["requests", "recalls", "sent", "whole", "cost", "cost whole", "saved"];
        let columns = [&[Column::Name(name)][..], &numbers.map(Column::Number)].concat();
        let mut table = Table::new(out, &columns);
        let mut all = Sums::default();
        for row in &rows {
            table.row(cells(&row.name, &row.sums));
            all += row.sums;
        }
        if rows.len() > 1 {
            table.row(cells("all", &all));
        }
        table.print(out)?;
        if all.estimated > 0 {
            out.note(format_args!(
                "the tokens of {} are an estimate: the provider did not report them",
                text::count(all.estimated, "request")
            ));
        }
        let Checked { requests, counted, whole, .. } = all.checked;
        if requests > 0 {
            out.note(format_args!(
                "the provider counts {} tokens for {} in full, and the ledger has {} ({:+.1} %)",
                text::short(counted),
                text::count(requests, "request"),
                text::short(whole),
                100.0 * (whole as f64 / counted.max(1) as f64 - 1.0),
            ));
        }
        Ok(Outcome::Done)
    }

    /// The sums, oldest first.
    fn rows(&self, globals: &Globals) -> Result<Vec<Row>, CliError> {
        let path = store::folder(globals)?.join(foldback_gateway::Ledger::FILE);
        let failed = |source| CliError::Io { what: format!("reading {}", path.display()), source };
        let mut sums: BTreeMap<String, (Timestamp, Timestamp, Sums)> = BTreeMap::new();
        let entries = match foldback_gateway::Ledger::read(&path) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(failed)?;
            if self.since.is_none_or(|since| entry.at >= since) {
                let fresh = (entry.at, entry.at, Sums::default());
                let (first, last, sums) = sums.entry(self.by.name(&entry)).or_insert(fresh);
                *first = entry.at.min(*first);
                *last = entry.at.max(*last);
                sums.add(&entry);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, (first, _, _))| *first);
        let row = |(name, (first, last, sums)): (String, (Timestamp, Timestamp, Sums))| Row {
            name,
            first: first.to_rfc3339(),
            last: last.to_rfc3339(),
            sums,
        };
        Ok(sums.into_iter().map(row).collect())
    }
}

impl By {
    /// The group that an entry belongs to.
    fn name(self, entry: &Entry) -> String {
        match self {
            Self::Session => entry.session.clone(),
            Self::Day => entry.at.to_rfc3339().chars().take(10).collect(),
            Self::Model => entry.model.clone(),
        }
    }
}

fn cells(name: &str, sums: &Sums) -> [String; 8] {
    let cost = |cost: f64| text::short(cost.round() as u64);
    [
        name.to_owned(),
        thousands(sums.requests),
        thousands(sums.recalls.requests),
        text::short(sums.sent.tokens.total()),
        text::short(sums.whole.tokens.total()),
        cost(sums.cost()),
        cost(sums.whole.cost),
        text::saved(sums.cost(), sums.whole.cost),
    ]
}

/// Reads a day or a time.
fn since(text: &str) -> Result<Timestamp, String> {
    let day = Timestamp::parse(&format!("{text}T00:00:00Z"));
    day.or_else(|| Timestamp::parse(text)).ok_or_else(|| {
        "expected a day or a time, such as 2026-11-23 or 2026-11-23T10:00:00Z".to_owned()
    })
}
