//! Recorded conversations, if they are available.

use std::path::PathBuf;

use serde_json::Value;

/// Returns the folder of recorded conversations: `FOLDBACK_DATA`, or `shared/data` beside the
/// workspace. Reports when it is absent, so that a test which proved nothing does not look as if it
/// had.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("FOLDBACK_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED {test}: no conversations at {}; set FOLDBACK_DATA", folder.display());
    None
}

/// The documents of a JSON Lines file, compressed or not, or of a plain JSON file.
pub(crate) fn documents(path: &std::path::Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let name = path.to_str().unwrap();
    let text = if name.ends_with(".zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes };
    if name.ends_with(".json") {
        return vec![serde_json::from_slice(&text).unwrap()];
    }
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// All data files below `folder`, in order; what is sealed cannot be read.
#[cfg(feature = "fastembed")]
pub(crate) fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if [".json", ".jsonl", ".jsonl.zst"].iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the text of a message, and the arguments of its calls.
pub(crate) fn text(message: &Value) -> String {
    let mut text = message["content"].as_str().unwrap_or_default().to_owned();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        for part in [&call["function"]["name"], &call["function"]["arguments"]] {
            text.push('\n');
            text.push_str(part.as_str().unwrap_or_default());
        }
    }
    text
}

pub(crate) fn messages(conversation: &Value) -> &[Value] {
    conversation["messages"].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
