//! The figures of a segmentation, and the tables that show them.

use super::score::{Errors, Tally};
use crate::{Kind, Sheet, sheet::short_name};
use serde::Serialize;

/// How well changes of topic are found, over all conversations and file by file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Segmentation {
    /// Over all conversations.
    #[serde(flatten)]
    pub all: Figures,
    /// File by file, in the order of the input.
    pub files: Vec<FileFigures>,
    /// Conversation by conversation, in the order of the input.
    #[serde(skip)]
    pub each: Vec<Judged>,
}

/// The figures of one file.
#[derive(Clone, Debug, Serialize)]
pub struct FileFigures {
    /// The file, as it was named.
    pub file: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Figures over several conversations. Pk and WindowDiff are means over the conversations that have at
/// least one given boundary; F1 and the ratio are over all their cuts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The number of conversations with a given boundary and more than two messages.
    pub conversations: usize,
    /// Topic cuts: blocks that closed by topic, gap or switch.
    #[serde(flatten)]
    pub topics: Score,
    /// The number of topic cuts for each given one.
    pub boundary_ratio: Option<f64>,
    /// All boundaries of blocks.
    pub blocks: Score,
    /// One segment, and no cut in it.
    pub no_cut: Score,
    /// As many cuts as are given, evenly spaced.
    pub even_cuts: Score,
    /// TextTiling with the parameters of its paper.
    pub text_tiling: Score,
    /// TextTiling with each message as a token sequence, and parameters that suit talk.
    pub text_tiling_by_message: Score,
    /// Agent sessions with a single task.
    pub single_task: SingleTask,
    /// Conversations that have neither a boundary nor a single task, including sessions in which no
    /// tool was called: nothing distinguishes those from a talk about several things.
    pub left_out: usize,
}

/// The scores of one way of cutting; empty if no conversation has a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// See [`Errors::pk`].
    pub pk: Option<f64>,
    /// See [`Errors::wd`].
    pub wd: Option<f64>,
    /// See [`Tally::f1`].
    pub f1: Option<f64>,
}

/// Cuts where there should be none: agent sessions with a single task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SingleTask {
    /// The number of sessions.
    pub sessions: usize,
    /// Their topic cuts.
    pub topic_cuts: usize,
    /// The mean number of topic cuts in a session.
    pub topic_cuts_each: Option<f64>,
}

/// One conversation, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its name.
    pub id: String,
    /// Its file.
    pub file: String,
    /// Its kind.
    pub kind: Kind,
    /// The number of its messages.
    pub messages: usize,
    /// The window of Pk and WindowDiff; `None` if no boundary is given, or no window fits.
    pub window: Option<usize>,
    /// By topic cuts.
    pub topics: Cutting,
    /// By all boundaries of blocks.
    pub blocks: Cutting,
    /// Without a cut.
    pub no_cut: Cutting,
    /// By as many cuts as are given, evenly spaced.
    pub even_cuts: Cutting,
    /// By TextTiling with the parameters of its paper.
    pub text_tiling: Cutting,
    /// By TextTiling with each message as a token sequence.
    pub text_tiling_by_message: Cutting,
}

/// One way of cutting one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cutting {
    /// Its distance from the given cuts.
    pub errors: Errors,
    /// Its cuts, counted.
    pub tally: Tally,
}

impl Segmentation {
    /// Sums up conversations, in order.
    pub(super) fn of(each: Vec<Judged>) -> Self {
        let mut files: Vec<&str> = Vec::new();
        for judged in &each {
            if !files.contains(&judged.file.as_str()) {
                files.push(&judged.file);
            }
        }
        let of_file = |file: &&str| FileFigures {
            file: (*file).to_owned(),
            figures: Figures::of(each.iter().filter(|judged| judged.file == *file)),
        };
        let files = files.iter().map(of_file).collect();
        Self { all: Figures::of(each.iter()), files, each }
    }

    /// Returns the tables: the cuts, the results of other ways of cutting, and the sessions with a
    /// single task.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let names = ["file"];
        let mut topics = Sheet::new(
            "Changes of topic (Pk and WindowDiff: lower is better)",
            &names,
            &["conv.", "Pk", "WD", "F1", "ratio", "all blocks: Pk", "WD", "F1"],
        );
        let mut beside = Sheet::new(
            "The same by other ways, Pk/WindowDiff",
            &names,
            &["topic cuts", "no cut", "even", "TextTiling", "by message"],
        );
        let mut single = Sheet::new(
            "Sessions of one task: topic cuts, of which there should be none",
            &names,
            &["sessions", "cuts", "cuts each"],
        );
        let all = FileFigures { file: "all".to_owned(), figures: self.all };
        let last = if self.files.len() > 1 { Some(&all) } else { None };
        for FileFigures { file, figures } in self.files.iter().chain(last) {
            let file = short_name(file);
            if figures.conversations > 0 {
                let Figures { topics: cut, blocks, .. } = figures;
                topics.row([
                    file.to_owned(),
                    figures.conversations.to_string(),
                    cell(cut.pk, 3),
                    cell(cut.wd, 3),
                    cell(cut.f1, 2),
                    cell(figures.boundary_ratio, 2),
                    cell(blocks.pk, 3),
                    cell(blocks.wd, 3),
                    cell(blocks.f1, 2),
                ]);
                let ways = [
                    cut,
                    &figures.no_cut,
                    &figures.even_cuts,
                    &figures.text_tiling,
                    &figures.text_tiling_by_message,
                ];
                beside.row([file.to_owned()].into_iter().chain(ways.map(Score::errors)));
            }
            let SingleTask { sessions, topic_cuts, topic_cuts_each } = figures.single_task;
            if sessions > 0 {
                let cuts = [sessions.to_string(), topic_cuts.to_string(), cell(topic_cuts_each, 3)];
                single.row([file.to_owned()].into_iter().chain(cuts));
            }
        }
        [topics, beside, single].into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    /// Returns one row for each conversation.
    #[must_use]
    pub fn sheet_of_each(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Changes of topic by conversation",
            &["file", "id", "kind"],
            &[
                "messages",
                "window",
                "given",
                "topic_cuts",
                "topic_hits",
                "pk",
                "wd",
                "block_cuts",
                "block_hits",
                "blocks_pk",
                "blocks_wd",
                "no_cut_pk",
                "no_cut_wd",
                "even_cuts_pk",
                "even_cuts_wd",
                "text_tiling_cuts",
                "text_tiling_pk",
                "text_tiling_wd",
                "text_tiling_by_message_cuts",
                "text_tiling_by_message_pk",
                "text_tiling_by_message_wd",
            ],
        );
        for judged in &self.each {
            let is_scored = judged.window.is_some();
            let errors = |cutting: Cutting| {
                let Errors { pk, wd } = cutting.errors;
                [pk, wd].map(|share| cell(is_scored.then_some(share), 6))
            };
            let mut row = vec![
                judged.file.clone(),
                judged.id.clone(),
                judged.kind.as_str().to_owned(),
                judged.messages.to_string(),
                judged.window.map_or_else(String::new, |window| window.to_string()),
                judged.topics.tally.given.to_string(),
                judged.topics.tally.found.to_string(),
                judged.topics.tally.hits.to_string(),
            ];
            row.extend(errors(judged.topics));
            let blocks = judged.blocks.tally;
            row.extend([blocks.found, blocks.hits].map(|count| count.to_string()));
            row.extend(errors(judged.blocks));
            row.extend(errors(judged.no_cut));
            row.extend(errors(judged.even_cuts));
            for tiling in [judged.text_tiling, judged.text_tiling_by_message] {
                row.push(tiling.tally.found.to_string());
                row.extend(errors(tiling));
            }
            sheet.row(row);
        }
        sheet
    }
}

impl Figures {
    fn of<'a>(each: impl Iterator<Item = &'a Judged> + Clone) -> Self {
        let scored = || each.clone().filter(|judged| judged.window.is_some());
        let score = |of: fn(&Judged) -> Cutting| Score::of(scored().map(of));
        let mut tally = Tally::default();
        scored().for_each(|judged| tally.add(judged.topics.tally));
        let alone = || each.clone().filter(|judged| judged.is_single_task());
        let (sessions, topic_cuts) =
            (alone().count(), alone().map(|judged| judged.topics.tally.found).sum());
        let conversations = scored().count();
        Self {
            conversations,
            topics: score(|judged| judged.topics),
            boundary_ratio: tally.ratio().map(rounded),
            blocks: score(|judged| judged.blocks),
            no_cut: score(|judged| judged.no_cut),
            even_cuts: score(|judged| judged.even_cuts),
            text_tiling: score(|judged| judged.text_tiling),
            text_tiling_by_message: score(|judged| judged.text_tiling_by_message),
            single_task: SingleTask {
                sessions,
                topic_cuts,
                topic_cuts_each: (sessions > 0)
                    .then(|| rounded(topic_cuts as f64 / sessions as f64)),
            },
            left_out: each.count() - conversations - sessions,
        }
    }
}

impl Judged {
    /// Returns whether it is an agent session for which no change of topic is given.
    fn is_single_task(&self) -> bool {
        self.window.is_none() && self.kind == Kind::Agent
    }
}

impl Score {
    fn of(cuttings: impl Iterator<Item = Cutting>) -> Self {
        let (mut pk, mut wd, mut tally, mut n) = (0.0, 0.0, Tally::default(), 0.0);
        for cutting in cuttings {
            pk += cutting.errors.pk;
            wd += cutting.errors.wd;
            tally.add(cutting.tally);
            n += 1.0;
        }
        let told = |value: f64| (n > 0.0).then(|| rounded(value));
        Self { pk: told(pk / n), wd: told(wd / n), f1: told(tally.f1()) }
    }

    fn errors(&self) -> String {
        format!("{}/{}", cell(self.pk, 3), cell(self.wd, 3))
    }
}

/// Rounds away the digits that come from summation.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}
