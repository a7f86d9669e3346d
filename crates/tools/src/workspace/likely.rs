//! The path that was likely meant when one does not exist.

use super::{Place, open_folder};
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// The least likeness of two names without their extensions: the share of the characters in place.
const ALIKE: f64 = 0.6;

/// The longest name, in characters, that is compared: comparing takes time proportional to both lengths.
const LONGEST: usize = 64;

/// The most entries of a folder that is searched.
const MOST: usize = 1_000;

impl Place<'_> {
    /// Returns the path that was likely meant when this one does not exist: a missing name in it is
    /// replaced by the one that is most like it, if the result exists.
    pub(super) fn likely(&self) -> Option<String> {
        let is_there = |path: &Path| self.root.dir.symlink_metadata(path).is_ok();
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !is_there(path);
        let missing = self.within.ancestors().take_while(is_missing).last()?;
        let (folder, name) = (missing.parent()?, missing.file_name()?.to_str()?);
        let behind = self.within.strip_prefix(missing).ok()?;
        let names = open_folder(&self.root.dir, folder).ok()?.entries().ok()?;
        let names: Vec<_> = names
            .take(MOST + 1)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        if names.len() > MOST {
            return None;
        }
        let leads_on = |name: &str| is_there(&below(&folder.join(name), behind));
        let ranked = names.iter().filter_map(|other| Some((likeness(name, other)?, other)));
        let (_, found) = ranked
            .filter(|(_, other)| leads_on(other))
            .max_by_key(|(likeness, other)| (*likeness, Reverse(*other)))?;
        let shown = Path::new(&self.shown).ancestors().nth(behind.components().count() + 1)?;
        Some(below(&shown.join(found), behind).display().to_string())
    }
}

/// Joins a path and the rest after it, if there is any.
fn below(path: &Path, behind: &Path) -> PathBuf {
    if behind.as_os_str().is_empty() { path.to_owned() } else { path.join(behind) }
}

/// Returns how much a name is like another, and its extension like the other's, in thousandths; nothing if
/// the names are too different for one to be meant by the other.
fn likeness(name: &str, other: &str) -> Option<(u32, u32)> {
    let (name, other) = (Path::new(name), Path::new(other));
    let stems = share(name.file_stem(), other.file_stem()).filter(|share| *share >= ALIKE)?;
    let extensions = share(name.extension(), other.extension()).unwrap_or_default();
    let thousandths = |share: f64| (share * 1_000.0) as u32;
    Some((thousandths(stems), thousandths(extensions)))
}

/// Returns the share of the characters that two parts of names have in place; nothing if one is too long, or
/// so much longer than the other that they cannot be alike.
fn share(one: Option<&OsStr>, other: Option<&OsStr>) -> Option<f64> {
    let plain = |part: Option<&OsStr>| -> Vec<char> {
        let part = part.and_then(OsStr::to_str).unwrap_or_default();
        part.nfc().flat_map(char::to_lowercase).take(LONGEST + 1).collect()
    };
    let (one, other) = (plain(one), plain(other));
    let (shorter, longer) = (one.len().min(other.len()), one.len().max(other.len()));
    let is_possible = longer <= LONGEST && shorter as f64 >= ALIKE * longer as f64;
    let (one, other) = (String::from_iter(one), String::from_iter(other));
    is_possible.then(|| strsim::normalized_damerau_levenshtein(&one, &other))
}
