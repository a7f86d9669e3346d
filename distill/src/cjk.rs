//! The rows of Chinese, Japanese and Korean: more rows in the space of a table that is there.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use foldback_core::script::{is_hangul, is_ideograph, is_ideograph_mark, is_kana};

use crate::e5::{E5, WORD_MARK};
use crate::matrix::{Matrix, to_unit};

/// How strongly the map from the teacher's space is held to be small (ridge regression).
const RIDGE: f64 = 3.0;

/// `a` of the weight `a / (a + p)`.
const SIF_A: f64 = 3e-4;

/// How long a row is beside an English one of the same weight.
const LENGTH: f64 = 1.5;

/// The first piece of the vocabulary that is a word: digits and single letters stand before it.
const FIRST_WORD: usize = 1_996;

/// The number of English words that tie the two spaces together.
const ANCHORS: usize = 9_000;

/// A piece of the teacher's, without the mark of a word.
pub(crate) struct Unit {
    pub(crate) text: String,
    script: usize,
    /// How likely it is among those of its script.
    p: f64,
}

/// The pieces of the teacher that are letters of these scripts alone, in the order of their bytes.
pub(crate) fn units(e5: &E5) -> Vec<Unit> {
    let mut found: BTreeMap<&str, f64> = BTreeMap::new();
    for (piece, score) in e5.pieces.iter().zip(&e5.scores) {
        let text = piece.strip_prefix(WORD_MARK).unwrap_or(piece);
        if text.chars().any(is_letter) && text.chars().all(|c| is_letter(c) || is_ideograph_mark(c))
        {
            *found.entry(text).or_default() += f64::from(*score).exp();
        }
    }
    let mut units: Vec<Unit> = found
        .into_iter()
        .map(|(text, p)| Unit { text: text.to_owned(), script: script(text), p })
        .collect();
    for script in 0..SCRIPTS {
        let sum: f64 = units.iter().filter(|unit| unit.script == script).map(|unit| unit.p).sum();
        units.iter_mut().filter(|unit| unit.script == script).for_each(|unit| unit.p /= sum);
    }
    units
}

/// English words and their places in the vocabulary, the commonest first.
pub(crate) fn anchors<'p>(pieces: &[&'p str]) -> Vec<(usize, &'p str)> {
    let words = pieces.iter().copied().enumerate().skip(FIRST_WORD);
    let is_word = |word: &str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.filter(|(_, word)| is_word(word)).take(ANCHORS).collect()
}

/// A row for each of `units`, in steps of the scale of `english`, the table's rows. `taught` are the
/// teacher's vectors of the units, `taught_anchors` those of the anchors, whose rows are `anchors`.
pub(crate) fn rows(
    units: &[Unit],
    taught: &[Vec<f32>],
    anchors: &[(usize, &str)],
    taught_anchors: &[Vec<f32>],
    english: &Matrix,
) -> Result<Matrix> {
    let from = centred(taught_anchors, &vec![0; anchors.len()]);
    let scripts: Vec<usize> = units.iter().map(|unit| unit.script).collect();
    let (to, lengths): (Vec<Vec<f32>>, Vec<f64>) = anchors
        .iter()
        .map(|&(id, _)| {
            let mut row = english.row(id).to_vec();
            let length = to_unit(&mut row);
            (row, f64::from(length))
        })
        .unzip();
    let map = ridge(&from, &to).context("the anchors do not span the teacher's space")?;

    // How often an anchor is used is not known, but its place in the vocabulary follows from it.
    let zipf = |id: usize| 1.0 / ((id as f64 - 1_000.0 + 2.7) * (english_rows(english)).ln());
    let weight = |p: f64| SIF_A / (SIF_A + p);
    let usual = median(anchors.iter().map(|&(id, _)| weight(zipf(id))).collect());
    let size = LENGTH * median(lengths) / usual;

    let mut rows = Matrix::zeros(units.len(), english.width);
    for ((unit, vector), row) in units.iter().zip(centred(taught, &scripts)).zip(rows.rows_mut()) {
        for (value, along) in vector.iter().zip(&map) {
            row.iter_mut().zip(along).for_each(|(sum, a)| *sum += (value * a) as f32);
        }
        to_unit(row);
        row.iter_mut().for_each(|value| *value *= (size * weight(unit.p)) as f32);
    }
    for script in 0..SCRIPTS {
        take_off_mean(units, script, &mut rows);
    }
    rows.values.iter_mut().for_each(|value| *value = value.round().clamp(-127.0, 127.0));
    Ok(rows)
}

fn english_rows(english: &Matrix) -> f64 {
    (english.values.len() / english.width) as f64
}

/// Takes from each row of a script its part of the sum that running text of that script would have,
/// so that texts are not alike for being in one script.
fn take_off_mean(units: &[Unit], script: usize, rows: &mut Matrix) {
    let of_script: Vec<usize> = (0..units.len()).filter(|&at| units[at].script == script).collect();
    let mut sum = vec![0f64; rows.width];
    let mut mean_length = 0.0;
    let length = |row: &[f32]| row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    for &at in &of_script {
        let (p, row) = (units[at].p, rows.row(at));
        mean_length += p * length(row);
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += p * f64::from(*value));
    }
    for &at in &of_script {
        let row = rows.row_mut(at);
        let share = length(row) / mean_length;
        row.iter_mut().zip(&sum).for_each(|(value, sum)| *value -= (share * sum) as f32);
    }
}

/// The vectors without the mean of their script, of length 1.
fn centred(vectors: &[Vec<f32>], scripts: &[usize]) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> =
        vectors.iter().map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect();
    for script in 0..SCRIPTS {
        let mut of_script: Vec<&mut Vec<f64>> =
            rows.iter_mut().zip(scripts).filter(|(_, s)| **s == script).map(|(r, _)| r).collect();
        let count = of_script.len() as f64;
        let Some(width) = of_script.first().map(|row| row.len()) else { continue };
        for column in 0..width {
            let mean = of_script.iter().map(|row| row[column]).sum::<f64>() / count;
            of_script.iter_mut().for_each(|row| row[column] -= mean);
        }
    }
    for row in &mut rows {
        let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        row.iter_mut().for_each(|value| *value /= length);
    }
    rows
}

/// The map that brings `from` nearest to `to`: `(A'A + ridge)^-1 A'T`, by Cholesky's method, a row
/// for each value of `from`.
fn ridge(from: &[Vec<f64>], to: &[Vec<f32>]) -> Option<Vec<Vec<f64>>> {
    let n = from.first()?.len();
    let mut square = vec![vec![0.0; n]; n];
    let mut right = vec![vec![0.0; to.first()?.len()]; n];
    for (a, t) in from.iter().zip(to) {
        for (i, value) in a.iter().enumerate() {
            square[i].iter_mut().zip(a).for_each(|(sum, other)| *sum += value * other);
            right[i].iter_mut().zip(t).for_each(|(sum, other)| *sum += value * f64::from(*other));
        }
    }
    (0..n).for_each(|i| square[i][i] += RIDGE);
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| square[i][k] * square[j][k]).sum();
            let rest = square[i][j] - known;
            square[i][j] = if i == j { rest.sqrt() } else { rest / square[j][j] };
        }
    }
    for forwards in [true, false] {
        for step in 0..n {
            let i = if forwards { step } else { n - 1 - step };
            let mut row = right[i].clone();
            for k in if forwards { 0..i } else { i + 1..n } {
                let factor = if forwards { square[i][k] } else { square[k][i] };
                row.iter_mut().zip(&right[k]).for_each(|(sum, other)| *sum -= factor * other);
            }
            row.iter_mut().for_each(|value| *value /= square[i][i]);
            right[i] = row;
        }
    }
    Some(right)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const SCRIPTS: usize = 3;

/// Korean, Japanese or Chinese: a unit with kana in it is Japanese.
fn script(text: &str) -> usize {
    match text {
        text if text.chars().any(is_hangul) => 2,
        text if text.chars().any(is_kana) => 1,
        _ => 0,
    }
}

fn is_letter(c: char) -> bool {
    is_ideograph(c) || is_kana(c) || is_hangul(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_found_that_anchors_follow() {
        // Twice the first value, and the second one turned over, but for the ridge.
        let from = vec![vec![100.0, 0.0], vec![0.0, 100.0], vec![100.0, 100.0]];
        let to = vec![vec![200.0, 0.0], vec![0.0, -100.0], vec![200.0, -100.0]];
        let map = ridge(&from, &to).unwrap().concat();
        assert_eq!(map.len(), 4);
        for (found, expected) in map.iter().zip([2.0, 0.0, 0.0, -1.0]) {
            assert!((found - expected).abs() < 1e-3, "{map:?}");
        }
    }

    #[test]
    fn rows_of_running_text_cancel_out() {
        let unit = |text: &str, p| Unit { text: text.to_owned(), script: script(text), p };
        let units = [unit("单", 0.75), unit("货", 0.25), unit("한", 1.0)];
        let mut rows = Matrix { width: 2, values: vec![3.0, 4.0, 0.0, 5.0, 1.0, 1.0] };
        take_off_mean(&units, 0, &mut rows);
        let sum = |at: usize| 0.75 * rows.row(0)[at] + 0.25 * rows.row(1)[at];
        assert!(sum(0).abs() < 1e-6 && sum(1).abs() < 1e-6);
        assert_eq!(rows.row(2), [1.0, 1.0]);
        assert_eq!([script("订单"), script("出荷する"), script("포트")], [0, 1, 2]);
    }
}
