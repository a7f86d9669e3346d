//! Measures what a model's cosines mean.

use crate::StaticEmbedder;
use foldback_core::{EmbedError, Embedder, Scale, first_chars};
use std::fmt;

/// A conversation with known changes of topic, and known answers to questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The messages, in order.
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

/// The measurements of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The model.
    pub model_id: String,
    /// The meaning of its cosines.
    pub scale: Scale,
    /// How well `scale.same_topic` separates `within` from `across`: the mean of the shares of both that are on the
    /// right side. 0.5 is chance.
    pub balanced_accuracy: f64,
    /// Cosines of neighbouring runs of messages within a topic.
    pub within: Distribution,
    /// Cosines of neighbouring runs of messages across a change of topic.
    pub across: Distribution,
    /// Cosines of questions and the best message of the texts that answer them.
    pub answers: Distribution,
    /// Cosines of questions and the best message of the other texts of their conversations.
    pub others: Distribution,
}

/// Cosines, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution(Vec<f32>);

/// The numbers of messages in a run: as many as a rough block has.
const RUNS: std::ops::RangeInclusive<usize> = 2..=4;

/// A text that may answer a question has this many messages, as a block does.
const UNIT: usize = 5;

/// How many characters of a message are read.
const CHARS: usize = 3_000;

/// The most windows of a message that are embedded when single messages are compared.
const WINDOWS: usize = 8;

/// This many texts are embedded at a time.
const BATCH: usize = 64;

/// A text "answers" a question from the cosine on that this share of the true answers reaches. For the built-in
/// embedder on LoCoMo (six dialogues, 851 questions of categories 1-4, units of five messages) that is its own
/// [`answering`](Embedder::answering).
pub const ANSWERS_KEPT: f64 = 0.94;

/// Differences in accuracy below this mean nothing.
const FLAT: f64 = 0.005;

/// Fewer pairs of either kind mean nothing.
const LEAST_PAIRS: usize = 20;

/// Why a model cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The model cannot be run.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// There is no model.
    #[error("`{model}` makes no vectors, so there are no cosines to measure; name a model")]
    NoVectors {
        /// The id that stands for the absence of a model.
        model: String,
    },
    /// The changes of topic of a conversation are out of order.
    #[error(
        "the changes of topic (`boundaries`) of a conversation of {messages} messages are \
         {changes:?}; numbers of messages from 1 to {messages} were expected, each greater than the \
         one before"
    )]
    Changes {
        /// How many messages it has.
        messages: usize,
        /// Its changes.
        changes: Vec<usize>,
    },
    /// The conversations do not say enough.
    #[error(
        "the conversations have {within} neighbouring runs of messages within a topic and {across} \
         across a change, but at least {LEAST_PAIRS} of each are needed; give more conversations, or \
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
/// *Same topic*: runs of 2, 3 and 4 messages, one directly after the other, either both in one topic, or the first at
/// the end of a topic and the second at the start of the next; the boundary between two conversations of a set is a
/// change too. The cosine is the one of the best balanced accuracy, the mean over sets and lengths.
///
/// *Answering*: each question against the units of five messages of its conversation, by the best window of a single
/// message, which is what a search compares. The cosine is the one that [`ANSWERS_KEPT`] of the units with an answer
/// reach, and at most that of "same topic". Without enough questions, the built-in embedder's share of "same topic" is
/// used.
///
/// # Errors
/// When the model cannot be run, a conversation is invalid, or they do not say enough.
pub fn calibrate(
    embedder: &dyn Embedder,
    sets: &[Vec<Conversation>],
) -> Result<Calibration, CalibrateError> {
    if embedder.dim() == 0 {
        return Err(CalibrateError::NoVectors { model: embedder.model_id().to_owned() });
    }
    let mut neighbours = Vec::new();
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for set in sets {
        set.iter().try_for_each(Conversation::check)?;
        for run in RUNS {
            neighbours.push(Neighbours::of(embedder, set, run)?);
        }
        for conversation in set {
            ask(embedder, conversation, &mut answers, &mut others)?;
        }
    }
    // A length with only one kind of pairs separates nothing.
    neighbours.retain(|pairs| !pairs.within.is_empty() && !pairs.across.is_empty());
    let all = |of: fn(&Neighbours) -> &[f32]| -> Vec<f32> {
        neighbours.iter().flat_map(|pairs| of(pairs).to_vec()).collect()
    };
    let within = Distribution::new(all(|pairs| &pairs.within));
    let across = Distribution::new(all(|pairs| &pairs.across));
    if within.len() < LEAST_PAIRS || across.len() < LEAST_PAIRS {
        return Err(CalibrateError::TooFew { within: within.len(), across: across.len() });
    }
    let accuracy = |cosine: f32| -> f64 {
        let sum: f64 = neighbours.iter().map(|pairs| pairs.balanced_accuracy(cosine)).sum();
        sum / neighbours.len() as f64
    };
    let same_topic = best(accuracy);
    let (answers, others) = (Distribution::new(answers), Distribution::new(others));
    let answering = if answers.len() >= LEAST_PAIRS {
        answers.at(1.0 - ANSWERS_KEPT).clamp(0.01, same_topic)
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

impl Conversation {
    /// Keeps the first `messages`, and only what is known about them.
    pub fn truncate(&mut self, messages: usize) {
        self.messages.truncate(messages);
        let end = self.messages.len();
        if end == messages {
            self.changes.retain(|change| *change < end);
            for question in &mut self.questions {
                question.answers.retain(|answer| *answer < end);
            }
            self.questions.retain(|question| !question.answers.is_empty());
        }
    }

    fn check(&self) -> Result<(), CalibrateError> {
        let (messages, changes) = (self.messages.len(), &self.changes);
        let is_inside = changes.iter().all(|change| (1..=messages).contains(change));
        if is_inside && changes.is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        Err(CalibrateError::Changes { messages, changes: changes.clone() })
    }
}

/// Returns the middle of the hundredths at which `accuracy` is within [`FLAT`] of its best, so that chance does not
/// decide at a flat top.
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

    /// Returns the mean of two shares: of pairs within that reach `cosine`, and of pairs across that do not.
    fn balanced_accuracy(&self, cosine: f32) -> f64 {
        let below = |sorted: &[f32]| {
            sorted.partition_point(|&value| value < cosine) as f64 / sorted.len() as f64
        };
        (1.0 - below(&self.within) + below(&self.across)) / 2.0
    }
}

/// Returns the vectors of all runs of this many messages.
fn runs(
    embedder: &dyn Embedder,
    messages: &[String],
    run: usize,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors = Vec::with_capacity(messages.len());
    let first: Vec<usize> = (0..(messages.len() + 1).saturating_sub(run)).collect();
    for batch in first.chunks(BATCH) {
        let text = |first: &usize| {
            let run = messages.iter().skip(*first).take(run);
            run.map(|text| first_chars(text, CHARS)).collect::<Vec<_>>().join("\n")
        };
        let texts: Vec<String> = batch.iter().map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        vectors.extend(embedder.embed(&texts)?.rows().map(<[f32]>::to_vec));
    }
    Ok(vectors)
}

/// Adds the cosines of a conversation's questions and the best messages of its units.
fn ask(
    embedder: &dyn Embedder,
    conversation: &Conversation,
    answers: &mut Vec<f32>,
    others: &mut Vec<f32>,
) -> Result<(), EmbedError> {
    let mut asked = Vec::with_capacity(conversation.questions.len());
    for question in &conversation.questions {
        let vectors = embedder.embed_question(&question.text)?;
        if let Some(vector) = vectors.row(0) {
            asked.push((question, vector.to_vec()));
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    for (n, unit) in conversation.messages.chunks(UNIT).enumerate() {
        let windows =
            unit.iter().flat_map(|text| embedder.windows(first_chars(text, CHARS), WINDOWS));
        let vectors = embedder.embed(&windows.collect::<Vec<_>>())?;
        for (question, asked) in &asked {
            let cosines = vectors.rows().map(|row| cosine(asked, row));
            let Some(best) = cosines.max_by(f32::total_cmp) else { continue };
            let is_answer = question.answers.iter().any(|message| message / UNIT == n);
            if is_answer { &mut *answers } else { &mut *others }.push(best);
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

    /// Returns how many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value that this share of all values is below; 0 when there is none.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WordsOnly;

    #[test]
    fn a_flat_top_is_taken_in_its_middle() {
        let found = best(|cosine| if (0.40..0.61).contains(&cosine) { 0.8 } else { 0.5 });
        assert!((found - 0.50).abs() < 0.011, "{found}");
    }

    #[test]
    fn what_cannot_be_measured_is_told() {
        let few = Conversation { messages: vec!["one".to_owned(); 5], ..Conversation::default() };
        let message = |embedder: &dyn Embedder, conversation: &Conversation| {
            calibrate(embedder, &[vec![conversation.clone()]]).unwrap_err().to_string()
        };
        let error = message(&StaticEmbedder::new(), &few);
        assert!(error.contains("at least 20"), "{error}");
        let error = message(&WordsOnly, &few);
        assert!(error.contains("`none` makes no vectors"), "{error}");
        for changes in [vec![3, 2], vec![2, 2], vec![0], vec![6]] {
            let error = message(&StaticEmbedder::new(), &Conversation { changes, ..few.clone() });
            assert!(error.contains("each greater than the one before"), "{error}");
        }
    }

    /// A length with only pairs across changes does not count as pairs.
    #[test]
    fn only_lengths_with_both_kinds_of_pairs_count() {
        // Topics of four messages: runs of two have pairs within, runs of three and four none.
        let words = ["red", "blue", "sun", "rain"].map(|word| format!("the {word} of today"));
        let messages: Vec<String> = (0..120).map(|n| words[n / 4 % 4].clone()).collect();
        let changes = (1..30).map(|topic| topic * 4).collect();
        let talk = Conversation { messages, changes, questions: Vec::new() };
        let measured = calibrate(&StaticEmbedder::new(), &[vec![talk]]).unwrap();
        assert_eq!((measured.within.len(), measured.across.len()), (30, 29));
        // Without questions, the built-in share is used.
        let Scale { same_topic, answering } = measured.scale;
        let share = StaticEmbedder::ANSWERING / StaticEmbedder::SAME_TOPIC;
        assert!((answering - share * same_topic).abs() < 1e-5);
    }
}
