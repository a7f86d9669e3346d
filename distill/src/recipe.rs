//! The page that stands beside the table.

use crate::wheel::{Wheel, sha256_hex};

/// `RECIPE.md` for these outputs. `files` are the texts: path, SHA-256, number of passages.
pub(crate) fn recipe(
    wheel: &Wheel,
    files: &[(&'static str, String, usize)],
    table: &[u8],
    vocabulary: &[u8],
) -> String {
    let passages: usize = files.iter().map(|file| file.2).sum();
    let files: Vec<String> = files
        .iter()
        .map(|(path, hash, passages)| format!("| `{path}` | {passages} | `{hash}` |"))
        .collect();
    include_str!("recipe.md")
        .replace("{WHEEL_SHA256}", &wheel.sha256)
        .replace("{WHEEL_BLAKE3}", &wheel.blake3)
        .replace("{TABLE_ROW}", &row(crate::TABLE, table))
        .replace("{VOCABULARY_ROW}", &row(crate::VOCABULARY, vocabulary))
        .replace("{PASSAGES}", &passages.to_string())
        .replace("{FILE_ROWS}", &files.join("\n"))
}

/// `RECIPE-CJK.md` for these outputs.
pub(crate) fn of_cjk(wheel: &Wheel, table: &[u8], units: &[u8]) -> String {
    include_str!("recipe-cjk.md")
        .replace("{WHEEL_SHA256}", &wheel.sha256)
        .replace("{WHEEL_BLAKE3}", &wheel.blake3)
        .replace("{TABLE_ROW}", &row(crate::CJK_TABLE, table))
        .replace("{UNITS_ROW}", &row(crate::CJK_UNITS, units))
}

/// The row of a file in a table of hashes.
fn row(name: &str, bytes: &[u8]) -> String {
    format!("| `{name}` | `{}` | `{}` |", sha256_hex(bytes), blake3::hash(bytes).to_hex())
}
