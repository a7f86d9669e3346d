//! The page of facts that were asked for.

use super::{Figures, Recalled};
use foldback_bench::BenchError;
use foldback_bench::report::{Bars, Page, Section};

impl Recalled {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = format!(
            "{} was asked for {} facts, each stated once at the beginning of a conversation of {} to {} tokens.",
            self.model, self.needles, self.tokens.0, self.tokens.1
        );
        let mut page = Page::new("Facts from long ago", &lead);
        let bars = |label: &str, parts: &[&str], values: &dyn Fn(&Figures) -> Vec<f64>| {
            let rows = self.contexts.iter().map(|row| (row.context.clone(), values(row)));
            Bars::end_to_end(label, parts, rows)
        };
        let right = bars("runs that are right", &["English", "Chinese"], &|row| {
            [row.right_english, row.right_chinese].map(f64::from).to_vec()
        });
        let note = "A run is right if the model names the value.";
        let mut knew = Section::new("What it knew").note(note);
        // Bars without a length make no picture.
        if self.contexts.iter().any(|row| row.right > 0) {
            knew = knew.bars(&right)?;
        }
        page.section(knew);
        let mut sent = Section::new("What it was sent");
        if self.contexts.iter().any(|row| row.input_tokens > 0) {
            sent = sent.bars(&bars("tokens of all requests", &["input"], &|row| {
                vec![row.input_tokens as f64]
            }))?;
        }
        page.section(sent.sheet(&self.sheet()));
        Ok(page)
    }
}
