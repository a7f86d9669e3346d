//! The port to embedding models.

/// Turns texts into unit vectors.
///
/// Implementations are deterministic: the same text gives the same bytes.
pub trait Embedder: Send + Sync {
    /// Names the model and its version. Vectors of different ids are never compared.
    fn model_id(&self) -> &str;

    /// The length of each vector.
    fn dim(&self) -> usize;

    /// The cosine similarity that stands for "same topic" on this model's own scale.
    fn same_topic(&self) -> f32;

    /// One vector for each text, in order: of length 1, or all zeros for a text in which the model
    /// knows nothing.
    ///
    /// # Errors
    /// When the model cannot be run.
    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError>;

    /// The parts in which a long text is embedded: at most `limit` of them, in order. The default
    /// is the text as one part.
    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        if limit == 0 || text.is_empty() { Vec::new() } else { vec![text] }
    }

    /// Puts a cosine on the common scale on which the design's thresholds are written: there, 0 is
    /// unrelated, 0.72 is "same topic" and 1 is the same text. Linear on each side of
    /// [`same_topic`](Self::same_topic).
    fn calibrated(&self, cosine: f32) -> f32 {
        calibrate(cosine, self.same_topic())
    }
}

/// The calibrated similarity that stands for "same topic": the middle of the design's 0.70-0.75.
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
    /// Takes `values` as rows of `dim` each; `None` when they do not divide evenly, or `dim` is 0
    /// while there are values.
    #[must_use]
    pub fn new(dim: usize, values: Vec<f32>) -> Option<Self> {
        let fits = if dim == 0 { values.is_empty() } else { values.len().is_multiple_of(dim) };
        fits.then_some(Self { dim, values })
    }

    /// The length of each row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The row at `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.values.get(index * self.dim..(index + 1) * self.dim)
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim.max(1))
    }
}

/// A model that could not be run.
#[derive(Debug, thiserror::Error)]
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

    #[test]
    fn rows_divide_evenly_or_are_refused() {
        let two = Vectors::new(2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        assert_eq!((two.len(), two.row(1), two.row(2)), (2, Some(&[0.0, 1.0][..]), None));
        assert!(Vectors::new(3, vec![1.0, 0.0]).is_none());
        assert!(Vectors::new(0, Vec::new()).unwrap().is_empty());
    }
}
