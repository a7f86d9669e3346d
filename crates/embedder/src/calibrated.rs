//! An embedder on a scale that was measured for it.

use foldback_core::{EmbedError, Embedder, Scale, Vectors};
use std::sync::Arc;

/// An embedder with a [`Scale`] other than its own; its vectors are the same.
#[derive(Clone)]
pub struct Calibrated {
    inner: Arc<dyn Embedder>,
    scale: Scale,
}

impl Calibrated {
    /// Puts `inner` on this scale.
    #[must_use]
    pub fn new(inner: Arc<dyn Embedder>, scale: Scale) -> Self {
        Self { inner, scale }
    }
}

impl Embedder for Calibrated {
    fn model_id(&self) -> &str {
        self.inner.model_id()
    }

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn same_topic(&self) -> f32 {
        self.scale.same_topic
    }

    fn answering(&self) -> f32 {
        self.scale.answering
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        self.inner.embed(texts)
    }

    fn embed_question(&self, question: &str) -> Result<Vectors, EmbedError> {
        self.inner.embed_question(question)
    }

    fn embed_for_topics(&self, texts: &[&str]) -> Option<Vectors> {
        self.inner.embed_for_topics(texts)
    }

    fn knows(&self, text: &str) -> f32 {
        self.inner.knows(text)
    }

    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        self.inner.windows(text, limit)
    }
}
