//! The table as it is written.

use anyhow::{Result, ensure};

use crate::matrix::Matrix;

const MAGIC: &[u8; 8] = b"FBSTATIC";
const VERSION: u32 = 1;
const HEADER: usize = 24;

/// A header of 24 bytes, then a signed byte for each value of `rows`.
pub(crate) fn bytes(rows: &Matrix) -> Vec<u8> {
    let largest = rows.values.iter().fold(0.0f32, |max, value| max.max(value.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    scaled(rows, scale, scale)
}

/// The same of rows that are divided by `step`, whose header tells `scale`.
pub(crate) fn scaled(rows: &Matrix, step: f32, scale: f32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + rows.values.len());
    bytes.extend_from_slice(MAGIC);
    for field in [VERSION, (rows.values.len() / rows.width) as u32, rows.width as u32] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(&scale.to_le_bytes());
    bytes.extend(rows.values.iter().map(|value| ((value / step).round() as i8).cast_unsigned()));
    bytes
}

/// The rows of a table, in steps of its scale.
pub(crate) fn rows(bytes: &[u8]) -> Result<Matrix> {
    let field = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map_or(0, u32::from_le_bytes) as usize
    };
    let (height, width) = (field(12), field(16));
    ensure!(
        bytes.starts_with(MAGIC) && width > 0 && bytes.len() == HEADER + height * width,
        "a table was expected: a header of {HEADER} bytes and the rows that it announces"
    );
    let values = bytes[HEADER..].iter().map(|byte| f32::from(byte.cast_signed())).collect();
    Ok(Matrix { width, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = bytes(&Matrix { width: 2, values: vec![0.0, -2.0, 1.0, 0.01, 2.0, 0.5] });
        assert_eq!(table[..8], *MAGIC);
        assert_eq!(table[12..20], [3, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(rows(&table).unwrap().values, [0.0, -127.0, 64.0, 1.0, 127.0, 32.0]);
        assert!(rows(&table[..26]).is_err());
        assert!(rows(b"no table").is_err());
    }
}
