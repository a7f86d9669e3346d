//! The shape of the tree: each rule is one small function over all files.

use std::io;
use std::path::{Path, PathBuf};

use crate::{links, sizes, wording};

/// A file of the tree.
pub(crate) struct File {
    /// From the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns whether it contains only tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("tests/") || self.path.ends_with("/tests.rs")
    }
}

/// Returns what is not tidy, as `path: what`, in the order of paths.
pub(crate) fn findings(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "xtask", "distill", "fuzz"] {
        read(root, &root.join(folder), &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut found = Vec::new();
    for file in &files {
        let rules = [title_page, named_by_its_noun, shared_lints, nothing_left];
        found.extend(rules.iter().filter_map(|rule| rule(file)).map(|what| {
            let path = &file.path;
            format!("{path}: {what}")
        }));
    }
    found.extend(undeclared_tests(&files));
    found.extend(sizes::too_long(&files));
    let pages = links::pages(root)?;
    found.extend(links::findings(root, &pages));
    files.extend(pages);
    found.extend(wording::findings(&files));
    Ok(found)
}

/// Every source file begins with a description.
fn title_page(file: &File) -> Option<String> {
    let rust = file.is_rust() && !file.path.contains("/tests/ui/");
    (rust && !file.text.starts_with("//!")).then(|| "it does not begin with `//!`".to_owned())
}

fn named_by_its_noun(file: &File) -> Option<String> {
    const EMPTY_NAMES: [&str; 7] =
        ["utils.rs", "util.rs", "common.rs", "types.rs", "helpers.rs", "manager.rs", "misc.rs"];
    let name = file.path.rsplit('/').next()?;
    EMPTY_NAMES.contains(&name).then(|| "its name says nothing".to_owned())
}

/// Lints are set once, at the root.
fn shared_lints(file: &File) -> Option<String> {
    let is_outside = ["distill/", "fuzz/"].iter().any(|folder| file.path.starts_with(folder));
    let member = file.path.ends_with("/Cargo.toml") && !is_outside;
    let shared = file.text.contains("[lints]\nworkspace = true");
    (member && !shared).then(|| "it does not use the workspace's lints".to_owned())
}

/// A comment that puts work off. (`TODO` alone may be a name here: a todo is a noun.)
fn nothing_left(file: &File) -> Option<String> {
    let mark = ["TODO", "FIXME", "XXX"].into_iter().find(|mark| {
        let comments = file.text.lines().filter_map(|line| line.split_once("//"));
        comments.into_iter().any(|(_, comment)| comment.trim_start().starts_with(mark))
    })?;
    Some(format!("a comment says {mark}"))
}

/// A test file that no module names never runs.
fn undeclared_tests(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for root in files.iter().filter(|file| {
        file.path.ends_with("/tests/it/main.rs") || file.path == "tests/journeys/main.rs"
    }) {
        let folder = root.path.trim_end_matches("main.rs");
        for file in files {
            let Some(name) = file.path.strip_prefix(folder) else { continue };
            let Some(name) = name.strip_suffix(".rs") else { continue };
            let declared = root.text.contains(&format!("mod {name};"));
            if name != "main" && !name.contains('/') && !declared {
                found.push(format!("{}: no `mod {name};` in main.rs", file.path));
            }
        }
    }
    found
}

fn read(root: &Path, folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path: PathBuf = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                read(root, &path, files)?;
            }
            continue;
        }
        let wanted = path.extension().is_some_and(|e| e == "rs" || e == "toml");
        if wanted {
            let text = std::fs::read_to_string(&path)?;
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(File { path: path.replace('\\', "/"), text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(findings(&root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_rule_can_fail() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        assert!(title_page(&file("a.rs", "fn a() {}")).is_some());
        assert!(named_by_its_noun(&file("crates/a/src/utils.rs", "")).is_some());
        assert!(shared_lints(&file("crates/a/Cargo.toml", "[package]")).is_some());
        assert!(nothing_left(&file("a.rs", concat!("let a = 1; /", "/ FIXME later"))).is_some());
        let main = file("crates/a/tests/it/main.rs", "mod there;");
        let lost = file("crates/a/tests/it/lost.rs", "");
        assert_eq!(undeclared_tests(&[main, lost]).len(), 1);
    }
}
