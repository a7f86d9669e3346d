//! The path that was likely meant by one that leads to nothing.

use super::{Place, open_folder};
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// How alike two names are at least, without their extensions: the share of the characters in place.
const ALIKE: f64 = 0.6;

/// Comparing takes time in proportion to both lengths: longer names, in characters, are not compared.
const LONGEST: usize = 64;

/// Folders of more entries are not looked through.
const MOST: usize = 1_000;

impl Place<'_> {
    /// The path that was likely meant, where this one leads to nothing: a name in it that is not there
    /// gives way to the one that is most like it, if that leads to something.
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

/// A path, and what is behind it, if anything.
fn below(path: &Path, behind: &Path) -> PathBuf {
    if behind.as_os_str().is_empty() { path.to_owned() } else { path.join(behind) }
}

/// How much a name is like another, and how much its extension, in thousandths; nothing where the names
/// are too unlike for one to be meant by the other.
fn likeness(name: &str, other: &str) -> Option<(u32, u32)> {
    let (name, other) = (Path::new(name), Path::new(other));
    let stems = share(name.file_stem(), other.file_stem()).filter(|share| *share >= ALIKE)?;
    let extensions = share(name.extension(), other.extension()).unwrap_or_default();
    let thousandths = |share: f64| (share * 1_000.0) as u32;
    Some((thousandths(stems), thousandths(extensions)))
}

/// The share of the characters that two parts of names have in place; nothing where one is too long, or
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
