//! The port to embedding models.

use serde::{Deserialize, Serialize};

/// Turns texts into unit vectors.
///
/// Implementations are deterministic: the same text gives the same bytes.
pub trait Embedder: Send + Sync {
    /// Names the model and its version. Vectors of different ids are never compared.
    fn model_id(&self) -> &str;

    /// Returns the length of each vector.
    fn dim(&self) -> usize;

    /// Returns the cosine similarity that means "same topic" on this model's own scale.
    fn same_topic(&self) -> f32;

    /// Returns the cosine of a question and a text that answers it, on this model's own scale: at most
    /// [`same_topic`](Self::same_topic), because a short question and its answer share less than two parts of one
    /// topic. The default is for models for which it was not measured.
    fn answering(&self) -> f32 {
        self.same_topic() * ANSWERING_SHARE
    }

    /// Returns one vector for each text, in order: of length 1, or all zeros for a text in which the model knows
    /// nothing.
    ///
    /// # Errors
    /// When the model cannot be run.
    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError>;

    /// Returns the vector of a question, as one row. Some models need to know that a text is a question; the default
    /// embeds it like any text.
    ///
    /// # Errors
    /// When the model cannot be run.
    fn embed_question(&self, question: &str) -> Result<Vectors, EmbedError> {
        self.embed(&[question])
    }

    /// Returns the vectors by which neighbouring texts are judged to be on one topic, if they differ from those of
    /// [`embed`](Self::embed); by default they do not. They are not stored.
    fn embed_for_topics(&self, _texts: &[&str]) -> Option<Vectors> {
        None
    }

    /// Returns how much of a text is of the kind that the model was made for, from 0 to 1. The rest is embedded too,
    /// but as noise, so that words should weigh more. By default 1: the model knows everything.
    fn knows(&self, _text: &str) -> f32 {
        1.0
    }

    /// Returns the cosine of this question and a text that answers it, where a model's cosines differ between languages; by
    /// default it is [`answering`](Self::answering).
    fn answering_to(&self, _question: &str) -> f32 {
        self.answering()
    }

    /// Returns the parts in which a long text is embedded: at most `limit` of them, in order. By default, the text is
    /// one part.
    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        if limit == 0 || text.is_empty() { Vec::new() } else { vec![text] }
    }

    /// Maps a cosine to the common scale of the design's thresholds: there, 0 is unrelated, 0.72 is "same topic" and 1
    /// is the same text. Linear on each side of [`same_topic`](Self::same_topic).
    fn calibrated(&self, cosine: f32) -> f32 {
        calibrate(cosine, self.same_topic())
    }

    /// Like [`calibrated`](Self::calibrated), for the cosine of a question and a text: there, 0.72 is "this answers
    /// it".
    fn calibrated_answer(&self, cosine: f32) -> f32 {
        let likeness = self.same_topic() / self.answering().max(0.01);
        calibrate(cosine * likeness, self.same_topic())
    }
}

/// The measured meaning of a model's cosines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// The cosine of [`Embedder::same_topic`].
    pub same_topic: f32,
    /// The cosine of [`Embedder::answering`].
    pub answering: f32,
}

impl Scale {
    /// Returns whether both are cosines strictly between 0 and 1, and `answering` is at most `same_topic`.
    #[must_use]
    pub fn is_sound(self) -> bool {
        let Self { same_topic, answering } = self;
        0.0 < answering && answering <= same_topic && same_topic < 1.0
    }
}

/// The share of [`Embedder::same_topic`] at which a text is taken to answer a question, for models for which it was not
/// measured. It differs between models (two static tables have 0.65 and 0.77); of these the lower one drops fewer
/// answers.
const ANSWERING_SHARE: f32 = 0.65;

/// The calibrated similarity that means "same topic": the middle of the design's 0.70-0.75.
pub(crate) const SAME_TOPIC: f32 = 0.72;

fn calibrate(cosine: f32, same_topic: f32) -> f32 {
    let same = same_topic.clamp(0.01, 0.99);
    let cosine = cosine.clamp(0.0, 1.0);
    if cosine <= same {
        cosine / same * SAME_TOPIC
    } else {
        SAME_TOPIC + (cosine - same) / (1.0 - same) * (1.0 - SAME_TOPIC)
    }
}

/// Vectors of one length, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    dim: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// Takes `values` as rows of `dim` each; `None` if they do not divide evenly, or `dim` is 0 while there are values.
    #[must_use]
    pub fn new(dim: usize, values: Vec<f32>) -> Option<Self> {
        let fits = if dim == 0 { values.is_empty() } else { values.len().is_multiple_of(dim) };
        fits.then_some(Self { dim, values })
    }

    /// Returns the length of each row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns how many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the row at `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.dim.max(1)).nth(index)
    }

    /// Returns the rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim.max(1))
    }
}

/// A model that could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the embedder {model} failed: {message}")]
pub struct EmbedError {
    /// The model.
    pub model: String,
    /// What went wrong and what to do about it.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_scale_keeps_order_and_ends() {
        for same in [0.1, 0.37, 0.8] {
            assert!((calibrate(same, same) - SAME_TOPIC).abs() < 1e-6);
            assert_eq!(calibrate(-0.4, same), 0.0);
            assert!((calibrate(1.0, same) - 1.0).abs() < 1e-6);
            let scale: Vec<_> = (0..=20).map(|i| calibrate(i as f32 / 20.0, same)).collect();
            assert!(scale.is_sorted());
        }
    }

    /// An embedder that is nothing but its scale.
    struct Scaled(Scale);

    impl Embedder for Scaled {
        fn model_id(&self) -> &str {
            "scaled"
        }

        fn dim(&self) -> usize {
            0
        }

        fn same_topic(&self) -> f32 {
            self.0.same_topic
        }

        fn answering(&self) -> f32 {
            self.0.answering
        }

        fn embed(&self, _: &[&str]) -> Result<Vectors, EmbedError> {
            Ok(Vectors::default())
        }
    }

    #[test]
    fn a_scale_that_makes_no_sense_is_told() {
        let sound = |same_topic, answering| Scale { same_topic, answering }.is_sound();
        assert!(sound(0.72, 0.468) && sound(0.3, 0.3));
        let nan = f32::NAN;
        for (same, answering) in [(1.0, 0.5), (nan, 0.2), (0.5, nan), (0.3, 0.4), (0.5, 0.0)] {
            assert!(!sound(same, answering), "{same} {answering}");
        }
    }

    #[test]
    fn a_question_has_a_scale_of_its_own() {
        for (same_topic, answering) in [(0.72, 0.468), (0.3, 0.3), (0.9, 0.8)] {
            let embedder = Scaled(Scale { same_topic, answering });
            assert!((embedder.calibrated_answer(answering) - SAME_TOPIC).abs() < 1e-5);
            assert!((embedder.calibrated(same_topic) - SAME_TOPIC).abs() < 1e-5);
            let step = |i| embedder.calibrated_answer(i as f32 / 20.0);
            assert!((0..=20).map(step).is_sorted());
        }
    }

    #[test]
    fn rows_divide_evenly_or_are_refused() {
        let two = Vectors::new(2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        assert_eq!((two.len(), two.row(1), two.row(2)), (2, Some(&[0.0, 1.0][..]), None));
        assert!(Vectors::new(3, vec![1.0, 0.0]).is_none());
        assert!(Vectors::new(0, Vec::new()).unwrap().is_empty());
        assert_eq!(Vectors::default().row(0), None);
    }
}
