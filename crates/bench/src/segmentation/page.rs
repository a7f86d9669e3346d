//! The page of segmentation: how far each way of cutting is from the given changes of topic.

use super::{Figures, FileFigures, Score, Segmentation};
use crate::report::{Bar, Bars, Page, Section};
use crate::sheet::counted;
use crate::{BenchError, sheet::short_name};

/// Ways of cutting whose Pk differs by no more than this are even.
const EVEN: f64 = 0.000_5;

impl Segmentation {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "How well changes of topic are found. The cuts that the memory makes while a \
                    conversation is recorded are compared with the borders that the conversation's \
                    source names.";
        let mut page = Page::new("Segmentation", lead);
        let note = "Pk is the share of windows whose two ends are judged wrongly to be in one topic \
                    or in two; WindowDiff is the share in which the number of cuts is wrong. Lower \
                    is better. Both are means over the conversations with a border, with windows of \
                    half a mean segment. Even cuts are given the number of topics; the others \
                    are not.";
        let mut section = Section::new("Ways of cutting").note(note);
        for FileFigures { file, figures } in &self.files {
            if let Some(bars) = bars(figures) {
                let file = short_name(file);
                let caption = format!(
                    "{file}, {}: {}",
                    counted(figures.conversations as u64, "conversation"),
                    told(figures)
                );
                section = section.caption(&caption).bars(&bars)?;
            }
        }
        page.section(section);
        let tables = self.sheets().iter().fold(Section::new("Figures"), Section::sheet);
        page.section(tables);
        Ok(page)
    }
}

/// Returns the ways of cutting, the memory's own first.
fn ways(figures: &Figures) -> [(&'static str, &Score); 6] {
    [
        ("topic cuts", &figures.topics),
        ("all borders of blocks", &figures.blocks),
        ("TextTiling", &figures.text_tiling),
        ("TextTiling by message", &figures.text_tiling_by_message),
        ("even cuts", &figures.even_cuts),
        ("no cut", &figures.no_cut),
    ]
}

/// Describes the results in a sentence.
fn told(figures: &Figures) -> String {
    let Some(own) = figures.topics.pk else { return String::new() };
    let ahead = ways(figures)
        .into_iter()
        .filter_map(|(name, score)| Some((name, score.pk.filter(|pk| own - pk > EVEN)?)));
    let ahead: Vec<String> = ahead.map(|(name, pk)| format!("{name} {pk:.3}")).collect();
    match ahead.is_empty() {
        true => format!("topic cuts have a Pk of {own:.3}, and none is lower."),
        false => format!("topic cuts have a Pk of {own:.3}; lower: {}.", ahead.join(", ")),
    }
}

/// Returns the errors of each way; `None` if no boundary is given.
fn bars(figures: &Figures) -> Option<Bars> {
    let bar = |(name, score): (&str, &Score)| {
        Some(Bar { name: name.to_owned(), values: vec![score.pk?, score.wd?] })
    };
    let bars: Vec<Bar> = ways(figures).into_iter().filter_map(bar).collect();
    let has_length = bars.iter().any(|bar| bar.values.iter().any(|value| *value > 0.0));
    has_length.then(|| Bars {
        label: "share of windows judged wrongly".to_owned(),
        parts: vec!["Pk".to_owned(), "WindowDiff".to_owned()],
        bars,
        side_by_side: true,
    })
}
