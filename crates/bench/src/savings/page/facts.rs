//! The section on the facts that a call needed.

use super::ordered;
use crate::report::{Bar, Bars, Section};
use crate::savings::sheets::percent;
use crate::savings::targets::{CACHE_AWARE, STRICT};
use crate::savings::{Figures, OfKind};
use crate::{BenchError, Sheet};
use foldback_core::thousands;

/// Returns the section on the facts of one kind; `None` if there are none.
pub(super) fn section(of_kind: &OfKind) -> Result<Option<Section>, BenchError> {
    let policies = ordered(&of_kind.policies);
    if policies.iter().all(|(_, figures)| figures.facts.facts == 0) {
        return Ok(None);
    }
    let parts = ["visible", "recalled", "reachable", "lost"];
    let bars = |label: &str, is_shown: [f64; 4]| Bars {
        label: label.to_owned(),
        parts: parts.map(str::to_owned).to_vec(),
        bars: policies
            .iter()
            .map(|(name, figures)| Bar {
                name: (*name).to_owned(),
                values: fates(figures)
                    .into_iter()
                    .zip(is_shown)
                    .map(|(count, shown)| figures.facts.share(count) * 100.0 * shown)
                    .collect(),
            })
            .collect(),
        side_by_side: false,
    };
    let note = "A fact is an argument of a recorded call that occurred in an earlier message. It \
                is visible in the prompt of that call, recalled by one search or one look at what \
                the search named, reachable by reading everything that the policy's tools list, or \
                lost.";
    let heading = format!("Facts that were needed later: {}", of_kind.kind.title().to_lowercase());
    let mut section = Section::new(&heading).note(note).note(&told_of_facts(&policies));
    section = section.caption("All facts").bars(&bars("share of all facts, %", [1.0; 4]))?;
    let hidden =
        bars("share of all facts, %: those that the prompt did not hold", [0.0, 1.0, 1.0, 1.0]);
    if hidden.bars.iter().any(|bar| bar.values.iter().any(|value| *value > 0.0)) {
        section = section.caption("The same, without what was visible").bars(&hidden)?;
    }
    Ok(Some(section.sheet(&facts_sheet(&policies))))
}

/// Returns the counts of facts by fate.
fn fates(figures: &Figures) -> [u64; 4] {
    let facts = &figures.facts;
    [facts.visible, facts.recalled, facts.reachable, facts.lost]
}

/// Compares the memory with others, in a few sentences.
fn told_of_facts(policies: &[(&'static str, &Figures)]) -> String {
    let own: Vec<_> =
        policies.iter().filter(|(name, _)| [STRICT, CACHE_AWARE].contains(name)).collect();
    let had =
        |(name, figures): &(&str, &Figures)| format!("{name} {}", percent(figures.facts.had()));
    let listed = |some: Vec<String>| match some.is_empty() {
        true => "none".to_owned(),
        false => some.join(", "),
    };
    let best = own.iter().map(|(_, figures)| figures.facts.had()).fold(0.0, f64::max);
    let ahead = policies.iter().filter(|(_, figures)| figures.facts.had() > best);
    let losers = policies.iter().filter(|(_, figures)| figures.facts.lost > 0);
    let lost = losers.map(|(name, figures)| format!("{name} {}", thousands(figures.facts.lost)));
    format!(
        "Visible or recalled: {}. Others with more: {}. Facts lost for good: {}.",
        listed(own.iter().map(|one| had(one)).collect()),
        listed(ahead.map(had).collect()),
        listed(lost.collect()),
    )
}

fn facts_sheet(policies: &[(&'static str, &Figures)]) -> Sheet {
    let numbers = [
        "facts",
        "visible",
        "recalled",
        "reachable",
        "lost",
        "ceiling",
        "in large parts: facts",
        "lost",
        "model's own words: facts",
        "lost",
    ];
    let head = "Facts; the ceiling is what a search that always found the right place would find";
    let mut sheet = Sheet::new(head, &["policy"], &numbers);
    for (name, figures) in policies {
        let Figures { facts, payload, own, .. } = figures;
        let [visible, recalled, reachable, lost] = fates(figures);
        let counts = [
            facts.facts,
            visible,
            recalled,
            reachable,
            lost,
            facts.ceiling,
            payload.facts,
            payload.lost,
            own.facts,
            own.lost,
        ];
        sheet.row([(*name).to_owned()].into_iter().chain(counts.map(thousands)));
    }
    sheet
}
