//! Which embedder a store uses, and making the vectors of its messages again when that changes.

use crate::reembed::Work;
use crate::{Error, Memory};
use foldback_core::{Embedder, Scale};
use foldback_embedder::{Calibrated, Choice, LoadError, StaticEmbedder, WordsOnly};
use foldback_kv::{Batch, Key, Kv, Space};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The embedder that a store remembers as its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEmbedder {
    /// How it is found again.
    pub choice: Choice,
    /// Its model's id. Vectors of other ids are not compared with its own.
    pub model_id: String,
    /// The length of its vectors.
    pub dim: usize,
}

/// How many messages have the vectors of the memory's embedder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EmbeddingProgress {
    /// Messages that have them, or have nothing to embed.
    pub done: u64,
    /// All messages.
    pub messages: u64,
}

impl EmbeddingProgress {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.done >= self.messages
    }
}

/// [`StoreEmbedder`] as it is stored.
#[derive(Serialize, Deserialize)]
struct Record {
    choice: String,
    model_id: String,
    dim: u64,
}

/// The measured scales, by the models' ids.
type Scales = BTreeMap<String, Scale>;

/// Records of the whole store have the number of no todo.
const EMBEDDER: Key = Key { space: Space::Meta, todo: 0, n: 1 };
const SCALES: Key = Key { space: Space::Meta, todo: 0, n: 2 };

impl Memory {
    /// The embedder at work, on the scale that was measured for it in this store.
    #[must_use]
    pub fn embedder(&self) -> &dyn Embedder {
        self.shared.embedder.as_ref()
    }

    /// Why the store's own embedder is not at work, when it could not be loaded: the store is then
    /// searched by words, and messages are recorded without vectors, which are made when it can be
    /// loaded again.
    #[must_use]
    pub fn embedder_trouble(&self) -> Option<&LoadError> {
        self.shared.embedder_trouble.as_ref()
    }

    /// The embedder that the store remembers; `None` for a store that was never told of one, and
    /// uses the built-in one.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn store_embedder(&self) -> Result<Option<StoreEmbedder>, Error> {
        remembered(self.shared.kv.as_ref())
    }

    /// Makes this memory's embedder the store's own, found again by `choice`. Vectors of messages
    /// that have others are made again by a thread of this memory's, and after it by whoever opens
    /// the store for writing with this embedder; [`reembed`](Self::reembed) waits for that. Searches
    /// go on meanwhile, by words and by the vectors that are of the embedder that asks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn choose_embedder(&self, choice: &Choice) -> Result<(), Error> {
        let embedder = self.embedder();
        let record = Record {
            choice: choice.to_string(),
            model_id: embedder.model_id().to_owned(),
            dim: embedder.dim() as u64,
        };
        put(self.shared.kv.as_ref(), EMBEDDER, &record)?;
        self.reembed_in_background()
    }

    /// Keeps a scale that was measured for a model. It is used when a store is opened with it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_scale(&self, model_id: &str, scale: Scale) -> Result<(), Error> {
        let kv = self.shared.kv.as_ref();
        let mut scales: Scales = get(kv, SCALES)?.unwrap_or_default();
        scales.insert(model_id.to_owned(), scale);
        put(kv, SCALES, &scales)
    }

    /// The scale that was measured for a model, if one was.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn scale(&self, model_id: &str) -> Result<Option<Scale>, Error> {
        scale_of(self.shared.kv.as_ref(), model_id)
    }

    /// How many messages have the vectors of this memory's embedder, or of the store's own where that
    /// cannot be loaded.
    ///
    /// # Errors
    /// When the store fails.
    pub fn embedding_progress(&self) -> Result<EmbeddingProgress, Error> {
        self.work().progress()
    }

    /// Makes the vectors of all messages that have others than this memory's embedder's, when it is
    /// the store's own, and returns when that is done, by whatever process. `report` is called
    /// between batches. It ends early when another embedder is chosen meanwhile.
    ///
    /// # Errors
    /// When the store or the embedder fails; what is done stays done.
    pub fn reembed(
        &self,
        report: impl FnMut(EmbeddingProgress),
    ) -> Result<EmbeddingProgress, Error> {
        self.work().run_to_the_end(report)
    }

    pub(crate) fn reembed_in_background(&self) -> Result<(), Error> {
        self.shared.reembedder.start(self.work())
    }

    fn work(&self) -> Work {
        let shared = &self.shared;
        let own = shared.embedder_trouble.as_ref().and_then(|_| self.store_embedder().ok()?);
        Work {
            model_id: own.map_or_else(|| shared.embedder.model_id().to_owned(), |own| own.model_id),
            kv: shared.kv.clone(),
            registry: shared.registry.clone(),
            blocks: shared.blocks.clone(),
            payloads: shared.payloads.clone(),
            embedder: shared.embedder.clone(),
            lock: shared.dir.as_ref().map(|dir| dir.join("embedding.lock")),
        }
    }
}

/// The embedder that a memory works with: the one that was given, else the store's own, else the
/// built-in one; on the scale that was measured for it.
pub(crate) fn embedder_of(
    kv: &dyn Kv,
    given: Option<Arc<dyn Embedder>>,
) -> Result<(Arc<dyn Embedder>, Option<LoadError>), Error> {
    let own = || match remembered(kv) {
        Ok(None) => Ok(Arc::new(StaticEmbedder::new()) as Arc<dyn Embedder>),
        Ok(Some(own)) => own.load(),
        Err(error) => Err(LoadError::Unknown { what: error.to_string() }),
    };
    let (embedder, trouble) = match given.map_or_else(own, Ok) {
        Ok(embedder) => (embedder, None),
        Err(error) => (Arc::new(WordsOnly) as Arc<dyn Embedder>, Some(error)),
    };
    // Without the measured scale the model's own serves.
    let scale = match scale_of(kv, embedder.model_id()) {
        Err(Error::Kv(foldback_kv::Error::Corrupt { .. })) => None,
        scale => scale?,
    };
    Ok(match scale {
        Some(scale) => (Arc::new(Calibrated::new(embedder, scale)), trouble),
        None => (embedder, trouble),
    })
}

pub(crate) fn remembered(kv: &dyn Kv) -> Result<Option<StoreEmbedder>, Error> {
    let record: Option<Record> = get(kv, EMBEDDER)?;
    Ok(record.map(|Record { choice, model_id, dim }| StoreEmbedder {
        choice: choice.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}),
        model_id,
        dim: usize::try_from(dim).unwrap_or(0),
    }))
}

impl StoreEmbedder {
    /// Loads the embedder, and checks that it is still the same.
    fn load(&self) -> Result<Arc<dyn Embedder>, LoadError> {
        let embedder = self.choice.load()?;
        if embedder.model_id() == self.model_id || self.choice == Choice::BuiltIn {
            return Ok(embedder);
        }
        Err(LoadError::Changed {
            model: self.choice.to_string(),
            expected: self.model_id.clone(),
            found: embedder.model_id().to_owned(),
        })
    }
}

fn scale_of(kv: &dyn Kv, model_id: &str) -> Result<Option<Scale>, Error> {
    let scales: Scales = get(kv, SCALES)?.unwrap_or_default();
    Ok(scales.get(model_id).copied())
}

fn get<T: DeserializeOwned>(kv: &dyn Kv, key: Key) -> Result<Option<T>, Error> {
    let Some(bytes) = kv.get(key)? else { return Ok(None) };
    let read = rmp_serde::from_slice(&bytes);
    read.map(Some).map_err(|error| {
        let detail = format!("it cannot be read: {error}");
        Error::Kv(foldback_kv::Error::Corrupt { key, detail })
    })
}

fn put<T: Serialize>(kv: &dyn Kv, key: Key, value: &T) -> Result<(), Error> {
    let bytes = rmp_serde::to_vec_named(value)
        .map_err(|_| Error::Internal("a record of the store's embedder has no bytes"))?;
    Ok(kv.commit(Batch { put: vec![(key, bytes)], ..Batch::default() })?)
}
