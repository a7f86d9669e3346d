//! Reads the file beside the log of a Claude Code agent: which kind it is, and who called it.

use crate::Limits;
use crate::Place;
use crate::record::{ROOM, object_of};
use crate::scan::check_depth;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of it is read at most, in bytes; it is a few short texts.
const MOST: u64 = 1 << 16;

/// Returns the JSON object in `agent-7.meta.json`, for the file `agent-7.jsonl` or
/// `agent-7.jsonl.zst` beside it; `None` if there is none.
pub(crate) fn beside(path: &Path, limits: &Limits) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let file = path.with_file_name(format!("{stem}.meta.json"));
    if !stem.starts_with("agent-") || !file.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(&file).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    let text = text.trim();
    let place = Place { file: file.display().to_string(), line: 1 };
    check_depth(text, &place, &limits.without_depth(ROOM)).ok()?;
    object_of(text).map(|_| text.to_owned())
}
