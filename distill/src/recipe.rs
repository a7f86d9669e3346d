//! The page that stands beside the table.

use crate::wheel::{Wheel, sha256_hex};

/// `RECIPE.md` for these outputs.
pub(crate) fn recipe(wheel: &Wheel, table: &[u8], vocabulary: &[u8]) -> String {
    let row = |name: &str, bytes: &[u8]| {
        format!("| `{name}` | `{}` | `{}` |", sha256_hex(bytes), blake3::hash(bytes).to_hex())
    };
    include_str!("recipe.md")
        .replace("{WHEEL_SHA256}", &wheel.sha256)
        .replace("{WHEEL_BLAKE3}", &wheel.blake3)
        .replace("{TABLE_ROW}", &row(crate::TABLE, table))
        .replace("{VOCABULARY_ROW}", &row(crate::VOCABULARY, vocabulary))
}
