//! How fast the time and space of a store grow along the ladders.

use super::ladder::Step;
use super::slope::{Slope, cells};
use foldback_bench::Sheet;
use serde::Serialize;

/// A function that returns the size of a step on a ladder; `None` for a step of the other one.
pub(super) type Of = fn(&Step) -> Option<f64>;

/// The ladders: the name of each, what its steps count, and the size of a step.
pub(super) const LADDERS: [(&str, &str, Of); 2] = [
    ("Blocks in one todo", "blocks", |step| {
        (step.filled.todos == 1).then_some(step.filled.blocks as f64)
    }),
    ("Todos of a few blocks in one store", "todos", |step| {
        (step.filled.todos > 1).then_some(f64::from(step.filled.todos))
    }),
];

/// The figures that are fitted along each: the key, and the value of a step.
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
    /// The slope of the logarithms of both: 0 is no growth, 1 is growth in proportion.
    #[serde(flatten)]
    slope: Slope,
}

/// Returns the slopes of all figures along both ladders; figures with fewer than three steps are left
/// out.
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

/// Returns a row for each slope.
#[must_use]
pub fn growth_sheet(slopes: &[Growth]) -> Sheet {
    let title = "Growth: slopes of the logarithms (0: none, 1: in proportion), 95 % bounds";
    let mut sheet = Sheet::new(title, &["along", "figure"], &["slope", "from", "to"]);
    for Growth { along, figure, slope } in slopes {
        let names = [along, figure].map(|name| (*name).to_owned());
        sheet.row(names.into_iter().chain(cells(Some(*slope))));
    }
    sheet
}
