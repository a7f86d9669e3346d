//! How fast what a store takes grows along the ladders.

use super::ladder::Step;
use super::slope::{Slope, cells};
use foldback_bench::Sheet;
use serde::Serialize;

/// How large a step is on a ladder; `None` for a step of the other one.
pub(super) type Of = fn(&Step) -> Option<f64>;

/// The ladders: what each is called, what its steps count, and how large a step is.
pub(super) const LADDERS: [(&str, &str, Of); 2] = [
    ("Blocks in one todo", "blocks", |step| {
        (step.filled.todos == 1).then_some(step.filled.blocks as f64)
    }),
    ("Todos of a few blocks in one store", "todos", |step| {
        (step.filled.todos > 1).then_some(f64::from(step.filled.todos))
    }),
];

/// What is fitted along each: its key, and what it is of a step.
const FIGURES: [(&str, Of); 9] = [
    ("append_p50", |step| Some(step.filled.append_p50)),
    ("resume_p50", |step| Some(step.filled.resume_p50)),
    ("search_p50", |step| Some(step.filled.search_p50)),
    ("open_first_hit_ms", |step| Some(step.open_first_hit_ms)),
    ("rss_mb", |step| step.rss_mb),
    ("own_mb", |step| step.own_mb),
    ("disk_mb", |step| Some(step.disk_mb)),
    ("files", |step| Some(step.files as f64)),
    ("descriptors", |step| step.descriptors.map(|count| count as f64)),
];

/// How fast something grows along a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// What the ladder counts: `blocks` or `todos`.
    along: &'static str,
    /// What grows: its key in a step.
    figure: &'static str,
    /// Among the logarithms of both: 0 does not grow, 1 grows in proportion.
    #[serde(flatten)]
    slope: Slope,
}

/// The slopes of all figures along both ladders; those left out that have less than three steps.
#[must_use]
pub fn growth(steps: &[Step]) -> Vec<Growth> {
    let along =
        LADDERS.iter().flat_map(|(_, along, size)| FIGURES.map(|figure| (*along, *size, figure)));
    let fitted = along.filter_map(|(along, size, (figure, of))| {
        let points: Vec<_> = steps.iter().filter_map(|step| size(step).zip(of(step))).collect();
        Slope::of_logs(&points).map(|slope| Growth { along, figure, slope })
    });
    fitted.collect()
}

/// A row for each slope.
#[must_use]
pub fn growth_sheet(slopes: &[Growth]) -> Sheet {
    let title =
        "Growth: slopes among the logarithms (0 does not grow, 1 in proportion), bounds of 95 %";
    let mut sheet = Sheet::new(title, &["along", "figure"], &["slope", "from", "to"]);
    for Growth { along, figure, slope } in slopes {
        let names = [along, figure].map(|name| (*name).to_owned());
        sheet.row(names.into_iter().chain(cells(Some(*slope))));
    }
    sheet
}
