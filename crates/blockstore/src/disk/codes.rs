//! Vectors with one byte per number, for scanning.
//!
//! A row `v` is kept as `scale * codes` and the length of the remainder, so a scan gives every cosine with a bound on
//! its error, and only the few rows whose bounds overlap the best are read from the truth.
//!
//! The bound: the remainder of a row is a rounding error in each number, none larger than half a step. If these point
//! in all directions, their product with a unit vector that is independent of them has a standard deviation of their
//! length over the root of the dimension. The bound is six of these, or that of Cauchy and Schwarz if it is less; with
//! it the answer is the same as if all rows had been read.
//!
//! They do not point in all directions in a row of few different numbers, such as counts of words, in a row that is
//! zero nearly everywhere, or in one that a few numbers dominate: questions made in the same way share them. That is
//! detected when a row is written, and its length is stretched, up to the bound of Cauchy and Schwarz ([`error_of`]).

use super::Damage;
use crate::block_doc::Place;
use crate::dot::dot_mixed;
use std::ops::{Range, RangeInclusive};
use tantivy::directory::OwnedBytes;
use wide::bytemuck::cast_slice;
use xxhash_rust::xxh3::xxh3_64;

/// The rows of all models, in the order of their blocks.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    groups: Vec<CodeGroup>,
    /// Where each chunk of the file ends, and its checksum.
    pub(super) chunks: Vec<(u64, u64)>,
}

/// The rows of one model.
#[derive(Debug)]
pub(crate) struct CodeGroup {
    pub(crate) model_id: String,
    pub(crate) dim: usize,
    /// The codes, which stay in the file.
    runs: Vec<Run>,
    pub(super) columns: Columns,
}

/// The codes of consecutive rows: row after row, each a signed byte for each number.
#[derive(Debug)]
struct Run {
    first: usize,
    codes: OwnedBytes,
}

/// The data of each row besides its codes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Columns {
    scales: Vec<f32>,
    /// The length of a row's remainder, as [`error_of`] stretches it.
    errors: Vec<f32>,
    /// The number of each row's block, ascending.
    blocks: Vec<u32>,
    seqs: Vec<u64>,
    rows: Vec<u16>,
}

/// A question, ready to be compared with rows of codes.
#[derive(Debug)]
pub(crate) struct Query {
    codes: Vec<i16>,
    scale: f32,
    /// The length of the remainder.
    error: f32,
    /// The remainder of a row changes a cosine by at most this part of its length.
    spread: f32,
}

/// A cosine that was not computed exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) cosine: f32,
    /// The true cosine is at most this far away.
    pub(crate) error: f32,
}

/// Rounding in the sums of the truth's vectors and of the estimates stays below this.
const ROUNDING: f32 = 1e-5;

impl Codes {
    /// Returns the rows of this model.
    pub(crate) fn group(&self, model_id: &str, dim: usize) -> Option<&CodeGroup> {
        self.groups.iter().find(|group| group.model_id == model_id && group.dim == dim)
    }

    pub(crate) fn groups(&self) -> &[CodeGroup] {
        &self.groups
    }

    /// Returns how many bytes of the file they occupy.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.chunks.last().map_or(0, |(end, _)| *end)
    }

    /// Returns a hash of the file's first bytes, if these are whole chunks.
    pub(super) fn hash_of(&self, bytes: u64) -> Option<u64> {
        let count = self.chunks.partition_point(|(end, _)| *end <= bytes);
        let (chunks, _) = self.chunks.split_at_checked(count)?;
        let sums = chunks.iter().flat_map(|(_, sum)| sum.to_le_bytes()).collect::<Vec<u8>>();
        (chunks.last()?.0 == bytes).then(|| xxh3_64(&sums))
    }

    /// Returns about how much memory they use, without what the system keeps of the file.
    pub(crate) fn bytes(&self) -> usize {
        self.groups.iter().map(|group| group.len() * Columns::ROW_BYTES).sum()
    }

    pub(super) fn group_of(&mut self, model_id: &str, dim: usize) -> &mut CodeGroup {
        let same = |g: &CodeGroup| g.model_id == model_id && g.dim == dim;
        let place = self.groups.iter().position(same).unwrap_or_else(|| {
            let (runs, columns) = (Vec::new(), Columns::default());
            self.groups.push(CodeGroup { model_id: model_id.to_owned(), dim, runs, columns });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }
}

impl CodeGroup {
    /// Returns how many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(crate) fn block(&self, row: usize) -> u32 {
        self.columns.blocks.get(row).copied().unwrap_or(0)
    }

    pub(crate) fn place(&self, row: usize) -> Place {
        Place {
            seq: self.columns.seqs.get(row).copied().unwrap_or(0),
            row: self.columns.rows.get(row).copied().unwrap_or(0),
        }
    }

    /// Returns the codes of a row, each a signed byte.
    pub(crate) fn codes(&self, row: usize) -> &[u8] {
        let run = self.runs.partition_point(|run| run.first <= row).checked_sub(1);
        let Some(run) = run.and_then(|run| self.runs.get(run)) else { return &[] };
        let at = (row - run.first) * self.dim;
        run.codes.get(at..at + self.dim).unwrap_or_default()
    }

    /// Returns the rows of a block.
    pub(crate) fn rows_of(&self, block: u32) -> Range<usize> {
        let blocks = self.columns.blocks.as_slice();
        let start = blocks.partition_point(|b| *b < block);
        let len = blocks.get(start..).unwrap_or_default().partition_point(|b| *b == block);
        start..start + len
    }

    /// Returns the cosine of one row.
    pub(crate) fn estimate(&self, row: usize, query: &Query) -> Estimate {
        let scale = self.columns.scales.get(row).copied().unwrap_or(0.0);
        let error = self.columns.errors.get(row).copied().unwrap_or(0.0);
        query.estimate(self.codes(row), scale, error)
    }

    /// Hands the cosine of each row of a range to `sink`, with the number of its block.
    pub(crate) fn scan(
        &self,
        rows: Range<usize>,
        query: &Query,
        mut sink: impl FnMut(u32, Estimate),
    ) {
        let Columns { scales, errors, blocks, .. } = &self.columns;
        for run in &self.runs {
            let from = rows.start.max(run.first);
            let skip = (from - run.first).saturating_mul(self.dim);
            let codes = run.codes.get(skip..).unwrap_or_default().chunks_exact(self.dim.max(1));
            let until = rows.end.max(from);
            let columns =
                (scales.get(from..until), errors.get(from..until), blocks.get(from..until));
            let (Some(scales), Some(errors), Some(blocks)) = columns else { continue };
            for (((codes, scale), error), block) in codes.zip(scales).zip(errors).zip(blocks) {
                sink(*block, query.estimate(codes, *scale, *error));
            }
        }
    }

    pub(super) fn append(&mut self, columns: Columns, codes: OwnedBytes) {
        self.runs.push(Run { first: self.len(), codes });
        self.columns.append(columns);
    }
}

impl Columns {
    /// How many bytes they take for each row.
    pub(super) const ROW_BYTES: usize = 4 + 4 + 4 + 8 + 2;

    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(super) fn push(&mut self, scale: f32, error: f32, block: u32, place: Place) {
        self.scales.push(scale);
        self.errors.push(error);
        self.blocks.push(block);
        self.seqs.push(place.seq);
        self.rows.push(place.row);
    }

    fn append(&mut self, other: Self) {
        self.scales.extend(other.scales);
        self.errors.extend(other.errors);
        self.blocks.extend(other.blocks);
        self.seqs.extend(other.seqs);
        self.rows.extend(other.rows);
    }

    /// Column after column, each number little-endian.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.scales.iter().flat_map(|scale| scale.to_le_bytes()));
        out.extend(self.errors.iter().flat_map(|error| error.to_le_bytes()));
        out.extend(self.blocks.iter().flat_map(|block| block.to_le_bytes()));
        out.extend(self.seqs.iter().flat_map(|seq| seq.to_le_bytes()));
        out.extend(self.rows.iter().flat_map(|row| row.to_le_bytes()));
    }

    /// Reads what [`write`](Self::write) wrote of this many rows, and refuses it if a search could stumble over it. The
    /// rows are of blocks of this range.
    pub(super) fn read(
        bytes: &[u8],
        count: usize,
        numbers: RangeInclusive<u32>,
    ) -> Result<Self, Damage> {
        let mut rest = bytes;
        let scales = column(&mut rest, count, f32::from_le_bytes);
        let errors = column(&mut rest, count, f32::from_le_bytes);
        let blocks = column(&mut rest, count, u32::from_le_bytes);
        let seqs = column(&mut rest, count, u64::from_le_bytes);
        let rows = column(&mut rest, count, u16::from_le_bytes);
        let read = Self { scales, errors, blocks, seqs, rows };
        let even = rest.is_empty() && read.rows.len() == count;
        let sane = read.scales.iter().chain(&read.errors).all(|value| value.is_finite());
        let inside = read.blocks.is_sorted() && read.blocks.iter().all(|b| numbers.contains(b));
        if even && sane && inside { Ok(read) } else { Err("has invalid rows".to_owned()) }
    }
}

/// Takes the next column from the bytes.
fn column<const N: usize, T>(rest: &mut &[u8], count: usize, read: fn([u8; N]) -> T) -> Vec<T> {
    let (column, after) = rest.split_at_checked(count.saturating_mul(N)).unwrap_or_default();
    *rest = after;
    column.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect()
}

impl Query {
    /// Prepares a unit vector as a question.
    pub(crate) fn new(vector: &[f32]) -> Self {
        // As fine as the sum of products, at most 127 * most * length, fits into 32 bits.
        let most = (i32::MAX / 127 / vector.len().max(1) as i32).clamp(1, 32_767) as f32;
        let largest = vector.iter().fold(0.0f32, |max, value| max.max(value.abs()));
        let scale = if largest > 0.0 { largest / most } else { 1.0 };
        let mut left = 0.0f64;
        let codes = vector
            .iter()
            .map(|value| {
                let code = (value / scale).round().clamp(-most, most);
                left += f64::from(value - code * scale).powi(2);
                code as i16
            })
            .collect();
        let spread = spread(vector.len());
        Self { codes, scale, error: left.sqrt() as f32, spread }
    }

    /// Returns the cosine of a row of these codes. By the choice of the question's scale, nothing in the product can
    /// overflow.
    fn estimate(&self, codes: &[u8], scale: f32, error: f32) -> Estimate {
        // The remainder of the question is compared with a row of length 1 and a little more.
        let error = error * self.spread + self.error * (1.01 + error) + ROUNDING;
        let product = dot_mixed(cast_slice(codes), &self.codes);
        Estimate { cosine: product as f32 * scale * self.scale, error }
    }
}

/// Returns the most by which the remainder of a row changes a cosine, as a part of its length, if it points in all
/// directions.
fn spread(dim: usize) -> f32 {
    (6.0 / (dim.max(1) as f32).sqrt()).min(1.0)
}

/// Returns the length of the remainder of a row, number by number, stretched if it does not point in all directions, so
/// that its product with any question made in the same way stays below [`spread`] of it.
pub(super) fn error_of(row: &[f32], left: &[f32], scale: f32) -> f32 {
    let length = left.iter().map(|left| f64::from(*left).powi(2)).sum::<f64>().sqrt();
    // The remainders of equal numbers are equal, and count as one.
    let mut sizes: Vec<u32> = row.iter().map(|value| value.abs().to_bits()).collect();
    sizes.retain(|size| *size != 0);
    sizes.sort_unstable();
    let squares: usize = sizes.chunk_by(u32::eq).map(|equal| equal.len().pow(2)).sum();
    let stretch = (row.len() as f64 * squares as f64).sqrt() / sizes.len().max(1) as f64;
    // Numbers that are small beside a step are lost nearly whole, and point where the row points.
    let (mut along, mut square) = (0.0, 0.0);
    for (value, left) in row.iter().zip(left).filter(|(value, _)| value.abs() < 1.5 * scale) {
        along += f64::from(*value) * f64::from(*left);
        square += f64::from(*value).powi(2);
    }
    let spread = f64::from(spread(row.len()));
    let goes_along = along > 0.75 * spread * length * square.sqrt();
    let most = 1.0 / spread;
    (length * if goes_along { most } else { stretch.clamp(1.0, most) }) as f32
}

#[cfg(test)]
mod tests;
