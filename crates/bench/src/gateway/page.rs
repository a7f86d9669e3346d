//! The page of the gateway: the cost of conversations through it, compared with sending them directly.

use super::{Bills, Sum};
use crate::BenchError;
use crate::report::{Bar, Bars, Page, Section};
use foldback_core::thousands;

impl Bills {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "What conversations cost through foldback gateway, compared with sending them directly and with the \
                    provider's own clearing of old results of tools.";
        let mut page = Page::new("Gateway", lead);
        let note = "In plain tokens, as a provider with a prefix cache bills them: each request is read as far as an \
                    earlier, unexpired one has the same beginning, and written after that.";
        let mut section = Section::new("Costs").note(note);
        for sums in self.sums.chunk_by(|a, b| (a.group, a.is_long) == (b.group, b.is_long)) {
            let Some(first) = sums.first() else { continue };
            let count = thousands(first.conversations);
            section = section.caption(&format!("{} ({count})", first.title())).bars(&bars(sums))?;
        }
        page.section(section);
        page.section(self.sheets().iter().fold(Section::new("Figures"), Section::sheet));
        Ok(page)
    }
}

fn bars(sums: &[Sum]) -> Bars {
    let bar = |sum: &Sum| Bar {
        name: format!("{}, {}", sum.setting.prices(), sum.setting.rhythm()),
        values: [sum.direct, sum.gateway, sum.clearing].into_iter().chain(sum.proxy).collect(),
    };
    let parts = ["direct", "gateway", "clearing"].into_iter();
    let proxy = sums.first().and_then(|sum| sum.proxy.map(|_| "proxy"));
    Bars {
        label: "plain tokens".to_owned(),
        parts: parts.chain(proxy).map(str::to_owned).collect(),
        bars: sums.iter().map(bar).collect(),
        side_by_side: true,
    }
}
