//! The summary of a replay.

use super::report::LatestBlock;
use super::{BesideUsage, Report};
use crate::error::CliError;
use crate::output::table::{Column, Table};
use crate::output::{Output, style, text};
use foldback_baselines::BASELINES;
use foldback_bench::Usage;
use foldback_core::thousands;
use foldback_policies::Policy;
use std::collections::BTreeMap;

/// The reports of one or many conversations, added up.
#[derive(Default)]
pub(crate) struct Totals {
    conversations: u64,
    unclean: u64,
    lost: u64,
    messages: u64,
    resumed: u64,
    blocks: u64,
    reasons: BTreeMap<&'static str, u64>,
    usage: Usage,
    /// Each baseline by its name.
    baselines: BTreeMap<&'static str, BesideUsage>,
    payloads: u64,
    payload_bytes: u64,
    prefix_moves: u64,
    orphans: u64,
    units_cut: u64,
    window_max: usize,
    /// Calls by how many open messages they showed.
    loose: BTreeMap<usize, u64>,
    latest: LatestBlock,
    window_bound: Option<usize>,
    compared_bytes: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, report: &Report) {
        self.conversations += 1;
        self.unclean += u64::from(!report.is_clean());
        self.lost += u64::from(!report.lossless);
        self.messages += report.messages;
        self.resumed += report.resumed_at;
        self.blocks += report.blocks;
        for (reason, count) in &report.close_reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.usage.add(&report.usage());
        for (name, used) in &report.baselines {
            let sum = self.baselines.entry(name).or_default();
            sum.usage.add(&used.usage);
            sum.forgotten += used.forgotten;
            sum.cuts += used.cuts;
        }
        self.payloads += report.payloads;
        self.payload_bytes += report.payload_bytes;
        self.prefix_moves += report.prefix_moves;
        self.orphans += report.orphans;
        self.units_cut += report.units_cut;
        self.window_max = self.window_max.max(report.window_max_messages);
        for (loose, calls) in &report.loose_messages {
            *self.loose.entry(*loose).or_default() += calls;
        }
        self.latest.whole += report.latest_block.whole;
        self.latest.line += report.latest_block.line;
        self.window_bound = self.window_bound.max(report.window_bound);
        self.compared_bytes += report.compared_bytes;
    }

    /// Whether every conversation was clean.
    pub(crate) fn is_clean(&self) -> bool {
        self.unclean == 0
    }
}

/// Prints the summary: the figures beside those of the baselines, the facts, the proof.
pub(crate) fn summary(out: &Output, totals: &Totals, policy: Policy) -> Result<(), CliError> {
    if !out.is_quiet() {
        out.line("")?;
    }
    figures(out, totals, policy)?;
    out.line("")?;
    facts(out, totals)?;
    out.line("")?;
    proof(out, totals)
}

fn figures(out: &Output, totals: &Totals, policy: Policy) -> Result<(), CliError> {
    let calls = text::count(totals.usage.calls, "call");
    let rows = [
        (format!("input tokens of {calls}"), input as fn(&Usage) -> f64),
        ("the largest call".to_owned(), peak),
        ("cost with a prompt cache".to_owned(), cost),
    ];
    let others: Vec<(&'static str, Usage)> = BASELINES
        .iter()
        .filter(|baseline| baseline.name != policy.name())
        .filter_map(|baseline| Some((baseline.name, usage_of(totals, baseline.name)?)))
        .collect();
    let mut columns = vec![Column::Name("tokens"), Column::Number(policy.name())];
    for (name, _) in &others {
        columns.extend([Column::Number(name), Column::Number("saved")]);
    }
    let mut table = Table::new(out, &columns);
    for (name, figure) in rows {
        let ours = figure(&totals.usage);
        let mut row = vec![name, whole(ours)];
        for (_, usage) in &others {
            let theirs = figure(usage);
            row.extend([whole(theirs), text::saved(ours, theirs)]);
        }
        table.row(row);
    }
    table.print(out)
}

fn usage_of(totals: &Totals, name: &str) -> Option<Usage> {
    totals.baselines.get(name).map(|used| used.usage)
}

fn facts(out: &Output, totals: &Totals) -> Result<(), CliError> {
    let fact = |name: &str, value: String| out.line(format!("{} {value}", text::fill(name, 15)));
    let conversations = match totals.conversations {
        1 => String::new(),
        n => format!(" in {}", text::count(n, "conversation")),
    };
    fact("messages", format!("{}{conversations}", thousands(totals.messages)))?;
    if totals.resumed > 0 {
        fact("recorded before", text::count(totals.resumed, "message"))?;
    }
    for (name, used) in totals.baselines.iter().filter(|(_, used)| used.forgotten > 0) {
        let gone = text::count(used.forgotten, "message");
        fact("forgotten", format!("{gone} by {name}, in {}", text::count(used.cuts, "cut")))?;
    }
    let Some(bound) = totals.window_bound else {
        let orphans = thousands(totals.orphans);
        return fact("parted", format!("{orphans} calls and results; nothing is repaired"));
    };
    // The most frequent first, and by name among equals.
    let mut reasons: Vec<_> = totals.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<_> =
        reasons.iter().map(|(reason, count)| format!("{reason} {}", thousands(**count))).collect();
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!(" closed by {}", reasons.join(", ")),
    };
    fact("blocks", format!("{}{reasons}", thousands(totals.blocks)))?;
    fact(
        "offloaded",
        format!("{}, {}", text::count(totals.payloads, "part"), text::bytes(totals.payload_bytes)),
    )?;
    fact(
        "prefix moves",
        format!(
            "{} in {}: the prompt did not continue the one before",
            thousands(totals.prefix_moves),
            text::count(totals.usage.calls, "call")
        ),
    )?;
    let window =
        format!("{} at most (bound {bound})", text::count(totals.window_max as u64, "message"));
    fact("window", good_if(totals.window_max <= bound, window))?;
    fact("loose", loose(totals))?;
    let LatestBlock { whole, line } = totals.latest;
    fact("latest block", format!("whole in {} of the calls after it", share(whole, whole + line)))?;
    let orphans = match totals.orphans {
        0 => "0: every prompt was a valid request".to_owned(),
        n => format!("{}: not every prompt was a valid request", thousands(n)),
    };
    fact("orphans", good_if(totals.orphans == 0, orphans))?;
    if totals.units_cut > 0 {
        let cut = text::count(totals.units_cut, "result");
        let cut = format!("{cut} in another block than the call");
        fact("units cut", style::paint(style::BAD, cut))?;
    }
    Ok(())
}

/// How many open messages the calls showed: up to the design's three for simple work, its five for complex work, and
/// more.
fn loose(totals: &Totals) -> String {
    let all = totals.loose.values().sum();
    let calls =
        |from: usize, to: usize| totals.loose.range(from..=to).map(|(_, calls)| calls).sum();
    format!(
        "0-3 messages in {} of the calls, 4-5 in {}, more in {}",
        share(calls(0, 3), all),
        share(calls(4, 5), all),
        share(calls(6, usize::MAX), all),
    )
}

/// A part of all, in percent.
fn share(part: u64, all: u64) -> String {
    match all {
        0 => "0 %".to_owned(),
        all => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    }
}

fn proof(out: &Output, totals: &Totals) -> Result<(), CliError> {
    let compared = format!(
        "{}, {}, {} bytes compared",
        text::count(totals.messages, "message"),
        text::count(totals.payloads, "payload"),
        thousands(totals.compared_bytes),
    );
    let verdict = match totals.lost {
        0 => style::paint(style::GOOD, "lossless: yes"),
        n if totals.conversations > 1 => {
            let lost = text::count(n, "conversation");
            style::paint(style::BAD, format!("lossless: NO, {lost} did not come back"))
        }
        _ => style::paint(style::BAD, "lossless: NO"),
    };
    out.line(format!("{verdict} ({compared})"))
}

fn input(usage: &Usage) -> f64 {
    usage.input_tokens as f64
}

fn peak(usage: &Usage) -> f64 {
    usage.peak_tokens as f64
}

fn cost(usage: &Usage) -> f64 {
    usage.cost_units
}

/// A figure without its decimals.
fn whole(figure: f64) -> String {
    thousands(figure.round().max(0.0) as u64)
}

fn good_if(good: bool, text: String) -> String {
    if good { text } else { style::paint(style::BAD, text) }
}
