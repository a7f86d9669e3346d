//! The stored records about a store's embedder.

use super::{EmbedderTrouble, EmbeddingFailures, StoreEmbedder};
use crate::Error;
use crate::error::Failure;
use foldback_core::{Embedder, Scale};
use foldback_embedder::{Calibrated, Choice, LoadError, StaticEmbedder, WordsOnly};
use foldback_kv::{Batch, Error as KvError, Key, Kv, Space};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// [`StoreEmbedder`] as it is stored.
#[derive(Serialize, Deserialize)]
struct Record {
    choice: String,
    model_id: String,
    dim: u64,
}

/// The measured scales, by the models' ids.
pub(super) type Scales = BTreeMap<String, Scale>;

/// Records of the whole store use the number that no todo has.
const EMBEDDER: Key = Key { space: Space::Meta, todo: 0, n: 1 };
pub(super) const SCALES: Key = Key { space: Space::Meta, todo: 0, n: 2 };
const FAILURES: Key = Key { space: Space::Meta, todo: 0, n: 3 };

/// All of these records.
pub(crate) const RECORDS: [Key; 3] = [EMBEDDER, SCALES, FAILURES];

/// Returns the embedder that a memory works with: the one that was given, else the store's own,
/// else the built-in one; on the scale that was measured for it.
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
        Ok(Some(scale)) => Failure::Scale { model: model.to_owned(), scale }.to_string(),
        Err(error) if is_damaged_record(&error) => {
            format!("the scale of {model} cannot be read: {error}")
        }
        Err(error) => return Err(error),
    };
    let trouble = trouble.or(Some(EmbedderTrouble::Scale { what: wrong }));
    Ok((embedder, trouble))
}

/// Remembers an embedder as the store's own, found again by `choice`.
pub(super) fn remember(kv: &dyn Kv, embedder: &dyn Embedder, choice: &Choice) -> Result<(), Error> {
    let record = Record {
        choice: choice.to_string(),
        model_id: embedder.model_id().to_owned(),
        dim: embedder.dim() as u64,
    };
    put(kv, EMBEDDER, &record)
}

/// Brings the record of a store that is opened for writing into line with the embedder in use: a new
/// built-in table replaces an older one, and an embedder that was given becomes the embedder of
/// a new store.
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
    remember(kv, embedder, &choice)
}

/// Returns the id of the store's own model, which is the built-in one unless another was chosen;
/// `None` if that cannot be read.
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

pub(super) fn scale_of(kv: &dyn Kv, model_id: &str) -> Result<Option<Scale>, Error> {
    let scales: Scales = get(kv, SCALES)?.unwrap_or_default();
    Ok(scales.get(model_id).copied())
}

/// Returns `None` for a damaged record.
pub(super) fn unless_damaged<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_damaged_record(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_damaged_record(error: &Error) -> bool {
    matches!(error.failure(), Failure::Kv(KvError::Corrupt { .. }))
}

pub(super) fn get<T: DeserializeOwned>(kv: &dyn Kv, key: Key) -> Result<Option<T>, Error> {
    let Some(bytes) = kv.get(key)? else { return Ok(None) };
    let read = rmp_serde::from_slice(&bytes);
    read.map(Some).map_err(|error| {
        let detail = format!("it cannot be read: {error}");
        KvError::Corrupt { key, detail }.into()
    })
}

pub(super) fn put<T: Serialize>(kv: &dyn Kv, key: Key, value: &T) -> Result<(), Error> {
    let bytes = rmp_serde::to_vec_named(value)
        .map_err(|_| Failure::Internal("a record of the store's embedder has no bytes"))?;
    Ok(kv.commit(Batch { put: vec![(key, bytes)], ..Batch::default() })?)
}
