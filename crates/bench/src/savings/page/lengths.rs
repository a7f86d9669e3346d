//! The section on cost against length, with the lengths at which the memory becomes cheaper than a
//! rival.

use super::{FULL, ordered, series};
use crate::report::{Axis, Lines, Mark, Section};
use crate::savings::by_length::{Cheaper, Class, EVERY_LENGTH, classes, kilo};
use crate::savings::compare::{cost, input};
use crate::savings::targets::{CACHE_AWARE, STRICT};
use crate::savings::{Figures, OfKind, Savings};
use crate::{BenchError, Sheet};
use std::collections::BTreeMap;

/// The rivals against which the break-even is marked.
const MARKED: [&str; 2] = [FULL, "deepagents"];

/// Returns cost against length for one kind, with the lengths from which on the memory pays.
pub(super) fn section(savings: &Savings, of_kind: &OfKind) -> Result<Section, BenchError> {
    let kind = of_kind.kind;
    let classes = classes(savings.conversations.iter().filter(|one| one.group == kind));
    let heading = format!("Cost against length: {}", kind.title().to_lowercase());
    let note = "The cost of a conversation relative to keeping everything (1), recalls \
                included: medians over conversations whose lengths lie within a factor of two; \
                classes of fewer than three are joined to a neighbour. Below 1 is cheaper. \
                Prices are those given to the command: for reading from the cache, writing to \
                it, and bypassing it.";
    let mut section = Section::new(&heading).note(note);
    let names = ordered(&of_kind.policies);
    if classes.len() > 1 {
        let series = names.iter().map(|(name, _)| {
            let points = classes
                .iter()
                .filter_map(|class| Some((class.length(), class.beside(name, FULL, cost)?)));
            series(name, points.collect())
        });
        section = section.lines(&Lines {
            x: Axis::log("tokens of the conversation"),
            y: Axis::log("cost, times that of full"),
            series: series.collect(),
            marks: break_even_marks(&classes),
        })?;
    }
    let terms = [STRICT, CACHE_AWARE].into_iter().flat_map(|policy| {
        [("cost", cost as fn(&Figures) -> f64), ("tokens", input)].map(|(what, spent)| {
            let words = where_it_pays(&classes, policy, &names, spent);
            (format!("{policy}, {what}"), words)
        })
    });
    Ok(section.terms(terms).sheet(&by_class(&classes, &names)))
}

/// Returns marks at which each policy of the memory becomes cheaper than the most important rivals.
fn break_even_marks(classes: &[Class<'_>]) -> Vec<Mark> {
    let mut marks: BTreeMap<(u64, &str), Vec<&str>> = BTreeMap::new();
    for policy in [STRICT, CACHE_AWARE] {
        for rival in MARKED {
            if let Some(from) = Cheaper::of(classes, policy, rival, cost).break_even() {
                marks.entry((from, policy)).or_default().push(rival);
            }
        }
    }
    let mark = |((from, policy), rivals): ((u64, &str), Vec<&str>)| Mark {
        x: from as f64,
        label: format!("{policy} under {}: from {}", rivals.join(" and "), kilo(from)),
    };
    marks.into_iter().map(mark).collect()
}

/// Describes the lengths at which a policy spends less than each of the others.
fn where_it_pays(
    classes: &[Class<'_>],
    policy: &str,
    names: &[(&'static str, &Figures)],
    spent: fn(&Figures) -> f64,
) -> String {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (rival, _) in names.iter().filter(|(name, _)| ![STRICT, CACHE_AWARE].contains(name)) {
        let words = Cheaper::of(classes, policy, rival, spent).words();
        match told.iter_mut().find(|(other, _)| *other == words) {
            Some((_, rivals)) => rivals.push(rival),
            None => told.push((words, vec![rival])),
        }
    }
    let is_always = told.iter().all(|(words, _)| words == EVERY_LENGTH);
    let told = told.iter().map(|(words, rivals)| format!("than {} {words}", rivals.join(", ")));
    let told = told.collect::<Vec<_>>().join("; ");
    let rest = match is_always {
        true => "",
        false => "At other lengths the rival is ahead, or they are even.",
    };
    format!("Over 1 % less, in the median: {told}. {rest}").trim_end().to_owned()
}

/// Returns the medians plotted in the picture of cost against length.
fn by_class(classes: &[Class<'_>], names: &[(&'static str, &Figures)]) -> Sheet {
    let heads: Vec<String> = classes
        .iter()
        .map(|class| format!("{}-{} ({})", class.from / 1_000, kilo(class.to), class.len()))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let head = "Cost, times that of full: medians by tokens (and conversations)";
    let mut sheet = Sheet::new(head, &["policy"], &heads);
    for (name, _) in names {
        let cells = classes.iter().map(|class| {
            let share = class.beside(name, FULL, cost);
            share.map_or_else(String::new, |share| format!("{share:.2}"))
        });
        sheet.row([(*name).to_owned()].into_iter().chain(cells));
    }
    sheet
}
