//! Measuring what a model's cosines mean.

use crate::StaticEmbedder;
use foldback_core::{EmbedError, Embedder, Scale};
use std::fmt;

/// A conversation of which it is known where its topic changes, and which messages answer what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// What is said, in order.
    pub messages: Vec<String>,
    /// The number of the first message of each new topic, ascending, counted from 0.
    pub changes: Vec<usize>,
    /// Questions about it.
    pub questions: Vec<Question>,
}

/// A question about a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The numbers of the messages that answer it, counted from 0.
    pub answers: Vec<usize>,
}

/// What was measured of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The model.
    pub model_id: String,
    /// What its cosines mean.
    pub scale: Scale,
    /// How well `scale.same_topic` parts `within` from `across`: the mean of the shares of both that
    /// fall on their side. 0.5 is chance.
    pub balanced_accuracy: f64,
    /// Cosines of neighbouring runs of messages within a topic.
    pub within: Distribution,
    /// Cosines of neighbouring runs of messages across a change of topic.
    pub across: Distribution,
    /// Cosines of questions and the texts that answer them.
    pub answers: Distribution,
    /// Cosines of questions and the other texts of their conversations.
    pub others: Distribution,
}

/// Cosines, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution(Vec<f32>);

/// So many messages make a run: as many as a rough block has.
const RUNS: std::ops::RangeInclusive<usize> = 2..=4;

/// A text that may answer a question has this many messages.
const UNIT: usize = 5;

/// Of a message, this many characters are read.
const CHARS: usize = 3_000;

/// A text "answers" a question from the cosine on that this share of the true answers reaches. With
/// the built-in embedder on LoCoMo (six dialogues, 851 questions of categories 1-4, units of five
/// messages) that is its own [`answering`](Embedder::answering).
pub const ANSWERS_KEPT: f64 = 0.85;

/// Differences in accuracy below this mean nothing.
const FLAT: f64 = 0.005;

/// Fewer pairs of either kind tell nothing.
const LEAST_PAIRS: usize = 20;

/// What keeps a model from being measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The model cannot be run.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The conversations tell too little.
    #[error(
        "the conversations have {within} neighbouring runs of messages within a topic and {across} \
         across a change, and at least {LEAST_PAIRS} of each are needed; give more conversations, or \
         ones whose changes of topic are known (`boundaries`)"
    )]
    TooFew {
        /// Pairs within a topic.
        within: usize,
        /// Pairs across a change.
        across: usize,
    },
}

/// Measures a model on sets of conversations, which count alike.
///
/// *Same topic*: runs of 2, 3 and 4 messages, one directly after the other, either both in one
/// topic, or the first at the end of a topic and the second at the start of the next; where a
/// conversation follows another in its set, that is a change too. The cosine is the one of the best
/// balanced accuracy, the mean over sets and lengths.
///
/// *Answering*: each question against the runs of five messages of its conversation; the cosine is
/// the one that [`ANSWERS_KEPT`] of those runs reach that hold an answer. Without enough questions,
/// the built-in embedder's share of "same topic" is taken.
///
/// # Errors
/// When the model cannot be run, or the conversations tell too little.
pub fn calibrate(
    embedder: &dyn Embedder,
    sets: &[Vec<Conversation>],
) -> Result<Calibration, CalibrateError> {
    let mut neighbours = Vec::new();
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for set in sets {
        for run in RUNS {
            neighbours.push(Neighbours::of(embedder, set, run)?);
        }
        for conversation in set {
            ask(embedder, conversation, &mut answers, &mut others)?;
        }
    }
    let all = |of: fn(&Neighbours) -> &[f32]| -> Vec<f32> {
        neighbours.iter().flat_map(|pairs| of(pairs).to_vec()).collect()
    };
    let within = Distribution::new(all(|pairs| &pairs.within));
    let across = Distribution::new(all(|pairs| &pairs.across));
    neighbours.retain(|pairs| !pairs.within.is_empty() && !pairs.across.is_empty());
    if within.len() < LEAST_PAIRS || across.len() < LEAST_PAIRS || neighbours.is_empty() {
        return Err(CalibrateError::TooFew { within: within.len(), across: across.len() });
    }
    let accuracy = |cosine: f32| -> f64 {
        let sum: f64 = neighbours.iter().map(|pairs| pairs.balanced_accuracy(cosine)).sum();
        sum / neighbours.len() as f64
    };
    let same_topic = best(accuracy);
    let (answers, others) = (Distribution::new(answers), Distribution::new(others));
    let answering = if answers.len() >= LEAST_PAIRS {
        answers.at(1.0 - ANSWERS_KEPT).clamp(0.01, 0.99)
    } else {
        let built_in = StaticEmbedder::new();
        same_topic * built_in.answering() / built_in.same_topic()
    };
    Ok(Calibration {
        model_id: embedder.model_id().to_owned(),
        scale: Scale { same_topic, answering },
        balanced_accuracy: accuracy(same_topic),
        within,
        across,
        answers,
        others,
    })
}

/// The middle of the hundredths at which `accuracy` is within [`FLAT`] of its best, so that chance
/// at a flat top does not decide.
fn best(accuracy: impl Fn(f32) -> f64) -> f32 {
    let steps: Vec<(f32, f64)> =
        (1..100).map(|i| i as f32 / 100.0).map(|cosine| (cosine, accuracy(cosine))).collect();
    let top = steps.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let near: Vec<f32> =
        steps.iter().filter(|(_, value)| *value >= top - FLAT).map(|(cosine, _)| *cosine).collect();
    near.get(near.len() / 2).copied().unwrap_or(StaticEmbedder::SAME_TOPIC)
}

/// Cosines of neighbouring runs of one length, ascending.
struct Neighbours {
    within: Vec<f32>,
    across: Vec<f32>,
}

impl Neighbours {
    fn of(
        embedder: &dyn Embedder,
        set: &[Conversation],
        run: usize,
    ) -> Result<Self, CalibrateError> {
        let (mut within, mut across) = (Vec::new(), Vec::new());
        let mut last: Option<Vec<f32>> = None;
        for conversation in set {
            let vectors = runs(embedder, &conversation.messages, run)?;
            if let (Some(last), Some(first)) = (&last, vectors.first()) {
                across.push(cosine(last, first));
            }
            let topic = |message: usize| conversation.changes.partition_point(|c| *c <= message);
            for (first, (a, b)) in vectors.iter().zip(vectors.iter().skip(run)).enumerate() {
                let (second, end) = (first + run, first + 2 * run - 1);
                if topic(first) == topic(end) {
                    within.push(cosine(a, b));
                } else if topic(first) == topic(second - 1)
                    && topic(second) == topic(end)
                    && topic(second) == topic(first) + 1
                {
                    across.push(cosine(a, b));
                }
            }
            last = vectors.into_iter().next_back().or(last);
        }
        within.sort_by(f32::total_cmp);
        across.sort_by(f32::total_cmp);
        Ok(Self { within, across })
    }

    /// The mean of the share of pairs within that reach `cosine` and of pairs across that do not.
    fn balanced_accuracy(&self, cosine: f32) -> f64 {
        let below = |sorted: &[f32]| {
            sorted.partition_point(|&value| value < cosine) as f64 / sorted.len() as f64
        };
        (1.0 - below(&self.within) + below(&self.across)) / 2.0
    }
}

/// The vectors of all runs of so many messages.
fn runs(
    embedder: &dyn Embedder,
    messages: &[String],
    run: usize,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts: Vec<String> = messages
        .windows(run)
        .map(|run| {
            let cut = run.iter().map(|text| text.chars().take(CHARS).collect::<String>());
            cut.collect::<Vec<_>>().join("\n")
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(embedder.embed(&texts)?.rows().map(<[f32]>::to_vec).collect())
}

/// The cosines of a conversation's questions and its texts of [`UNIT`] messages.
fn ask(
    embedder: &dyn Embedder,
    conversation: &Conversation,
    answers: &mut Vec<f32>,
    others: &mut Vec<f32>,
) -> Result<(), EmbedError> {
    if conversation.questions.is_empty() {
        return Ok(());
    }
    let units: Vec<String> =
        conversation.messages.chunks(UNIT).map(|unit| unit.join("\n")).collect();
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let units = embedder.embed(&units)?;
    for question in &conversation.questions {
        let asked = embedder.embed_question(&question.text)?;
        let Some(asked) = asked.row(0) else { continue };
        for (n, unit) in units.rows().enumerate() {
            let is_answer = question.answers.iter().any(|message| message / UNIT == n);
            let found = if is_answer { &mut *answers } else { &mut *others };
            found.push(cosine(asked, unit));
        }
    }
    Ok(())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

impl Distribution {
    fn new(mut values: Vec<f32>) -> Self {
        values.sort_by(f32::total_cmp);
        Self(values)
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that this share of all values is below; 0 when there is none.
    #[must_use]
    pub fn at(&self, share: f64) -> f32 {
        let last = self.len().saturating_sub(1) as f64;
        self.0.get((share.clamp(0.0, 1.0) * last) as usize).copied().unwrap_or(0.0)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p10, p50, p90] = [0.1, 0.5, 0.9].map(|share| self.at(share));
        write!(f, "{} pairs, p10 {p10:.2} p50 {p50:.2} p90 {p90:.2}", self.len())
    }
}

/// Texts of the project's own, to measure a model on where no conversations are at hand: one set in
/// English and one in Chinese.
#[must_use]
pub fn own_texts() -> Vec<Vec<Conversation>> {
    TEXTS.split("\n= ").skip(1).map(|set| vec![parse(set)]).collect()
}

/// A set a section (`= name`), a topic a paragraph, a message a line; lines behind `?` ask for the
/// message that follows them.
const TEXTS: &str = include_str!("../assets/calibration.txt");

fn parse(set: &str) -> Conversation {
    let mut conversation = Conversation::default();
    for line in set.lines().skip(1) {
        let next = conversation.messages.len();
        if line.is_empty() {
            conversation.changes.push(next);
        } else if let Some(question) = line.strip_prefix("? ") {
            let question = Question { text: question.to_owned(), answers: vec![next] };
            conversation.questions.push(question);
        } else {
            conversation.messages.push(line.to_owned());
        }
    }
    let end = conversation.messages.len();
    conversation.changes.retain(|change| (1..end).contains(change));
    conversation.changes.dedup();
    conversation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_texts_are_two_sets_of_topics_with_questions() {
        let sets = own_texts();
        assert_eq!(sets.len(), 2);
        for set in &sets {
            let [conversation] = set.as_slice() else { panic!("{} conversations", set.len()) };
            let topics = conversation.changes.len() + 1;
            assert!(topics >= 12, "{topics} topics");
            assert!(conversation.messages.len() >= topics * 6);
            assert!(conversation.questions.len() >= topics);
            let last = conversation.messages.len() - 1;
            assert!(conversation.questions.iter().all(|q| q.answers.iter().all(|a| *a <= last)));
        }
        let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        assert!(sets[1][0].messages.iter().all(|message| message.chars().any(is_chinese)));
    }

    #[test]
    fn a_flat_top_is_taken_in_its_middle() {
        let found = best(|cosine| if (0.40..0.61).contains(&cosine) { 0.8 } else { 0.5 });
        assert!((found - 0.50).abs() < 0.011, "{found}");
    }

    #[test]
    fn too_little_text_is_told() {
        let few = Conversation { messages: vec!["one".to_owned(); 5], ..Conversation::default() };
        let error = calibrate(&StaticEmbedder::new(), &[vec![few]]).unwrap_err();
        assert!(error.to_string().contains("at least 20"), "{error}");
    }
}
