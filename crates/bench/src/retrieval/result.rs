//! The figures of retrieval, and the tables that show them.

use super::evidence::LeftOut;
use super::recall::{AT, AT_TOKENS, AnswerRecall, Recall};
use crate::sheet::counted;
use crate::{Sheet, sheet::short_name};
use foldback_blockstore::Ranking;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// How much of the evidence for questions a search finds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Retrieval {
    /// Over all questions, by the headline's setting: the memory's own blocks and search, with the
    /// embedder that was named.
    #[serde(flatten)]
    pub all: Recall,
    /// The time of a search for ten blocks, including the question's vector: the median over the
    /// questions, in microseconds. Each question is asked a second time for it, while other
    /// conversations are searched in parallel, one on each core.
    pub took_us_p50: u64,
    /// The mean number of tokens of a block, as o200k counts its messages in a request.
    pub block_tokens: f64,
    /// The model whose vectors the headline's search used.
    pub embedder: String,
    /// Questions that were not asked.
    pub left_out: LeftOut,
    /// The headline by file and by the categories that their sources name.
    pub categories: Vec<CategoryRecall>,
    /// Every way of cutting and ranking, over all files and file by file.
    pub settings: Vec<SettingRecall>,
}

/// One category of the questions of one file, by the headline's setting.
#[derive(Clone, Debug, Serialize)]
pub struct CategoryRecall {
    /// The file, as it was named.
    pub file: String,
    /// The category, as its source names it.
    pub category: String,
    /// Its figures.
    #[serde(flatten)]
    pub recall: Recall,
}

/// One setting's figures.
#[derive(Clone, Debug, Serialize)]
pub struct SettingRecall {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// Over all questions.
    #[serde(flatten)]
    pub all: FileRecall,
    /// File by file, in the order of the input.
    pub files: Vec<FileRecall>,
}

/// The figures of one file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileRecall {
    /// The file, as it was named; `all` for all of them.
    pub file: String,
    /// Its figures.
    #[serde(flatten)]
    pub recall: Recall,
    /// The number of blocks.
    pub blocks: usize,
    /// The mean number of tokens of a block.
    pub block_tokens: f64,
    /// The median time of a search, in microseconds; see [`Retrieval::took_us_p50`]. Blocks that are
    /// not the memory's own are asked for 200 at once, and the question's vector already exists.
    pub took_us_p50: u64,
}

/// A way of cutting conversations and ranking what is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The model of the vectors.
    pub embedder: String,
    /// What is searched for.
    pub cuts: Cuts,
    /// What has a vector.
    pub vectors: VectorsOf,
    /// What determines the order.
    #[serde(serialize_with = "ranking_name")]
    pub ranking: Ranking,
}

/// What a conversation is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// The memory's blocks.
    Blocks,
    /// This many messages each, whatever they say.
    Windows(usize),
}

/// What has a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorsOf {
    /// Each message; a block counts by its best one.
    Message,
    /// Each block: the mean of its messages' vectors.
    Block,
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks => f.write_str("blocks"),
            Self::Windows(size) => write!(f, "windows of {size}"),
        }
    }
}

impl fmt::Display for VectorsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message => "best message",
            Self::Block => "block mean",
        })
    }
}

impl Serialize for Cuts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for VectorsOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn ranking_name<S: Serializer>(ranking: &Ranking, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name_of(*ranking))
}

/// Returns the name of a ranking as it is reported.
fn name_of(ranking: Ranking) -> &'static str {
    match ranking {
        Ranking::Fused => "fused",
        Ranking::Words => "words",
        Ranking::Meaning => "meaning",
    }
}

/// The answers to the questions of one conversation.
pub(super) struct CaseAnswers {
    pub(super) file: String,
    /// The category of each question.
    pub(super) categories: Vec<String>,
    pub(super) left_out: LeftOut,
    /// One for each setting, in the same order for every conversation; none without questions.
    pub(super) parts: Vec<Part>,
}

/// The answers by one setting.
pub(super) struct Part {
    pub(super) setting: Setting,
    pub(super) blocks: usize,
    pub(super) tokens: u64,
    /// One for each question.
    pub(super) answered: Vec<Answered>,
}

/// The answer to one question.
pub(super) struct Answered {
    pub(super) found: AnswerRecall,
    pub(super) took_us: u64,
}

impl Retrieval {
    /// Sums up conversations, in order. The headline is by the memory's own search with the model
    /// `embedder`.
    pub(super) fn of(answers: &[CaseAnswers], embedder: &str) -> Self {
        let mut left_out = LeftOut::default();
        answers.iter().for_each(|answers| left_out.add(answers.left_out));
        let answers: Vec<&CaseAnswers> =
            answers.iter().filter(|answers| !answers.parts.is_empty()).collect();
        let mut files: Vec<&str> = Vec::new();
        for answers in &answers {
            if !files.contains(&answers.file.as_str()) {
                files.push(&answers.file);
            }
        }
        let ways = answers.first().map_or(&[][..], |answers| &answers.parts);
        let settings: Vec<SettingRecall> = ways
            .iter()
            .enumerate()
            .map(|(way, part)| SettingRecall {
                setting: part.setting.clone(),
                all: FileRecall::of("all", &answers, way, |_| true),
                files: files
                    .iter()
                    .map(|file| FileRecall::of(file, &answers, way, |other| other == *file))
                    .collect(),
            })
            .collect();
        let headline = settings.iter().position(|way| way.setting.is_headline(embedder));
        let Some((way, told)) = headline.and_then(|way| Some((way, settings.get(way)?))) else {
            return Self { left_out, embedder: embedder.to_owned(), ..Self::default() };
        };
        Self {
            all: told.all.recall.clone(),
            took_us_p50: told.all.took_us_p50,
            block_tokens: told.all.block_tokens,
            embedder: embedder.to_owned(),
            left_out,
            categories: categories(&answers, &files, way),
            settings,
        }
    }

    /// Returns the tables: the figures of each setting for each file and model, and the headline by
    /// categories.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        let files = self.settings.first().map_or(0, |way| way.files.len());
        let mut models: Vec<&str> = Vec::new();
        for way in &self.settings {
            if !models.contains(&way.setting.embedder.as_str()) {
                models.push(&way.setting.embedder);
            }
        }
        for at in 0..files + usize::from(files > 1) {
            for model in &models {
                let mut ways = self.settings.iter().filter(|way| way.setting.embedder == *model);
                let of = |way: &SettingRecall| way.files.get(at).unwrap_or(&way.all).clone();
                let Some(FileRecall { file, recall, .. }) = ways.clone().next().map(of) else {
                    continue;
                };
                let (file, questions) = (short_name(&file), recall.questions);
                let questions = counted(questions as u64, "question");
                let title = format!("Evidence recall, {file}: {questions}, {model}");
                let mut sheet = recall_sheet(&title, &["searched"], &["tokens"]);
                for way in &mut ways {
                    let FileRecall { recall, block_tokens, .. } = of(way);
                    let names = [way.setting.name(), format!("{block_tokens:.0}")];
                    sheet.row(names.into_iter().chain(cells(&recall)));
                }
                sheets.push(sheet);
            }
        }
        if self.categories.iter().any(|told| !told.category.is_empty()) {
            let title = format!("By category, {}: blocks, fused", self.embedder);
            let mut sheet = recall_sheet(&title, &["file", "category"], &["asked"]);
            for CategoryRecall { file, category, recall } in &self.categories {
                let names = [short_name(file), category].map(str::to_owned);
                let asked = [recall.questions.to_string()];
                sheet.row(names.into_iter().chain(asked).chain(cells(recall)));
            }
            sheets.push(sheet);
        }
        sheets
    }

    /// One row for each setting, file and category; an empty category means the whole file.
    #[must_use]
    pub fn sheet_of_each(&self) -> Sheet {
        let mut numbers = vec!["questions".to_owned(), "blocks".into(), "block_tokens".into()];
        numbers.extend(AT.map(|k| format!("hit_at_{k}")));
        numbers.extend(AT.map(|k| format!("recall_at_{k}")));
        let curve = self.all.curve.iter();
        numbers.extend(curve.map(|(tokens, _)| format!("recall_at_{tokens}_tokens")));
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let names = ["embedder", "cuts", "vectors", "ranking", "file", "category"];
        let mut sheet = Sheet::new("Evidence recall by setting", &names, &numbers);
        for SettingRecall { setting, all, files } in &self.settings {
            let Setting { embedder, cuts, vectors, ranking } = setting;
            let names = |file: &str, category: &str| {
                let [cuts, vectors] = [cuts.to_string(), vectors.to_string()];
                let ranking = name_of(*ranking).to_owned();
                let [file, category] = [file, category].map(str::to_owned);
                [embedder.clone(), cuts, vectors, ranking, file, category]
            };
            let row = |sheet: &mut Sheet, names: [String; 6], told: &Recall, size: [String; 2]| {
                let [blocks, tokens] = size;
                let mut row: Vec<String> = names.into();
                row.extend([told.questions.to_string(), blocks, tokens]);
                let shares = told.hit_at.values().chain(told.recall_at.values()).copied();
                let curve = told.curve.iter().map(|(_, share)| *share);
                row.extend(shares.chain(curve).map(|share| format!("{share:.6}")));
                sheet.row(row);
            };
            for told in [all].into_iter().chain(files) {
                let size = [told.blocks.to_string(), format!("{:.1}", told.block_tokens)];
                row(&mut sheet, names(&told.file, ""), &told.recall, size);
            }
            if setting.is_headline(&self.embedder) {
                for CategoryRecall { file, category, recall } in &self.categories {
                    let names = names(file, category);
                    row(&mut sheet, names, recall, [String::new(), String::new()]);
                }
            }
        }
        sheet
    }
}

impl Setting {
    /// Returns a few words for it in a table, without its model.
    pub(super) fn name(&self) -> String {
        let ranking = name_of(self.ranking);
        match (self.cuts, self.vectors) {
            (Cuts::Blocks, VectorsOf::Message) => format!("blocks, {ranking}"),
            (Cuts::Blocks, VectorsOf::Block) => format!("means, {ranking}"),
            (Cuts::Windows(size), _) => format!("windows {size}, {ranking}"),
        }
    }

    pub(super) fn is_headline(&self, embedder: &str) -> bool {
        self.embedder == embedder
            && self.cuts == Cuts::Blocks
            && self.vectors == VectorsOf::Message
            && self.ranking == Ranking::Fused
    }
}

impl FileRecall {
    fn of(
        file: &str,
        answers: &[&CaseAnswers],
        way: usize,
        is_meant: impl Fn(&str) -> bool,
    ) -> Self {
        let of_file = answers.iter().filter(|answers| is_meant(&answers.file));
        let parts: Vec<&Part> = of_file.filter_map(|answers| answers.parts.get(way)).collect();
        let answered = || parts.iter().flat_map(|part| &part.answered);
        let mut times: Vec<u64> = answered().map(|answered| answered.took_us).collect();
        times.sort_unstable();
        let blocks: usize = parts.iter().map(|part| part.blocks).sum();
        let tokens: u64 = parts.iter().map(|part| part.tokens).sum();
        Self {
            file: file.to_owned(),
            recall: Recall::of(answered().map(|answered| &answered.found)),
            blocks,
            block_tokens: (tokens as f64 / blocks.max(1) as f64 * 10.0).round() / 10.0,
            took_us_p50: times.get(times.len() / 2).copied().unwrap_or_default(),
        }
    }
}

/// Returns the headline by file and category, in the order of the files and of the categories' names.
fn categories(answers: &[&CaseAnswers], files: &[&str], way: usize) -> Vec<CategoryRecall> {
    let mut told = Vec::new();
    for file in files {
        let of_file = || answers.iter().filter(|answers| answers.file == *file);
        let names: BTreeSet<&String> = of_file().flat_map(|answers| &answers.categories).collect();
        for category in names {
            let found = of_file().flat_map(|answers| {
                let answered = answers.parts.get(way).map_or(&[][..], |part| &part.answered);
                let each = answers.categories.iter().zip(answered);
                each.filter(|(name, _)| *name == category).map(|(_, answered)| &answered.found)
            });
            told.push(CategoryRecall {
                file: (*file).to_owned(),
                category: category.clone(),
                recall: Recall::of(found),
            });
        }
    }
    told
}

fn recall_sheet(title: &str, names: &[&str], first: &[&str]) -> Sheet {
    let mut numbers: Vec<String> = first.iter().map(|&head| head.to_owned()).collect();
    numbers.push("hit@1".to_owned());
    numbers.extend(AT.map(|k| format!("R@{k}")));
    numbers.extend(AT_TOKENS.map(|tokens| format!("{tokens}t")));
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    Sheet::new(title, names, &numbers)
}

fn cells(recall: &Recall) -> impl Iterator<Item = String> {
    let shares = recall.hit_at_1.iter().chain(recall.recall_at.values());
    let shares = shares.chain(recall.recall_at_tokens.values());
    let shares: Vec<String> = shares.map(|share| format!("{share:.3}")).collect();
    shares.into_iter()
}
