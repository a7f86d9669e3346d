//! No model at all.

use foldback_core::{EmbedError, Embedder, Vectors};

/// Embeds nothing, so that a store is searched by words alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordsOnly;

impl WordsOnly {
    /// The id that stands for the absence of a model.
    pub const MODEL_ID: &str = "none";
}

impl Embedder for WordsOnly {
    fn model_id(&self) -> &str {
        Self::MODEL_ID
    }

    fn dim(&self) -> usize {
        0
    }

    /// Nothing is compared, so any scale will do; this is the built-in embedder's.
    fn same_topic(&self) -> f32 {
        crate::StaticEmbedder::SAME_TOPIC
    }

    fn embed(&self, _: &[&str]) -> Result<Vectors, EmbedError> {
        Ok(Vectors::default())
    }

    fn windows<'t>(&self, _: &'t str, _: usize) -> Vec<&'t str> {
        Vec::new()
    }
}
