//! From hidden states to int8 rows.

use anyhow::{Result, bail};

use crate::principal::principal_directions;

/// How many principal directions are kept.
pub(crate) const DIM: usize = 256;

/// `a` of the weight `a / (a + p)` (Arora, Liang, Ma 2017, "A simple but tough-to-beat baseline
/// for sentence embeddings").
const SIF_A: f64 = 1e-4;

const MAGIC: &[u8; 8] = b"FBSTATIC";
const VERSION: u32 = 1;
const HEADER: usize = 24;

/// The table as it is written: a header of 24 bytes, then `vocabulary * 256` signed bytes.
///
/// `ids` are the pieces that have a row, `states` their hidden states; every other row is zero.
pub(crate) fn build(vocabulary: usize, ids: &[u32], states: &[Vec<f32>]) -> Vec<u8> {
    let mut rows: Vec<Vec<f64>> =
        states.iter().map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect();
    let directions = principal_directions(&mut rows, DIM);

    // The frequency of a piece is not known; the vocabulary is ordered by it, nearly, so that the
    // usual stand-in is Zipf's law over the ids.
    let harmonic: f64 = (0..vocabulary).map(|rank| 1.0 / (rank as f64 + 1.0)).sum();
    let projected: Vec<Vec<f64>> = rows
        .iter()
        .zip(ids)
        .map(|(row, &id)| {
            let p = 1.0 / ((f64::from(id) + 1.0) * harmonic);
            let weight = SIF_A / (SIF_A + p);
            directions
                .iter()
                .map(|d| weight * d.iter().zip(row).map(|(a, b)| a * b).sum::<f64>())
                .collect()
        })
        .collect();

    let largest = projected.iter().flatten().fold(0.0f64, |max, value| max.max(value.abs()));
    let scale = largest / 127.0;
    let mut bytes = Vec::with_capacity(HEADER + vocabulary * DIM);
    bytes.extend_from_slice(MAGIC);
    for field in [VERSION, vocabulary as u32, DIM as u32] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(&(scale as f32).to_le_bytes());
    bytes.resize(HEADER + vocabulary * DIM, 0);
    for (row, &id) in projected.iter().zip(ids) {
        let start = HEADER + id as usize * DIM;
        for (cell, value) in bytes[start..start + DIM].iter_mut().zip(row) {
            *cell = ((value / scale).round() as i8).cast_unsigned();
        }
    }
    bytes
}

/// The largest difference between two tables, in int8 steps.
pub(crate) fn steps_apart(a: &[u8], b: &[u8]) -> Result<u8> {
    if a.len() != b.len() || a.get(..20) != b.get(..20) {
        bail!("the two tables differ in shape");
    }
    let apart = |(&x, &y): (&u8, &u8)| x.cast_signed().abs_diff(y.cast_signed());
    Ok(a.iter().zip(b).skip(HEADER).map(apart).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_state_are_zero_and_the_header_tells_the_shape() {
        let states: Vec<Vec<f32>> = (0..5u8).map(|i| vec![f32::from(i), 1.0, 0.5]).collect();
        let table = build(8, &[2, 3, 4, 5, 6], &states);
        assert_eq!(&table[..8], MAGIC);
        assert_eq!(table[12..20], [8, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(table.len(), HEADER + 8 * DIM);
        assert!(table[HEADER..HEADER + 2 * DIM].iter().all(|&b| b == 0));
        assert!(table[HEADER + 2 * DIM..].iter().any(|&b| b.cast_signed() == -127 || b == 127));
    }

    #[test]
    fn steps_are_counted_over_signs() {
        let states: Vec<Vec<f32>> = (0..3u8).map(|i| vec![f32::from(i), 1.0]).collect();
        let table = build(3, &[0, 1, 2], &states);
        let mut other = table.clone();
        other[HEADER + 300] = 1;
        let was = table[HEADER + 300].cast_signed();
        assert_eq!(steps_apart(&table, &other).unwrap(), was.abs_diff(1));
        assert!(steps_apart(&table, &other[..40]).is_err());
    }
}
