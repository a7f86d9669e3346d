//! Dot products of vectors, with explicit vector instructions: they do not depend on the optimisation level.

use wide::{f32x8, i8x16, i16x16, i32x8};

/// Returns the dot product, summed in eight lanes, in an order that is the same on every machine.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut sum = f32x8::ZERO;
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        sum += f32x8::new(*a) * f32x8::new(*b);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let [l0, l1, l2, l3, l4, l5, l6, l7] = sum.to_array();
    ((l0 + l4) + (l1 + l5)) + ((l2 + l6) + (l3 + l7)) + rest
}

/// Returns the dot product of one-byte numbers, exact up to a length of 130,000.
pub(crate) fn dot_bytes(a: &[i8], b: &[i8]) -> i32 {
    let (a_chunks, a_rest) = a.as_chunks();
    let (b_chunks, b_rest) = b.as_chunks();
    let pairs = a_chunks.iter().zip(b_chunks).map(|(a, b)| (widened(*a), widened(*b)));
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b));
    sum_of_products(pairs) + rest.sum::<i32>()
}

/// Returns the dot product of one-byte and two-byte numbers. The sum must fit into 32 bits.
pub(crate) fn dot_mixed(a: &[i8], b: &[i16]) -> i32 {
    let (a_chunks, a_rest) = a.as_chunks();
    let (b_chunks, b_rest) = b.as_chunks();
    let pairs = a_chunks.iter().zip(b_chunks).map(|(a, b)| (widened(*a), i16x16::new(*b)));
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b));
    sum_of_products(pairs) + rest.sum::<i32>()
}

fn sum_of_products(pairs: impl Iterator<Item = (i16x16, i16x16)>) -> i32 {
    pairs.fold(i32x8::ZERO, |sum, (a, b)| sum + a.dot(b)).reduce_add()
}

fn widened(bytes: [i8; 16]) -> i16x16 {
    i16x16::from_i8x16(i8x16::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_and_words_are_multiplied_as_the_plain_loop_does(
            pairs in prop::collection::vec((any::<i8>(), -5_000i16..5_000), 0..300),
        ) {
            let (a, b): (Vec<i8>, Vec<i16>) = pairs.into_iter().unzip();
            let plain: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            prop_assert_eq!(dot_mixed(&a, &b), plain);
        }

        #[test]
        fn bytes_are_multiplied_as_the_plain_loop_does(
            pairs in prop::collection::vec((any::<i8>(), any::<i8>()), 0..300),
        ) {
            let (a, b): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let plain: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            prop_assert_eq!(dot_bytes(&a, &b), plain);
        }
    }
}
