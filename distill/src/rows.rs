//! From the teacher's vectors to the rows of the table.

use anyhow::Result;
use foldback_embedder::WordPiece;

use crate::kept::Teacher;
use crate::matrix::{Matrix, to_unit};
use crate::model::WIDTH;
use crate::principal::{center, principal_directions};
use crate::training::{Lessons, train};

/// The length of a row.
const DIM: usize = 256;

/// `a` of the weight `a / (a + p)` (Arora, Liang, Ma 2017, "A simple but tough-to-beat baseline
/// for sentence embeddings").
const SIF_A: f64 = 1e-4;

/// What stands for a word that cannot be spelt; it has no row, because it says nothing.
const UNKNOWN: u16 = 100;

/// What comes out of each seed is brought to one size and added.
const SEEDS: [u64; 2] = [1, 2];

/// The rows of the table, taught on `passages`.
pub(crate) fn taught(teacher: &Teacher, pieces: &[&str], passages: &[String]) -> Result<Matrix> {
    let mut vectors = in_f64(&teacher.vectors(passages)?);
    let directions = principal_directions(&mut vectors, DIM);
    let rows = first_rows(teacher, pieces, &directions)?;

    let tokens = WordPiece::new();
    let ids = |passage: &String| {
        let mut ids = tokens.ids(passage);
        ids.retain(|&id| id != UNKNOWN);
        ids
    };
    let mut lessons = Lessons {
        passages: passages.iter().map(ids).collect(),
        targets: Matrix::zeros(vectors.len(), DIM),
        teacher: Matrix::zeros(vectors.len(), WIDTH),
    };
    for (at, vector) in vectors.iter().enumerate() {
        project(vector, &directions, 1.0, lessons.targets.row_mut(at));
        to_unit(lessons.targets.row_mut(at));
        for (cell, value) in lessons.teacher.row_mut(at).iter_mut().zip(vector) {
            *cell = *value as f32;
        }
        to_unit(lessons.teacher.row_mut(at));
    }
    drop(vectors);

    let mut sum = Matrix::zeros(pieces.len(), DIM);
    for seed in SEEDS {
        let mut trained = train(rows.clone(), &lessons, seed);
        to_unit(&mut trained.values);
        sum.values.iter_mut().zip(&trained.values).for_each(|(sum, value)| *sum += value);
    }
    Ok(sum)
}

/// The rows that training begins with, and that the pieces keep which no passage has: the state of
/// each piece alone, in the teacher's directions, weighted by how rare the piece is, so that their
/// root mean square length is 1; for letters that the teacher does not know, a direction by chance.
fn first_rows(teacher: &Teacher, pieces: &[&str], directions: &[Vec<f64>]) -> Result<Matrix> {
    let ids: Vec<u32> = (0u32..).zip(pieces).filter(|(_, p)| !is_marker(p)).map(|e| e.0).collect();
    let mut states = in_f64(&teacher.piece_states(&ids)?);
    center(&mut states);

    // The frequency of a piece is not known; the vocabulary is ordered by it, nearly, so that the
    // usual stand-in is Zipf's law over the ids.
    let harmonic: f64 = (0..pieces.len()).map(|rank| 1.0 / (rank as f64 + 1.0)).sum();
    let mut rows = Matrix::zeros(pieces.len(), DIM);
    for (&id, state) in ids.iter().zip(&states) {
        let p = 1.0 / ((f64::from(id) + 1.0) * harmonic);
        project(state, directions, SIF_A / (SIF_A + p), rows.row_mut(id as usize));
    }
    to_unit(&mut rows.values);
    let size = (pieces.len() as f32).sqrt();
    rows.values.iter_mut().for_each(|value| *value *= size);
    for (piece, row) in pieces.iter().zip(rows.rows_mut()) {
        let letters = piece.trim_start_matches("##");
        if let Some(first) = letters.chars().next().filter(|&c| is_foreign(c)) {
            by_chance(letters, if is_hiragana(first) { 0.5 } else { 1.0 }, row);
        }
    }
    Ok(rows)
}

/// Writes a row of `length` whose signs are the bits of the hash of `letters`. The teacher was made
/// from English, and its states tell of the letters of other scripts that they are foreign, which
/// makes all such texts alike; with a direction of its own for each letter they are as alike as the
/// letters that they share.
fn by_chance(letters: &str, length: f32, row: &mut [f32]) {
    let hash = blake3::hash(letters.as_bytes());
    let step = length / (row.len() as f32).sqrt();
    for (at, cell) in row.iter_mut().enumerate() {
        let bit = hash.as_bytes()[at / 8 % blake3::OUT_LEN] >> (at % 8) & 1;
        *cell = if bit == 1 { step } else { -step };
    }
}

/// Whether a letter is of another script than Latin.
fn is_foreign(letter: char) -> bool {
    letter.is_alphabetic() && !matches!(letter, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

/// Whether a letter is of the script of Japanese particles and endings, which tell little.
fn is_hiragana(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{309f}')
}

/// Writes `weight` times the components of `vector` along `directions`.
fn project(vector: &[f64], directions: &[Vec<f64>], weight: f64, row: &mut [f32]) {
    for (cell, direction) in row.iter_mut().zip(directions) {
        let along: f64 = direction.iter().zip(vector).map(|(a, b)| a * b).sum();
        *cell = (weight * along) as f32;
    }
}

fn in_f64(rows: &[Vec<f32>]) -> Vec<Vec<f64>> {
    rows.iter().map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect()
}

/// Whether a piece is a special or an unused one: `[CLS]`, `[unused7]`.
fn is_marker(piece: &str) -> bool {
    piece.len() > 2 && piece.starts_with('[') && piece.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::dot;

    #[test]
    fn letters_of_other_scripts_have_rows_that_are_hardly_alike() {
        let row = |letters: &str, length| {
            let mut row = vec![0.0; DIM];
            by_chance(letters, length, &mut row);
            row
        };
        let (order, goods) = (row("单", 1.0), row("货", 1.0));
        assert_eq!(order, row("单", 1.0));
        assert!((dot(&order, &order) - 1.0).abs() < 1e-5);
        assert!(dot(&order, &goods).abs() < 0.3, "{}", dot(&order, &goods));
        assert!((dot(&row("の", 0.5), &row("の", 0.5)) - 0.25).abs() < 1e-5);
        assert!("货のコ한д".chars().all(is_foreign));
        assert!(!"aé7?。".chars().any(is_foreign));
        assert!(is_hiragana('の') && !is_hiragana('コ'));
    }

    #[test]
    fn special_and_unused_pieces_are_markers() {
        assert!(["[UNK]", "[unused7]"].into_iter().all(is_marker));
        assert!(!["[", "]", "a", "##ed"].into_iter().any(is_marker));
    }
}
