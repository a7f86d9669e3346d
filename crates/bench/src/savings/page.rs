//! The page of savings: targets, curves of tokens, cost against length, facts, and tables.

mod facts;
mod lengths;

use super::targets::{CACHE_AWARE, STRICT};
use super::{ByPolicy, Comparison, Curve, Group, Length, Savings, Spread};
use crate::report::{Axis, Lines, Page, Section, Series};
use crate::{BenchError, Sheet};
use foldback_core::thousands;
use foldback_policies::Policy;

/// The baseline of all comparisons.
const FULL: &str = "full";

impl Savings {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "What a model would be sent under each policy, and whether what it needed later \
                    was still available. Recorded conversations are fed through each policy \
                    message by message; prompts are counted with o200k and billed as a provider \
                    with a prefix cache bills them.";
        let mut page = Page::new("Savings", lead);
        page.section(self.targets_section());
        for kind in Group::ALL {
            if let Some(section) = self.curves_section(kind)? {
                page.section(section);
            }
        }
        for of_kind in &self.kinds {
            page.section(lengths::section(self, of_kind)?);
        }
        for of_kind in &self.kinds {
            if let Some(section) = facts::section(of_kind)? {
                page.section(section);
            }
        }
        for of_kind in &self.kinds {
            page.section(self.saved_section(of_kind.kind));
        }
        page.section(self.recalls_section());
        page.section(self.policies_section());
        Ok(page)
    }

    fn targets_section(&self) -> Section {
        let kinds = self.kinds.iter().map(|of_kind| {
            format!("{}: {}", of_kind.kind.title(), thousands(of_kind.conversations))
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let measured = format!(
            "Conversations measured: {kinds}. Only targets over all conversations mix kinds."
        );
        let note = "Figures include the calls that recalling takes. \"Own apart\" is what they \
                    would be if nobody paid for recalling words that only the model itself had \
                    written; a figure without a target is given for comparison.";
        let section = Section::new("Targets").note(&measured).note(note);
        let told = self.reached().into_iter().filter(|sheet| !sheet.rows.is_empty());
        told.fold(section, |section, sheet| section.sheet(&sheet))
    }

    /// Returns curves of tokens for the longest conversations of a kind.
    fn curves_section(&self, kind: Group) -> Result<Option<Section>, BenchError> {
        let shown = match kind {
            Group::Agent => 3,
            Group::Composite => 2,
            Group::Dialogue | Group::UsersOnly => 1,
        };
        let curves = self.curves.iter().filter(|curve| curve.kind == kind);
        let mut curves: Vec<&Curve> = curves.filter(|curve| calls(curve) > 1).collect();
        // A stable sort: the longest first.
        curves.sort_by_key(|curve| std::cmp::Reverse(calls(curve)));
        curves.truncate(shown);
        if curves.is_empty() {
            return Ok(None);
        }
        let note = "The tokens of each call's prompt, without recalls, in those of the longest \
                    conversations that have the most calls. Curves that coincide hide each \
                    other until they part; their names are beside their ends.";
        let heading = format!("Tokens of each call: {}", kind.title().to_lowercase());
        let mut section = Section::new(&heading).note(note);
        for curve in curves {
            let series = ordered(&curve.policies).into_iter().map(|(name, tokens)| {
                let points =
                    (1..).zip(tokens).map(|(call, tokens)| (f64::from(call), *tokens as f64));
                series(name, points.collect())
            });
            let told = format!("{}: {} tokens", curve.id, thousands(curve.tokens));
            section = section.caption(&told).lines(&Lines {
                x: Axis::linear("call"),
                y: Axis::log("tokens of the prompt"),
                series: series.collect(),
                marks: Vec::new(),
            })?;
        }
        Ok(Some(section))
    }

    /// Returns the memory's savings against each rival in each class of lengths.
    fn saved_section(&self, kind: Group) -> Section {
        let heading = format!("Saved by length: {}", kind.title().to_lowercase());
        let note = "Median over the conversations, and in brackets what nine tenths and what one \
                    tenth of them save at least; recalls included. Below 0 the rival is cheaper.";
        let section = Section::new(&heading).note(note);
        [STRICT, CACHE_AWARE].into_iter().fold(section, |section, policy| {
            let tokens = self.saved_sheet("Input tokens", policy, kind, |one| one.input);
            let cost = self.saved_sheet("Cost", policy, kind, |one| one.cost);
            section.sheet(&tokens).sheet(&cost)
        })
    }

    fn saved_sheet(
        &self,
        what: &str,
        policy: &str,
        kind: Group,
        of: fn(&Comparison) -> Spread,
    ) -> Sheet {
        let is_meant = |one: &&Comparison| one.kind == kind && one.policy == policy;
        let chosen: Vec<&Comparison> = self.comparisons.iter().filter(is_meant).collect();
        let rivals: Vec<&&Comparison> = chosen.iter().filter(|one| one.length.is_none()).collect();
        // Every rival was compared at the same lengths.
        let first = rivals.first().map(|one| one.rival);
        let lengths: Vec<&&Comparison> =
            chosen.iter().filter(|one| Some(one.rival) == first).collect();
        let head = |one: &&&Comparison| {
            let length = one.length.map_or("all", Length::as_str);
            format!("{length} ({})", thousands(one.conversations))
        };
        let heads: Vec<String> = lengths.iter().map(head).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let title = format!("{what} saved by {policy}, by tokens (and conversations)");
        let mut sheet = Sheet::new(&title, &["against"], &heads);
        for Comparison { rival, .. } in rivals {
            let cells = lengths.iter().map(|column| {
                let mut all = chosen.iter();
                let cell = all.find(|one| one.rival == *rival && one.length == column.length);
                cell.map_or_else(String::new, |one| spread(of(one)))
            });
            sheet.row([(*rival).to_owned()].into_iter().chain(cells));
        }
        sheet
    }

    /// Returns the figures with recalls and without, for each kind.
    fn recalls_section(&self) -> Section {
        let note = "A search for what a call needed and its prompt lacked is a further model \
                    call, and a look at what the search named is one more. They count whether they \
                    find anything or not. The agent asks exactly when something is missing, which \
                    a model may not do: the recalled share is an upper bound. Own calls are those \
                    that a policy makes for its own purposes.";
        let mut section = Section::new("With recalls and without").note(note);
        for of_kind in &self.kinds {
            let numbers = [
                "calls",
                "without",
                "tokens",
                "without",
                "cost",
                "without",
                "searches",
                "looks",
                "own calls",
            ];
            let mut sheet = Sheet::new(of_kind.kind.title(), &["policy"], &numbers);
            for (name, figures) in ordered(&of_kind.policies) {
                let (with, without) = (&figures.usage, &figures.without_recalls);
                let counts = [
                    with.calls,
                    without.calls,
                    with.input_tokens,
                    without.input_tokens,
                    with.cost_units.round() as u64,
                    without.cost_units.round() as u64,
                    figures.recalls,
                    figures.looks,
                    figures.side_calls,
                ];
                sheet.row([name.to_owned()].into_iter().chain(counts.map(thousands)));
            }
            section = section.sheet(&sheet);
        }
        section
    }

    fn policies_section(&self) -> Section {
        let note = "If the original asks a model for a summary, an extractive summary of the \
                    same size stands in, written by rule; its call is counted as the model's \
                    would be. A model's summary could contain more facts, or fewer.";
        let known = Policy::all();
        let terms = ordered(&self.policies).into_iter().filter_map(|(name, _)| {
            let policy = known.iter().find(|policy| policy.name() == name)?;
            Some((name, policy.about()))
        });
        Section::new("The policies").note(note).terms(terms)
    }
}

/// Returns the policies as pictures and tables show them: the memory's, the others, and lastly keeping
/// everything.
fn ordered<T>(policies: &ByPolicy<T>) -> Vec<(&'static str, &T)> {
    let mut ordered: Vec<(&'static str, &T)> = policies.iter().collect();
    ordered.sort_by_key(|(name, _)| match *name {
        STRICT | CACHE_AWARE => 0,
        FULL => 2,
        _ => 1,
    });
    ordered
}

fn series(name: &str, points: Vec<(f64, f64)>) -> Series {
    let (strong, dashed) = (matches!(name, STRICT | CACHE_AWARE), name == FULL);
    Series { name: name.to_owned(), points, strong, dashed }
}

/// Returns the number of calls in a conversation.
fn calls(curve: &Curve) -> usize {
    curve.policies.iter().map(|(_, tokens)| tokens.len()).max().unwrap_or_default()
}

/// Formats a spread in hundredths: the median, and in brackets what nine tenths and one tenth save at
/// least.
fn spread(spread: Spread) -> String {
    // Adding 0 turns -0 into 0.
    let hundredths = |share: f64| (share * 100.0).round() + 0.0;
    let [median, p10, p90] = [spread.median, spread.p10, spread.p90].map(hundredths);
    format!("{median} % ({p10} to {p90})")
}
