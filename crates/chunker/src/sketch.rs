//! A vector that is small enough to be stored with every message.

use serde::{Deserialize, Serialize};

/// A vector in four bits for each dimension. The cosine of two sketches is that of their vectors to
/// about one part in fifty, which a threshold of sameness does not notice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sketch(#[serde(with = "serde_bytes")] Vec<u8>);

/// Longer vectors are folded to this length, each dimension with a fixed sign, which keeps inner
/// products in expectation. It bounds the state.
const DIMENSIONS: usize = 384;

impl Sketch {
    /// Returns the sketch of a vector; `None` when it is all zeros or not finite.
    pub(crate) fn of(vector: &[f32]) -> Option<Self> {
        let mut folded = vec![0.0_f32; vector.len().min(DIMENSIONS)];
        for (lap, part) in vector.chunks(DIMENSIONS).enumerate() {
            for (at, (sum, value)) in folded.iter_mut().zip(part).enumerate() {
                *sum += if lap == 0 || sign(lap, at) { *value } else { -*value };
            }
        }
        let length = folded.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        // A step of 2.5 standard deviations in seven levels: rare outliers are clipped.
        let step = 2.5 * length / (folded.len() as f32).sqrt() / 7.0;
        let level = |value: &f32| ((value / step).round().clamp(-7.0, 7.0) as i8 + 8) as u8;
        Some(Self(
            folded
                .chunks(2)
                .map(|pair| {
                    let low = pair.get(1).map_or(8, level);
                    pair.first().map_or(8, level) << 4 | low
                })
                .collect(),
        ))
    }

    /// Returns the sketch of a run of `n` vectors, whose sketch this is, plus one more vector.
    pub(crate) fn joined(&self, n: u32, vector: &[f32]) -> Self {
        let Some(other) = Self::of(vector) else { return self.clone() };
        let length = |sketch: &Self| sketch.levels().map(|level| level * level).sum::<f32>().sqrt();
        let (own, others) = (n as f32 / length(self).max(1.0), 1.0 / length(&other).max(1.0));
        let sum: Vec<f32> =
            self.levels().zip(other.levels()).map(|(a, b)| a * own + b * others).collect();
        Self::of(&sum).unwrap_or(other)
    }

    fn levels(&self) -> impl Iterator<Item = f32> {
        self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|level| f32::from(level) - 8.0)
    }
}

fn sign(lap: usize, at: usize) -> bool {
    let mixed = (at as u32).wrapping_mul(0x9e37_79b9) ^ (lap as u32).wrapping_mul(0x85eb_ca6b);
    mixed.count_ones() & 1 == 0
}

/// Returns the cosine of the sums of two runs of sketches; `None` when one of them holds none.
pub(crate) fn similarity<'a>(
    left: impl IntoIterator<Item = &'a Sketch>,
    right: impl IntoIterator<Item = &'a Sketch>,
) -> Option<f32> {
    let (left, right) = (sum(left)?, sum(right)?);
    let dot: f32 = left.iter().zip(&right).map(|(a, b)| a * b).sum();
    let square = |vector: &[f32]| vector.iter().map(|value| value * value).sum::<f32>();
    let length = (square(&left) * square(&right)).sqrt();
    (length > 0.0).then(|| dot / length)
}

fn sum<'a>(sketches: impl IntoIterator<Item = &'a Sketch>) -> Option<Vec<f32>> {
    let mut sketches = sketches.into_iter();
    let mut sum: Vec<f32> = sketches.next()?.levels().collect();
    for sketch in sketches {
        for (value, level) in sum.iter_mut().zip(sketch.levels()) {
            *value += level;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: u32, dim: usize) -> Vec<f32> {
        let mut state = seed;
        (0..dim)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32 - 0.5
            })
            .collect()
    }

    #[test]
    fn cosines_survive_the_sketch() {
        for dim in [1, 2, 255, 256, 384, 1024] {
            let (a, b) = (vector(1, dim), vector(2, dim));
            let mixed: Vec<f32> = a.iter().zip(&b).map(|(a, b)| 0.7 * a + 0.3 * b).collect();
            let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
            let cosine = dot(&a, &mixed) / (dot(&a, &a) * dot(&mixed, &mixed)).sqrt();
            let (a, mixed) = (Sketch::of(&a).unwrap(), Sketch::of(&mixed).unwrap());
            let sketched = similarity([&a], [&mixed]).unwrap();
            let allowed = if dim > DIMENSIONS { 0.08 } else { 0.03 };
            assert!((cosine - sketched).abs() < allowed, "{dim}: {cosine} {sketched}");
        }
    }

    #[test]
    fn nothing_has_no_sketch() {
        assert_eq!(Sketch::of(&[]), None);
        assert_eq!(Sketch::of(&[0.0; 4]), None);
        assert_eq!(Sketch::of(&[f32::NAN, 1.0]), None);
        assert_eq!(similarity([], []), None);
    }
}
