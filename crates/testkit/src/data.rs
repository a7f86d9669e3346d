//! The folder of recorded conversations, for tests that measure on real ones.
//!
//! It is not part of the project. The environment variable `FOLDBACK_DATA` names it; otherwise it is
//! expected at `../shared/data` beside the workspace. A test that needs it begins with
//! [`skip_without_data!`](crate::skip_without_data), which says visibly that nothing was tested.

use foldback_transcript::{Conversation, read_file};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that hold conversations, in the order in which they are walked.
pub const FOLDERS: [&str; 4] = ["agent", "dialogue", "segmentation", "examples"];

/// Returns the folder, if there is one.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("FOLDBACK_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    folder.is_dir().then_some(folder)
}

/// Returns the files of some of the [`FOLDERS`] (all of them for an empty list), sorted within each.
/// Empty if the data are missing.
#[must_use]
pub fn files(folders: &[&str]) -> Vec<PathBuf> {
    let Some(root) = folder() else { return Vec::new() };
    let mut files = Vec::new();
    for folder in FOLDERS {
        if !folders.is_empty() && !folders.contains(&folder) {
            continue;
        }
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        let mut here: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.to_string_lossy();
                [".json", ".jsonl", ".jsonl.zst"].iter().any(|end| name.ends_with(end))
            })
            .collect();
        here.sort();
        files.extend(here);
    }
    files
}

/// Returns every conversation of some of the [`FOLDERS`] (all of them for an empty list), with the name
/// of its file, such as `agent/openhands.jsonl.zst`. `examples` repeats conversations of the others.
///
/// # Panics
/// The iterator panics when a file cannot be read.
pub fn conversations(folders: &[&str]) -> impl Iterator<Item = (String, Conversation)> {
    files(folders).into_iter().flat_map(|path| {
        let name = name(&path);
        file(&path).map(move |conversation| (name.clone(), conversation))
    })
}

/// Returns the conversations of one file.
///
/// # Panics
/// When the file cannot be read; the iterator panics when one of its lines cannot.
#[expect(clippy::panic, reason = "data that cannot be read end the test")]
pub fn file(path: &Path) -> impl Iterator<Item = Conversation> + use<> {
    let conversations = read_file(path).unwrap_or_else(|error| panic!("{error}"));
    conversations.map(|conversation| conversation.unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the name of a data file: its folder and its own name, as in `agent/openhands.jsonl.zst`.
#[must_use]
pub fn name(path: &Path) -> String {
    let last = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    format!("{}/{}", path.parent().map(last).unwrap_or_default(), last(path))
}

/// Ends a test with a visible message if the recorded conversations are missing.
#[macro_export]
macro_rules! skip_without_data {
    () => {
        if $crate::data::folder().is_none() {
            eprintln!(
                "SKIPPED {}: the recorded conversations are missing (set FOLDBACK_DATA to their folder)",
                module_path!()
            );
            return;
        }
    };
}
