//! Manages which embedder a store uses, and re-embeds its messages when that changes.

mod background;
mod due;
mod examine;
mod reembed;
mod stored;

pub(crate) use background::Reembedder;
pub(crate) use stored::{RECORDS, adopt, embedder_of};

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, Memory};
use foldback_core::{Embedder, Scale};
use foldback_embedder::{Choice, LoadError, WordsOnly};
use foldback_kv::Kv;
use reembed::Work;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stored::{
    SCALES, Scales, failures, get, own_model, put, remember, remembered, scale_of, set_failures,
    unless_damaged,
};

/// The embedder of a store: which it is, how good it is, and how many messages have its vectors.
#[derive(Clone, Copy)]
pub struct Embedding<'a> {
    memory: &'a Shared,
}

impl Memory {
    /// Returns the handle on the store's embedder and vectors.
    #[must_use]
    pub fn embedding(&self) -> Embedding<'_> {
        Embedding::of(&self.shared)
    }
}

impl<'a> Embedding<'a> {
    pub(crate) fn of(memory: &'a Shared) -> Self {
        Self { memory }
    }

    /// Returns the embedder in use, on the scale that was measured for it in this store.
    #[must_use]
    pub fn embedder(self) -> &'a dyn Embedder {
        self.memory.embedder.as_ref()
    }

    /// Returns why the embedder in use is not the one it should be. The answer is current, so a
    /// process that keeps a store open for long may ask again.
    #[must_use]
    pub fn trouble(self) -> Option<Arc<EmbedderTrouble>> {
        let at_work = self.embedder().model_id();
        let not_own = || {
            let own = own_model(self.kv()).ok()??;
            // A caller that chose words alone gets what it asked for.
            let is_trouble = own != at_work && at_work != WordsOnly::MODEL_ID;
            is_trouble.then(|| EmbedderTrouble::NotOwn { at_work: at_work.to_owned(), own })
        };
        self.memory.embedder_trouble.clone().or_else(|| not_own().map(Arc::new))
    }

    /// Returns the embedder that the store remembers as its own; `None` for a store that was never
    /// given one and uses the built-in one.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn own(self) -> Result<Option<StoreEmbedder>, Error> {
        remembered(self.kv())
    }

    /// Makes the embedder in use the store's own, found again by `choice`. A thread of this memory
    /// re-embeds messages that have other vectors, and after it any process that opens the store for
    /// writing with this embedder; [`reembed`](Self::reembed) waits for that. Searches continue
    /// meanwhile, by words and by the vectors of the searching embedder.
    ///
    /// # Errors
    /// When the store fails.
    pub fn choose(self, choice: &Choice) -> Result<(), Error> {
        remember(self.kv(), self.embedder(), choice)?;
        set_failures(self.kv(), &EmbeddingFailures::default())?;
        if self.embedder().model_id() == WordsOnly::MODEL_ID {
            // There is nothing to embed, and an unfinished replacement stays as it is.
            return self.work().abandon_soon();
        }
        self.reembed_in_background()
    }

    /// Returns what could not be embedded since the embedder was chosen, if anything.
    ///
    /// # Errors
    /// When the store fails.
    pub fn failures(self) -> Result<Option<EmbeddingFailures>, Error> {
        failures(self.kv())
    }

    /// Stores a scale that was measured for a model. It is used when the store is opened with that model.
    ///
    /// # Errors
    /// When the scale makes no sense ([`InvalidInput`](crate::ErrorKind::InvalidInput)), or the store fails.
    pub fn set_scale(self, model_id: &str, scale: Scale) -> Result<(), Error> {
        if !scale.is_sound() {
            return Err(Failure::Scale { model: model_id.to_owned(), scale }.into());
        }
        // A scale that cannot be read is measured again.
        let mut scales: Scales =
            unless_damaged(get(self.kv(), SCALES))?.flatten().unwrap_or_default();
        scales.insert(model_id.to_owned(), scale);
        put(self.kv(), SCALES, &scales)
    }

    /// Returns the scale that was measured for a model, if any.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn scale(self, model_id: &str) -> Result<Option<Scale>, Error> {
        scale_of(self.kv(), model_id)
    }

    /// Returns how many messages have the vectors of the embedder in use, or of the store's own if
    /// that cannot be loaded.
    ///
    /// # Errors
    /// When the store fails.
    pub fn progress(self) -> Result<EmbeddingProgress, Error> {
        self.work().progress()
    }

    /// Re-embeds all messages that do not have the vectors of the embedder in use, if it is the store's
    /// own, and returns when that is done, by whatever process. `report` is called between batches. It
    /// ends early when another embedder is chosen meanwhile.
    ///
    /// # Errors
    /// When the store or the embedder fails; finished work is kept.
    pub fn reembed(
        self,
        report: impl FnMut(EmbeddingProgress),
    ) -> Result<EmbeddingProgress, Error> {
        self.work().run_to_the_end(report)
    }

    pub(crate) fn reembed_in_background(self) -> Result<(), Error> {
        self.memory.reembedder.start(self.work())
    }

    /// Returns what is wrong with the vectors of the store's todos, as sentences; with `repair` it is repaired.
    pub(crate) fn examine(self, repair: bool) -> Result<Vec<String>, Error> {
        self.work().examine(repair)
    }

    fn kv(self) -> &'a dyn Kv {
        self.memory.kv.as_ref()
    }

    fn work(self) -> Work {
        let memory = self.memory;
        let own = match memory.embedder_trouble.as_deref() {
            Some(EmbedderTrouble::NotLoaded(_)) => self.own().ok().flatten(),
            _ => None,
        };
        Work {
            model_id: own.map_or_else(|| memory.embedder.model_id().to_owned(), |own| own.model_id),
            kv: memory.kv.clone(),
            registry: memory.registry.clone(),
            blocks: memory.blocks.clone(),
            all_todos: memory.all_todos.clone(),
            payloads: memory.payloads.clone(),
            embedder: memory.embedder.clone(),
            lock: memory.dir.as_ref().map(|dir| dir.join("embedding.lock")),
        }
    }
}

/// The embedder that a store remembers as its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEmbedder {
    /// How the embedder is found again.
    pub choice: Choice,
    /// Its model's id. Vectors with other ids are not compared with its own.
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
    /// Returns whether nothing is left to do.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.done >= self.messages
    }
}

/// The reason why the embedder in use is not the one it should be, and its consequences.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedderTrouble {
    /// The store's own embedder could not be loaded. What is recorded meanwhile is embedded when it
    /// can be loaded again.
    #[error("{0}; this search or recording uses words alone")]
    NotLoaded(#[from] LoadError),
    /// The scale that is stored for the embedder's model is not valid.
    #[error(
        "{what}; the model's own scale is used, and `foldback embedder calibrate` measures it again"
    )]
    Scale {
        /// What is wrong with it.
        what: String,
    },
    /// The store's own embedder is a different one: it already was when the store was opened, or
    /// has been changed since.
    #[error(
        "the store's messages are embedded by {own}, but this process embeds by {at_work}: they are \
         not compared, and the next process that opens the store with its own embedder embeds again \
         what this one records"
    )]
    NotOwn {
        /// The model of the embedder in use.
        at_work: String,
        /// The model of the store's own embedder.
        own: String,
    },
}

/// The messages that could not be embedded since the store's embedder was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingFailures {
    /// The model.
    pub model_id: String,
    /// How many messages it refused. They are found by their words.
    pub messages: u64,
    /// The last error, with the todo and the message if it concerns one.
    pub last: String,
}
