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
const MOST: usize = 10_000;

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
    let plain = |part: Option<&OsStr>| -> String {
        let part = part.and_then(OsStr::to_str).unwrap_or_default();
        part.nfc().flat_map(char::to_lowercase).take(LONGEST + 1).collect()
    };
    let (name, other) = (Path::new(name), Path::new(other));
    let alike = |one: String, other: String| {
        let is_long = [&one, &other].into_iter().any(|part| part.chars().count() > LONGEST);
        (!is_long).then(|| strsim::normalized_damerau_levenshtein(&one, &other))
    };
    let stems = alike(plain(name.file_stem()), plain(other.file_stem()))?;
    let extensions = alike(plain(name.extension()), plain(other.extension()))?;
    let thousandths = |share: f64| (share * 1_000.0) as u32;
    (stems >= ALIKE).then(|| (thousandths(stems), thousandths(extensions)))
}
