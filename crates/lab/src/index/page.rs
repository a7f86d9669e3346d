//! The pages of both measurements.

use super::contest::Standing;
use super::growth::{LADDERS, Of, growth, growth_sheet};
use super::ladder::{LADDER_NOTE, Step, ladder_counts, ladder_times};
use foldback_bench::BenchError;
use foldback_bench::report::{Axis, Lines, Page, Section, Series};

/// A curve over the steps of a ladder: its name, and its value at a step.
type Curve = (&'static str, fn(&Step) -> Option<f64>);

const TIMES: [Curve; 4] = [
    ("append of a message", |step| Some(step.filled.append_p50)),
    ("search", |step| Some(step.filled.search_p50)),
    ("session resumed", |step| Some(step.filled.resume_p50)),
    ("cold: first hit", |step| Some(step.open_first_hit_ms)),
];

const SIZES: [Curve; 4] = [
    ("messages as JSON", |step| Some(step.filled.raw_mb)),
    ("disk", |step| Some(step.disk_mb)),
    ("memory", |step| step.rss_mb),
    ("memory without file pages", |step| step.own_mb),
];

/// Returns workload W1 as a page with its table.
#[must_use]
pub fn contest_page(standing: &Standing) -> Page {
    let lead = "The block store on the same files and operations as other stores.";
    let mut page = Page::new("Workload W1", lead);
    let note = "Vectors are given, so no embedder is measured. Adds are synced before they return. \
                Searches read the blocks that they find. Fused is foldback's own ranking, where \
                others fuse ranks.";
    page.section(Section::new("Results").note(note).sheet(&standing.sheet()));
    page
}

/// Returns both ladders as a page: curves of times and sizes, and the tables.
///
/// # Errors
/// When a picture cannot be drawn.
pub fn ladder_page(steps: &[Step]) -> Result<Page, BenchError> {
    let lead = "The times and counts of a store as it grows.";
    let mut page = Page::new("Growth", lead);
    for (heading, what, size) in LADDERS {
        let times = lines(steps, what, "milliseconds (median)", size, &TIMES);
        let sizes = lines(steps, what, "megabytes", size, &SIZES);
        page.section(Section::new(heading).lines(&times)?.lines(&sizes)?);
    }
    let tables = Section::new("Figures")
        .note(LADDER_NOTE)
        .sheet(&ladder_times(steps))
        .sheet(&ladder_counts(steps))
        .sheet(&growth_sheet(&growth(steps)));
    page.section(tables);
    Ok(page)
}

fn lines(steps: &[Step], x: &str, y: &str, size: Of, curves: &[Curve]) -> Lines {
    let series = curves.iter().map(|(name, of)| Series {
        name: (*name).to_owned(),
        points: steps.iter().filter_map(|step| size(step).zip(of(step))).collect(),
        ..Series::default()
    });
    Lines { x: Axis::log(x), y: Axis::log(y), series: series.collect(), marks: Vec::new() }
}
