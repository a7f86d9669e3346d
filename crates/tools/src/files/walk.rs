//! A walk through the files of a folder.

use super::{Bounds, Cut};
use crate::workspace::Place;
use cap_std::fs::Dir;
use foldback_tool::ToolError;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file or folder that a walk visits.
pub(super) struct Entry<'a> {
    /// The folder it is in.
    pub(super) folder: &'a Dir,
    /// The path from where the walk began.
    pub(super) within: &'a Path,
    /// The path as a model reads it.
    pub(super) shown: String,
    pub(super) is_folder: bool,
    /// Whether it is a link, whatever its target.
    pub(super) is_link: bool,
}

/// The outcome of a walk.
#[derive(Default)]
pub(super) struct Walked {
    /// Why it ended early, if it did.
    pub(super) cut: Option<Cut>,
    /// How many files and folders the ignore files left out.
    pub(super) left_out: u64,
    /// How many folders could not be opened, or were too deep.
    pub(super) not_entered: u64,
}

/// The depth to which folders are entered; each holds a handle open.
const DEEPEST: usize = 64;

/// The files that say what to leave out; within one folder, the later file wins.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The most bytes of such a file that are read.
const LARGEST_IGNORE_FILE: u64 = 1 << 20;

/// Visits everything in a folder down to `depth` levels, in the order of the names, folders before their
/// contents. `.git` is left out, and so are the paths that ignore files name, unless `ignored` is set.
/// Links are not followed.
pub(super) fn walk(
    place: &Place<'_>,
    depth: usize,
    ignored: bool,
    bounds: &Bounds,
    each: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<Cut>,
) -> Result<Walked, ToolError> {
    let folder = place.open_folder()?;
    let path = place.path();
    let rules = place.above().iter().filter_map(|(path, dir)| ignores(path, dir)).collect();
    let shown = if place.shown == "." { String::new() } else { format!("{}/", place.shown) };
    let walked = Walked::default();
    let mut walk = Walk { bounds, shown, path, rules, ignored, each, walked };
    let end = walk.enter(&folder, Path::new(""), depth.min(DEEPEST), depth > DEEPEST);
    walk.walked.cut = end.break_value();
    Ok(walk.walked)
}

struct Walk<'a> {
    bounds: &'a Bounds,
    /// The path of the folder, as it is shown before the names of its contents.
    shown: String,
    path: PathBuf,
    /// The rules of the ignore files in the folders above.
    rules: Vec<Gitignore>,
    /// Whether the paths that they name are visited all the same.
    ignored: bool,
    each: &'a mut dyn FnMut(&Entry<'_>) -> ControlFlow<Cut>,
    walked: Walked,
}

impl Walked {
    /// Returns the note for a model on what was left out.
    pub(super) fn left_out(&self) -> Option<String> {
        let told =
            || format!("left out by ignore files: {}; ask with ignored: true", self.left_out);
        (self.left_out > 0).then(told)
    }
}

impl Walk<'_> {
    /// Visits the contents of a folder. `levels` is how many levels may still be entered; `is_bounded` says that
    /// the limit is not the caller's.
    fn enter(
        &mut self,
        folder: &Dir,
        within: &Path,
        levels: usize,
        is_bounded: bool,
    ) -> ControlFlow<Cut> {
        let Ok(entries) = folder.entries() else {
            self.walked.not_entered += 1;
            return ControlFlow::Continue(());
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let kind = entry.file_type().ok();
            let is_folder = kind.is_some_and(|kind| kind.is_dir());
            let is_link = kind.is_some_and(|kind| kind.is_symlink());
            found.push((entry.file_name(), is_folder, is_link));
            if let Some(cut) = self.bounds.over() {
                return ControlFlow::Break(cut);
            }
        }
        found.sort();
        let own = ignores(&self.path.join(within), folder);
        let is_told = own.is_some();
        self.rules.extend(own);
        for (name, is_folder, is_link) in found {
            let inner = within.join(&name);
            if is_folder && name == ".git" {
                continue;
            }
            if !self.ignored && self.is_ignored(&inner, is_folder) {
                self.walked.left_out += 1;
                continue;
            }
            if let Some(cut) = self.bounds.over() {
                return ControlFlow::Break(cut);
            }
            let shown = format!("{}{}", self.shown, inner.display());
            (self.each)(&Entry { folder, within: &inner, shown, is_folder, is_link })?;
            if !is_folder || (levels <= 1 && !is_bounded) {
                continue;
            }
            match folder.open_dir(&name) {
                Ok(next) if levels > 1 => self.enter(&next, &inner, levels - 1, is_bounded)?,
                _ => self.walked.not_entered += 1,
            }
        }
        if is_told {
            self.rules.pop();
        }
        ControlFlow::Continue(())
    }

    fn is_ignored(&self, within: &Path, is_folder: bool) -> bool {
        let path = self.path.join(within);
        let said = self.rules.iter().rev().map(|rules| rules.matched(&path, is_folder));
        said.into_iter().find(|said| !said.is_none()).is_some_and(|said| said.is_ignore())
    }
}

/// Returns the rules of the ignore files of a folder.
fn ignores(path: &Path, folder: &Dir) -> Option<Gitignore> {
    let mut rules = GitignoreBuilder::new(path);
    let mut is_told = false;
    for name in IGNORE_FILES {
        let Ok(file) = crate::workspace::open_file(folder, Path::new(name)) else { continue };
        let mut bytes = Vec::new();
        if file.take(LARGEST_IGNORE_FILE).read_to_end(&mut bytes).is_err() {
            continue;
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that is not a rule is skipped, as in git.
            is_told |= rules.add_line(None, line).is_ok();
        }
    }
    if is_told { rules.build().ok() } else { None }
}
