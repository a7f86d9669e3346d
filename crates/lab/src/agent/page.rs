//! The page of one task under several policies.

use super::{Agents, Figures};
use foldback_bench::BenchError;
use foldback_bench::report::{Bars, Page, Section};

impl Agents {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "One task, done by the same agent with the same tools and the same scripted model, \
                    which knows a fact only if its request shows it. What differs is the context policy.";
        let mut page = Page::new("One task, several contexts", lead);
        let bars = |label: &str, parts: &[&str], values: &dyn Fn(&Figures) -> Vec<f64>| {
            let rows = self.policies.iter().map(|row| (row.policy.clone(), values(row)));
            Bars::end_to_end(label, parts, rows)
        };
        let cost =
            bars("cost, in ordinary input tokens", &["cost"], &|row| vec![row.usage.cost_units]);
        let note = "With a prefix cache or without, whichever is cheaper for the whole task.";
        page.section(Section::new("What it costs").note(note).bars(&cost)?);
        let parts = ["visible", "recalled", "read again", "lost"];
        let facts = bars("facts that were needed", &parts, &|row| {
            let facts = row.facts;
            let counts = [facts.visible, facts.recalled, facts.read_again, facts.lost];
            counts.map(|count| count as f64).to_vec()
        });
        let note = "A fact is visible if it is in the request; otherwise the policy is asked, by one \
                    search and one look; then its source is read again; a reading that was given once \
                    cannot be taken again.";
        page.section(Section::new("The facts that it had read").note(note).bars(&facts)?);
        page.section(Section::new("Figures").sheet(&self.cost_sheet()).sheet(&self.facts_sheet()));
        Ok(page)
    }
}
