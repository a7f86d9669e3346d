//! Which files of a folder are read.

use super::{Input, cannot_read};
use crate::error::CliError;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The extensions of the files that are taken from a folder.
pub(super) const ENDINGS: [&str; 4] = [".jsonl", ".json", ".jsonl.zst", ".json.zst"];

/// The extension of a compressed file.
const PACKED: &str = ".zst";

/// The deepest level of subfolders that is read.
const DEPTH: usize = 16;

/// Adds the files of a folder and its subfolders, in order of name.
///
/// # Errors
/// When the folder cannot be read. A subfolder that cannot be read becomes an input that cannot be read.
pub(super) fn walk(
    dir: &Path,
    inputs: &mut Vec<Input>,
    notes: &mut Vec<String>,
) -> Result<(), CliError> {
    let entries = entries(dir).map_err(|source| cannot_read(dir, source))?;
    add(entries, DEPTH, inputs, notes);
    Ok(())
}

/// Returns the file of this path, or those of the folder; none if neither exists.
pub(crate) fn files_in(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let (mut inputs, mut notes) = (Vec::new(), Vec::new());
    // A missing folder may come back.
    let _ = walk(path, &mut inputs, &mut notes);
    let file = |input| match input {
        Input::File { path, .. } => Some(path),
        Input::Closed(_) | Input::Held { .. } => None,
    };
    inputs.into_iter().filter_map(file).collect()
}

fn entries(dir: &Path) -> std::io::Result<Vec<DirEntry>> {
    let mut entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

fn add(entries: Vec<DirEntry>, depth: usize, inputs: &mut Vec<Input>, notes: &mut Vec<String>) {
    for entry in &entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // The files that a Claude Code session log refers to are not conversations.
        if name.starts_with('.') || name == "tool-results" || name.ends_with(".meta.json") {
            continue;
        }
        // Links to folders are not followed: they could form a loop.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match self::entries(&path) {
                _ if depth == 0 => {}
                Ok(inside) => add(inside, depth - 1, inputs, notes),
                Err(_) => inputs.push(Input::Closed(path)),
            }
        } else if path.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let plain = name.strip_suffix(PACKED).map(|plain| path.with_file_name(plain));
            match plain.filter(|plain| plain.is_file()) {
                Some(plain) => notes.push(format!(
                    "{} is skipped, because {} is beside it",
                    path.display(),
                    plain.display()
                )),
                None => inputs.push(Input::File { path, in_folder: true }),
            }
        }
    }
}

/// Returns the name of a file without folder and extensions.
pub(crate) fn stem(file: &str) -> String {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| file.to_owned());
    let ending =
        ENDINGS.iter().filter_map(|ending| name.strip_suffix(ending)).min_by_key(|s| s.len());
    match ending.filter(|stem| !stem.is_empty()) {
        Some(stem) => stem.to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn a_conversation_without_id_is_called_as_its_file() {
        for (file, name) in [
            ("/data/run-7.jsonl.zst", "run-7"),
            ("chat.json", "chat"),
            ("会话.json", "会话"),
            ("log.txt", "log.txt"),
            ("standard input", "standard input"),
            (".json", ".json"),
        ] {
            assert_eq!(stem(file), name);
        }
    }
}
