//! The description of an index, and its comparison with the truth.

use super::Damage;
use crate::omission::Omission;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Changes whenever an index of an older program would answer differently: with the analysis of
/// texts, the files' formats, or the searched parts of a block.
pub(crate) const FORMAT: u32 = 9;

/// The payload of every commit to tantivy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    /// The todo's number in its store.
    pub(crate) todo: u32,
    /// The index holds the blocks 1 to this one.
    pub(crate) blocks: u32,
    /// How many terms they hold, counting repetitions.
    pub(crate) terms: u64,
    /// The passages of their payloads are numbered from 0 up to this.
    pub(crate) passages: u32,
    /// How many terms the passages hold, counting repetitions.
    pub(crate) passage_terms: u64,
    /// This many bytes of `vectors.i8` belong to the index; what follows them is left over from a
    /// write that was cut short.
    pub(crate) vector_bytes: u64,
    /// How often the todo's vectors had been replaced.
    pub(crate) generation: u32,
    /// The hash of the last block's record in the truth.
    pub(crate) anchor: u64,
    /// The parts of the blocks and their payloads that could not be read when they were indexed.
    pub(crate) omissions: Vec<Omission>,
    /// The hash of all the above.
    sum: u64,
}

/// The data of an index besides its blocks, as its [`Manifest`] counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) terms: u64,
    pub(crate) passages: u32,
    pub(crate) passage_terms: u64,
    pub(crate) vector_bytes: u64,
}

impl Manifest {
    pub(crate) fn new(
        todo: u32,
        blocks: u32,
        totals: Totals,
        (generation, anchor): (u32, u64),
        omissions: Vec<Omission>,
    ) -> Self {
        let Totals { terms, passages, passage_terms, vector_bytes } = totals;
        let mut manifest = Self {
            format: FORMAT,
            todo,
            blocks,
            terms,
            passages,
            passage_terms,
            vector_bytes,
            generation,
            anchor,
            omissions,
            sum: 0,
        };
        manifest.sum = manifest.hash();
        manifest
    }

    pub(crate) fn totals(&self) -> Totals {
        let Self { terms, passages, passage_terms, vector_bytes, .. } = *self;
        Totals { terms, passages, passage_terms, vector_bytes }
    }

    /// Returns the hash of a block's record, which ties the index to this truth and no other.
    pub(crate) fn anchor(record: &[u8]) -> u64 {
        xxh3_64(record)
    }

    pub(crate) fn write(&self) -> Result<String, Damage> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    pub(crate) fn read(payload: Option<&str>, todo: u32) -> Result<Self, Damage> {
        let payload = payload.ok_or("its commit carries no manifest")?;
        let manifest: Self = serde_json::from_str(payload)
            .map_err(|error| format!("its manifest cannot be read: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!("its format is {}, but {FORMAT} was expected", manifest.format));
        }
        if manifest.sum != manifest.hash() {
            return Err("the checksum of its manifest does not match".to_owned());
        }
        if manifest.todo != todo {
            return Err(format!("it belongs to todo number {}, not to {todo}", manifest.todo));
        }
        Ok(manifest)
    }

    fn hash(&self) -> u64 {
        let Self { format, todo, blocks, terms, passages, passage_terms, .. } = self;
        let Self { vector_bytes, generation, anchor, omissions, sum: _, .. } = self;
        let said = [u64::from(*format), u64::from(*todo), u64::from(*blocks), *terms];
        let held = [u64::from(*passages), *passage_terms, *vector_bytes];
        let truth = [u64::from(*generation), *anchor];
        let numbers = said.into_iter().chain(held).chain(truth);
        let mut all: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        for omission in omissions {
            all.extend(serde_json::to_vec(omission).unwrap_or_default());
        }
        xxh3_64(&all)
    }
}

/// The relation of an index to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It holds the first blocks of the truth.
    Fits,
    /// It holds more blocks than the truth: acknowledged blocks are lost.
    Ahead { index: u32, truth: u32 },
    /// Its last block differs from the truth's block of this number.
    Foreign { block: u32 },
    /// Its vectors are not those of the truth: they were replaced on another machine.
    Outdated,
}
