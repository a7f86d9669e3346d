//! The rows of Chinese, Japanese and Korean in the built-in embedder's table, as data.
//!
//! [`UNITS`] lists pieces of words in these scripts; [`TABLE`] has a row for each, in the same space as the English
//! table of `foldback-embedder`. `assets/RECIPE-CJK.md` describes how both files were made, and under which licence.
//!
//! It is **not** an embedder: it cuts no text and adds up nothing. It is separate from `foldback-embedder` because a
//! package of both tables would exceed the 10 MB that crates.io accepts.
//!
//! ```
//! use foldback_cjk_table::{DIM, HEADER, ROWS, TABLE, UNITS};
//!
//! let number = UNITS.lines().position(|unit| unit == "天气").ok_or("no such unit")?;
//! let row = &TABLE[HEADER + number * DIM..][..DIM];
//! assert!(row.iter().any(|byte| byte.cast_signed() != 0));
//! assert_eq!(UNITS.lines().count(), ROWS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The number of units, and of rows.
pub const ROWS: usize = 25_178;

/// The length of a row, in signed bytes.
pub const DIM: usize = 256;

/// The bytes before the first row: 8 bytes magic, u32 version, u32 rows, u32 length of a row, f32 scale, all
/// little-endian.
pub const HEADER: usize = 24;

/// The table: a header and the rows, in the order of [`UNITS`].
pub const TABLE: &[u8; HEADER + ROWS * DIM] = include_bytes!("../assets/static-e5-cjk-256.bin");

/// The units, in the order of their bytes, one per line.
pub const UNITS: &str = include_str!("../assets/cjk-units.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_those_that_the_recipe_names() {
        let recipe = include_str!("../assets/RECIPE-CJK.md");
        for bytes in [&TABLE[..], UNITS.as_bytes()] {
            let hash = blake3::hash(bytes).to_hex();
            assert!(recipe.contains(hash.as_str()), "{hash}");
        }
    }
}
