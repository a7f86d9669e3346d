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

/// Why the embedder at work is not what it should be, and what follows from that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedderTrouble {
    /// The store's own embedder could not be loaded. Vectors of what is recorded meanwhile are made
    /// when it can be loaded again.
    #[error("{0}; this search or recording goes by words alone")]
    NotLoaded(#[from] LoadError),
    /// The scale that is stored for the embedder's model is none.
    #[error(
        "{what}; the model's own scale is used, and `foldback embedder calibrate` measures it again"
    )]
    Scale {
        /// What is wrong with it.
        what: String,
    },
    /// The store's own embedder is another one: it was when the store was opened, or was changed
    /// since.
    #[error(
        "the store's messages are embedded by {own}, and this process embeds by {at_work}: they are \
         not compared, and what this process records is embedded again by the next that opens the \
         store with its own embedder"
    )]
    NotOwn {
        /// The model of the embedder at work.
        at_work: String,
        /// The model of the store's own.
        own: String,
    },
}

/// What could not be embedded since the store's embedder was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingFailures {
    /// The model.
    pub model_id: String,
    /// How many messages it refused. They are found by their words.
    pub messages: u64,
    /// The last error, with the todo and the message where it is about one.
    pub last: String,
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
const FAILURES: Key = Key { space: Space::Meta, todo: 0, n: 3 };

impl Memory {
    /// The embedder at work, on the scale that was measured for it in this store.
    #[must_use]
    pub fn embedder(&self) -> &dyn Embedder {
        self.shared.embedder.as_ref()
    }

    /// Why the embedder at work is not what it should be; as it is now, so a process that has a store
    /// open for long may ask again.
    #[must_use]
    pub fn embedder_trouble(&self) -> Option<Arc<EmbedderTrouble>> {
        let at_work = self.embedder().model_id();
        let not_own = || {
            let own = own_model(self.shared.kv.as_ref()).ok()??;
            // Whoever asks for words alone gets what was asked for.
            let is_trouble = own != at_work && at_work != WordsOnly::MODEL_ID;
            is_trouble.then(|| EmbedderTrouble::NotOwn { at_work: at_work.to_owned(), own })
        };
        self.shared.embedder_trouble.clone().or_else(|| not_own().map(Arc::new))
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
        let kv = self.shared.kv.as_ref();
        put(kv, EMBEDDER, &record)?;
        put(kv, FAILURES, &EmbeddingFailures::default())?;
        if embedder.model_id() == WordsOnly::MODEL_ID {
            // There is nothing to make, and what was being replaced stays as it is.
            return self.work().abandon_soon();
        }
        self.reembed_in_background()
    }

    /// What could not be embedded since the embedder was chosen, if anything.
    ///
    /// # Errors
    /// When the store fails.
    pub fn embedding_failures(&self) -> Result<Option<EmbeddingFailures>, Error> {
        failures(self.shared.kv.as_ref())
    }

    /// Keeps a scale that was measured for a model. It is used when a store is opened with it.
    ///
    /// # Errors
    /// [`Error::Scale`] when it makes no sense; when the store fails.
    pub fn set_scale(&self, model_id: &str, scale: Scale) -> Result<(), Error> {
        if !scale.is_sound() {
            return Err(Error::Scale { model: model_id.to_owned(), scale });
        }
        let kv = self.shared.kv.as_ref();
        // What cannot be read is measured again.
        let mut scales: Scales = unless_damaged(get(kv, SCALES))?.flatten().unwrap_or_default();
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

    pub(crate) fn examine_vectors(&self, repair: bool) -> Result<Vec<String>, Error> {
        self.work().examine(repair)
    }

    fn work(&self) -> Work {
        let shared = &self.shared;
        let own = match shared.embedder_trouble.as_deref() {
            Some(EmbedderTrouble::NotLoaded(_)) => self.store_embedder().ok().flatten(),
            _ => None,
        };
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
) -> Result<(Arc<dyn Embedder>, Option<EmbedderTrouble>), Error> {
    let own = || match remembered(kv) {
        Ok(None) => Ok(Arc::new(StaticEmbedder::new()) as Arc<dyn Embedder>),
        Ok(Some(own)) => own.load(),
        Err(error) => Err(LoadError::Unknown { what: error.to_string() }),
    };
    let (embedder, trouble) = match given.map_or_else(own, Ok) {
        Ok(embedder) => (embedder, None),
        Err(error) => (Arc::new(WordsOnly) as Arc<dyn Embedder>, Some(error.into())),
    };
    let model = embedder.model_id();
    let wrong = match scale_of(kv, model) {
        Ok(None) => return Ok((embedder, trouble)),
        Ok(Some(scale)) if scale.is_sound() => {
            return Ok((Arc::new(Calibrated::new(embedder, scale)), trouble));
        }
        Ok(Some(scale)) => Error::Scale { model: model.to_owned(), scale }.to_string(),
        Err(error @ Error::Kv(foldback_kv::Error::Corrupt { .. })) => {
            format!("the scale of {model} cannot be read: {error}")
        }
        Err(error) => return Err(error),
    };
    let trouble = trouble.or(Some(EmbedderTrouble::Scale { what: wrong }));
    Ok((embedder, trouble))
}

/// Makes the record of a store that is opened for writing fit the embedder that is at work: a new
/// built-in table takes the place of an older one, and an embedder that was given becomes the own of
/// a store that is new.
pub(crate) fn adopt(kv: &dyn Kv, embedder: &dyn Embedder, is_new: bool) -> Result<(), Error> {
    let model = embedder.model_id();
    let is_built_in = model == StaticEmbedder::MODEL_ID;
    let choice = match unless_damaged(remembered(kv))? {
        Some(Some(own))
            if is_built_in && own.choice == Choice::BuiltIn && own.model_id != model =>
        {
            Choice::BuiltIn
        }
        Some(None) if is_new && !is_built_in && model != WordsOnly::MODEL_ID => {
            Choice::Custom(model.to_owned())
        }
        _ => return Ok(()),
    };
    let (model_id, dim) = (model.to_owned(), embedder.dim() as u64);
    put(kv, EMBEDDER, &Record { choice: choice.to_string(), model_id, dim })
}

/// The id of the store's own model, which is the built-in one where it was never told of another;
/// `None` where that cannot be read.
pub(crate) fn own_model(kv: &dyn Kv) -> Result<Option<String>, Error> {
    let own = unless_damaged(remembered(kv))?;
    Ok(own.map(|own| own.map_or_else(|| StaticEmbedder::MODEL_ID.to_owned(), |own| own.model_id)))
}

pub(crate) fn failures(kv: &dyn Kv) -> Result<Option<EmbeddingFailures>, Error> {
    let found: Option<EmbeddingFailures> = unless_damaged(get(kv, FAILURES))?.flatten();
    Ok(found.filter(|found| !found.last.is_empty()))
}

pub(crate) fn set_failures(kv: &dyn Kv, failures: &EmbeddingFailures) -> Result<(), Error> {
    put(kv, FAILURES, failures)
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

/// `None` for a record that is damaged.
fn unless_damaged<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Kv(foldback_kv::Error::Corrupt { .. })) => Ok(None),
        Err(error) => Err(error),
    }
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
