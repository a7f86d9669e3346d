//! The page of retrieval: recall against budgets, by ranking and by cut.

use super::{Cuts, FileRecall, Recall, Retrieval, SettingRecall, VectorsOf};
use crate::report::{Axis, Lines, Page, Section, Series};
use crate::sheet::counted;
use crate::{BenchError, sheet::short_name};
use foldback_blockstore::Ranking;

impl Retrieval {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "How much of the evidence for questions a search finds. Conversations with \
                    questions are recorded as an import does it; recall is the share of the \
                    answering messages that are in the first blocks found.";
        let mut page = Page::new("Retrieval", lead);
        let asked = format!(
            "{}, vectors by {}. A block has {:.0} tokens on average. Left out: {} of \
             category 5 (LoCoMo's adversarial ones, which its conversations do not \
             answer), {} without evidence in the conversation.",
            counted(self.all.questions as u64, "question"),
            self.embedder,
            self.block_tokens,
            self.left_out.adversarial,
            self.left_out.without_evidence,
        );
        let note = "Blocks are taken whole, in the order of their ranks, until the first that does \
                    not fit. Against the number of blocks larger blocks look better; against tokens \
                    they do not. Means are blocks with one vector each, windows are blocks of that \
                    many messages each, whatever they say.";
        let mut section = Section::new("All questions").note(&asked).note(note);
        if self.settings.is_empty() {
            page.section(section);
            return Ok(page);
        }
        section = section.note(&self.told());
        for (name, is_shown) in PICTURES {
            section = section
                .caption(&format!("{name}: recall against a budget of tokens"))
                .lines(&self.lines("tokens of the blocks", is_shown, of_all, by_tokens))?
                .caption(&format!("{name}: recall against the number of blocks"))
                .lines(&self.lines("blocks", is_shown, of_all, by_blocks))?;
        }
        page.section(section);
        let files = self.settings.first().map_or(&[][..], |way| &way.files);
        if files.len() > 1 {
            for (at, file) in files.iter().enumerate() {
                let questions = file.recall.questions;
                let note = format!("Questions: {questions}. Recall against a budget of tokens.");
                let lines = self.lines(
                    "tokens of the blocks",
                    |way| is_ranking(way) || is_cut(way),
                    |way| way.files.get(at),
                    by_tokens,
                );
                page.section(Section::new(short_name(&file.file)).note(&note).lines(&lines)?);
            }
        }
        let tables = self.sheets().iter().fold(Section::new("Figures"), Section::sheet);
        page.section(tables);
        Ok(page)
    }

    /// Returns a sentence on where other ways find more than the memory's own.
    fn told(&self) -> String {
        let Some(own) = self.shown().find(|way| way.setting.is_headline(&self.embedder)) else {
            return String::new();
        };
        let [at_tokens, at_blocks] = [at_2000 as fn(&Recall) -> Option<f64>, at_10].map(|of| {
            let best = of(&own.all.recall).unwrap_or_default();
            let ahead = self.shown().filter_map(|way| {
                let share = of(&way.all.recall).filter(|share| *share > best)?;
                Some(format!("{} {share:.3}", way.setting.name()))
            });
            let ahead: Vec<String> = ahead.collect();
            let ahead = if ahead.is_empty() { "nothing".to_owned() } else { ahead.join(", ") };
            format!("{best:.3}; ahead of it: {ahead}")
        });
        format!(
            "In 2,000 tokens the memory's own search finds {at_tokens}. In ten blocks {at_blocks}."
        )
    }

    /// Returns the settings with the headline's vectors.
    fn shown(&self) -> impl Iterator<Item = &SettingRecall> {
        self.settings.iter().filter(|way| way.setting.embedder == self.embedder)
    }

    fn lines<'a>(
        &'a self,
        x: &str,
        is_shown: impl Fn(&SettingRecall) -> bool,
        of: impl Fn(&'a SettingRecall) -> Option<&'a FileRecall>,
        points: fn(&Recall) -> Vec<(f64, f64)>,
    ) -> Lines {
        let series = self.shown().filter(|way| is_shown(way)).map(|way| Series {
            name: way.setting.name(),
            points: of(way).map_or_else(Vec::new, |file| points(&file.recall)),
            strong: way.setting.is_headline(&self.embedder),
            dashed: way.setting.ranking != Ranking::Fused,
        });
        Lines {
            x: Axis::linear(x),
            y: Axis::linear("recall of evidence"),
            series: series.collect(),
            marks: Vec::new(),
        }
    }
}

/// Selects the settings that a picture shows.
type IsShown = fn(&SettingRecall) -> bool;

const PICTURES: [(&str, IsShown); 2] = [("By ranking", is_ranking), ("By cut", is_cut)];

/// Returns whether a setting is for comparing rankings: the memory's blocks, ordered by words, meaning
/// or both.
fn is_ranking(way: &SettingRecall) -> bool {
    way.setting.cuts == Cuts::Blocks
}

/// Returns whether a setting is for comparing cuts: the memory's blocks and windows, ordered by words
/// or by both.
fn is_cut(way: &SettingRecall) -> bool {
    way.setting.vectors == VectorsOf::Message && way.setting.ranking != Ranking::Meaning
}

fn of_all(way: &SettingRecall) -> Option<&FileRecall> {
    Some(&way.all)
}

fn by_tokens(recall: &Recall) -> Vec<(f64, f64)> {
    recall.curve.iter().map(|(tokens, share)| (*tokens as f64, *share)).collect()
}

fn by_blocks(recall: &Recall) -> Vec<(f64, f64)> {
    recall.recall_at.iter().map(|(k, share)| (*k as f64, *share)).collect()
}

fn at_2000(recall: &Recall) -> Option<f64> {
    recall.recall_at_tokens.get(&2_000).copied()
}

fn at_10(recall: &Recall) -> Option<f64> {
    recall.recall_at.get(&10).copied()
}
