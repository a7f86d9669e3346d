//! The stored form of a message's vectors.

use foldback_core::Vectors;
use serde::{Deserialize, Serialize};

/// The vectors of one message, and the model that made them.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageVectors {
    /// The model's id. Vectors of different ids are never compared.
    pub model_id: String,
    /// One row for each part of the message.
    pub vectors: Vectors,
}

/// Why bytes are not a record of vectors.
pub(crate) type Damage = String;

/// The record: half-precision rows, little-endian. This costs a unit vector of 256 numbers at most
/// 0.0003 of any cosine, and halves the space.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    model: &'a str,
    dim: u32,
    #[serde(with = "bytes")]
    rows: Vec<u8>,
}

/// Returns the record of these vectors.
///
/// # Errors
/// When a number is not finite or too large for half precision.
pub(crate) fn encode(model: &str, vectors: &Vectors) -> Result<Vec<u8>, Damage> {
    let mut rows = Vec::with_capacity(vectors.len() * vectors.dim() * 2);
    for value in vectors.rows().flatten() {
        if !value.is_finite() || value.abs() > 60_000.0 {
            return Err(format!("a vector holds {value}, which cannot be stored"));
        }
        rows.extend_from_slice(&to_half(*value).to_le_bytes());
    }
    let dim = u32::try_from(vectors.dim()).map_err(|_| "a vector is too long".to_owned())?;
    rmp_serde::to_vec(&Record { model, dim, rows }).map_err(|error| error.to_string())
}

/// Returns the vectors of a record.
pub(crate) fn decode(bytes: &[u8]) -> Result<MessageVectors, Damage> {
    let record: Record<'_> = rmp_serde::from_slice(bytes).map_err(|error| error.to_string())?;
    let values = record
        .rows
        .as_chunks::<2>()
        .0
        .iter()
        .map(|half| from_half(u16::from_le_bytes(*half)))
        .collect::<Vec<f32>>();
    if !record.rows.len().is_multiple_of(2) || values.iter().any(|value| !value.is_finite()) {
        return Err("its rows are not half-precision numbers".to_owned());
    }
    let vectors = Vectors::new(record.dim as usize, values)
        .ok_or_else(|| format!("its rows do not divide by its dimension {}", record.dim))?;
    Ok(MessageVectors { model_id: record.model.to_owned(), vectors })
}

mod bytes {
    use serde::de::{Deserializer, Visitor};
    use serde::ser::Serializer;
    use std::fmt;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

/// Returns the nearest half-precision number, ties to even (IEEE 754 binary16).
fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    let fraction = bits & 0x7f_ffff;
    if exponent >= 31 {
        return sign | 0x7c00;
    }
    let (kept, dropped, half) = if exponent > 0 {
        ((exponent as u32) << 10 | fraction >> 13, fraction & 0x1fff, 0x1000)
    } else if exponent > -11 {
        // Below the smallest normal number the leading one is written out.
        let shift = (14 - exponent) as u32;
        let whole = fraction | 0x80_0000;
        (whole >> shift, whole & ((1 << shift) - 1), 1 << (shift - 1))
    } else {
        return sign;
    };
    let up = dropped > half || (dropped == half && kept & 1 == 1);
    sign | (kept + u32::from(up)) as u16
}

fn from_half(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10 & 0x1f);
    let fraction = u32::from(half & 0x3ff);
    match exponent {
        0 => {
            let value = fraction as f32 * 2.0f32.powi(-24);
            if sign == 0 { value } else { -value }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_half_comes_back() {
        for half in 0..=u16::MAX {
            let value = from_half(half);
            if value.is_finite() {
                assert_eq!(to_half(value), half, "{value}");
            }
        }
        assert_eq!((to_half(1.0), to_half(-2.0), to_half(65504.0)), (0x3c00, 0xc000, 0x7bff));
    }

    #[test]
    fn damaged_records_are_told() {
        let vectors = Vectors::new(2, vec![0.6, 0.8]).unwrap();
        let bytes = encode("m", &vectors).unwrap();
        let back = decode(&bytes).unwrap();
        assert_eq!((back.model_id.as_str(), back.vectors.dim()), ("m", 2));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "{cut}");
        }
        let nan = Vectors::new(1, vec![f32::NAN]).unwrap();
        assert!(encode("m", &nan).is_err());
    }

    proptest! {
        #[test]
        fn a_number_moves_by_a_2048th_at_most(value in -1.0f32..1.0) {
            let back = from_half(to_half(value));
            prop_assert!((back - value).abs() <= value.abs() / 2048.0 + 1e-7);
        }
    }
}
