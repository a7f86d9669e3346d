//! The page that stands beside the table.

use crate::parallel::{ENGLISH, SOURCES};
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

/// What was read for the rows of Chinese, Japanese and Korean.
pub(crate) struct Read {
    /// The pairs of each source that were taught.
    pub(crate) pairs: Vec<usize>,
    /// The SHA-256 of all pairs that were found.
    pub(crate) sha256: String,
}

/// `RECIPE-CJK.md` for these outputs.
pub(crate) fn of_cjk(wheel: &Wheel, read: &Read, table: &[u8], units: &[u8]) -> String {
    let sources = SOURCES.iter().zip(&read.pairs).map(|(source, pairs)| {
        let (repository, commit) = (source.repository, source.commit);
        let place = match (source.place(), source.english_repository()) {
            ("", None) => String::new(),
            ("", Some(english)) => format!("beside `{english}`"),
            (place, None) => format!("`{place}`"),
            (place, Some(english)) => format!("`{place}`, beside `{english}`"),
        };
        let (licence, language) = (source.licence, source.language);
        format!("| `{repository}` | {place} | `{commit}` | {licence} | {language:?} | {pairs} |")
    });
    let english = ENGLISH.map(|(repository, commit, licence)| {
        format!("| `{repository}` | | `{commit}` | {licence} | English | |")
    });
    let rows: Vec<String> = sources.chain(english).collect();
    include_str!("recipe-cjk.md")
        .replace("{WHEEL_SHA256}", &wheel.sha256)
        .replace("{WHEEL_BLAKE3}", &wheel.blake3)
        .replace("{TABLE_ROW}", &row(crate::CJK_TABLE, table))
        .replace("{UNITS_ROW}", &row(crate::CJK_UNITS, units))
        .replace("{SOURCE_ROWS}", &rows.join("\n"))
        .replace("{PAIRS}", &read.pairs.iter().sum::<usize>().to_string())
        .replace("{PAIRS_SHA256}", &read.sha256)
}

/// The row of a file in a table of hashes.
fn row(name: &str, bytes: &[u8]) -> String {
    format!("| `{name}` | `{}` | `{}` |", sha256_hex(bytes), blake3::hash(bytes).to_hex())
}
