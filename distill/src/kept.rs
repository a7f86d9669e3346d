//! The teacher's vectors, kept in files between runs, because they take the most time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::model::{Model, WIDTH};
use crate::wheel::sha256_hex;

/// The model, and where its vectors are kept.
pub(crate) struct Teacher {
    model: Model,
    folder: Option<PathBuf>,
}

impl Teacher {
    pub(crate) fn new(model: Model, folder: Option<PathBuf>) -> Self {
        Self { model, folder }
    }

    /// The model's vectors of `texts`.
    pub(crate) fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        self.kept(&texts.join("\n"), texts.len(), || self.model.embed(texts))
    }

    /// The model's states of the pieces `ids` alone.
    pub(crate) fn piece_states(&self, ids: &[u32]) -> Result<Vec<Vec<f32>>> {
        self.kept(&format!("pieces {ids:?}"), ids.len(), || self.model.piece_states(ids))
    }

    fn kept(
        &self,
        key: &str,
        count: usize,
        make: impl FnOnce() -> Result<Vec<Vec<f32>>>,
    ) -> Result<Vec<Vec<f32>>> {
        kept(self.folder.as_deref(), key, count, make)
    }
}

/// The `count` vectors in the file of `folder` that is named by the hash of `key`, or those that are
/// made now, which are then written there.
pub(crate) fn kept(
    folder: Option<&Path>,
    key: &str,
    count: usize,
    make: impl FnOnce() -> Result<Vec<Vec<f32>>>,
) -> Result<Vec<Vec<f32>>> {
    let file = folder.map(|folder| folder.join(sha256_hex(key.as_bytes())));
    if let Some(bytes) = file.as_ref().and_then(|file| std::fs::read(file).ok())
        && bytes.len() == count * WIDTH * 4
    {
        let values: Vec<f32> =
            bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
        return Ok(values.chunks(WIDTH).map(<[f32]>::to_vec).collect());
    }
    let vectors = make()?;
    if let Some(file) = file {
        let bytes: Vec<u8> =
            vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(vectors)
}
