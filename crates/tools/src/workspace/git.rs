//! The folders that git keeps for itself: they hold programs that git runs for a person, outside of any sandbox.

use super::{Access, Root, Workspace};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// The most links that are followed, as in Linux.
const MOST_LINKS: usize = 40;

impl Workspace {
    /// Returns what a refusal says of `path` if it leads into a folder that git keeps for itself. `within` is the
    /// place that it leads to in the folder `root`.
    pub(super) fn of_git(&self, path: &Path, root: &Root, within: &Path) -> Option<&'static str> {
        if within.components().any(|part| is_git(part.as_os_str())) {
            return Some("");
        }
        let is_its_own = is_in_repository(root, within) || self.meets_git(path);
        is_its_own.then_some(", which git keeps for itself,")
    }

    /// Returns whether a path, or a link on its way, names an entry `.git` of a folder that may be used. Such an
    /// entry may itself be a link to a folder of any name.
    fn meets_git(&self, path: &Path) -> bool {
        let mut parts = parts(path);
        let mut place = PathBuf::new();
        let mut links = 0;
        while let Some(part) = parts.pop_front() {
            if part == ".." {
                place.pop();
                continue;
            }
            if is_git(&part) && self.root(&place, Access::Read).is_some() {
                return true;
            }
            place.push(&part);
            let Ok(target) = std::fs::read_link(&place) else { continue };
            links += 1;
            if links > MOST_LINKS {
                return true;
            }
            place.pop();
            for part in self::parts(&target).into_iter().rev() {
                parts.push_front(part);
            }
        }
        false
    }
}

/// Returns the parts of a path; an absolute one begins with its root.
fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Returns whether a place lies in a repository without a folder `.git`: a bare one, or one that a file `.git`
/// names. A folder that was permitted by itself does not count.
fn is_in_repository(root: &Root, within: &Path) -> bool {
    // What is written counts, so that no order of writes makes a repository.
    let has = |folder: &Path, name: &str| {
        let entry = folder.join(name);
        within.starts_with(&entry) || root.dir.symlink_metadata(entry).is_ok()
    };
    let mut folders = within.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.any(|folder| ["HEAD", "objects", "refs"].iter().all(|name| has(folder, name)))
}
