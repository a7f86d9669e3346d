//! Checks of dependencies that need no tool and no network; `deny.toml` covers the rest.

use crate::story::workspace_root;
use std::collections::BTreeSet;
use std::path::Path;

/// A package of a lock file: its name, and its source; `None` for a member.
fn packages(lock: &str) -> Vec<(&str, Option<&str>)> {
    let packages = lock.split("[[package]]").skip(1);
    packages.map(|one| (quoted("name = ", one).unwrap(), quoted("source = ", one))).collect()
}

/// The quoted value after a key at the beginning of a line.
fn quoted<'t>(key: &str, text: &'t str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(key))?;
    line.split('"').nth(1)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap()
}

/// S15: every package outside the workspace comes from the one registry, and has a checksum.
#[test]
fn s15_every_dependency_comes_from_the_registry() {
    for file in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let lock = read(file);
        let packages = packages(&lock);
        let sources: BTreeSet<_> = packages.iter().filter_map(|(_, source)| *source).collect();
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert_eq!(sources, [registry].into(), "{file}");
        for (name, _) in packages.iter().filter(|(_, source)| source.is_none()) {
            let is_ours = name.starts_with("foldback") || *name == "xtask";
            assert!(is_ours, "{file}: {name} comes from nowhere");
        }
        let from_outside = packages.iter().filter(|(_, source)| source.is_some()).count();
        assert_eq!(lock.matches("\nchecksum = ").count(), from_outside, "{file}");
    }
}

/// S15: an exception in `deny.toml` names a crate that is still used, and says why.
#[test]
fn s15_every_exception_has_its_crate_and_its_reason() {
    let (deny, lock) = (read("deny.toml"), read("Cargo.lock"));
    let names: BTreeSet<_> = packages(&lock).into_iter().map(|(name, _)| name).collect();
    let advisories: Vec<_> = deny.lines().filter(|line| line.contains("RUSTSEC-")).collect();
    assert!(!advisories.is_empty());
    for line in advisories {
        let reason =
            line.split("reason = \"").nth(1).unwrap_or_else(|| panic!("no reason: {line}"));
        let name = reason.split(',').next().unwrap();
        assert!(names.contains(name), "{name} is no dependency any more: {line}");
    }
    for line in deny.lines().filter(|line| line.contains("crate = \"")) {
        let name = line.split("crate = \"").nth(1).unwrap().split('"').next().unwrap();
        assert!(names.contains(name), "{name} is no dependency any more: {line}");
    }
}

/// S15: `unsafe` is denied everywhere except in the files listed here.
#[test]
fn s15_unsafe_is_in_listed_files_alone() {
    fn look(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                look(root, &path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                if ["(unsafe_code", "(\n    unsafe_code"].iter().any(|lint| text.contains(lint)) {
                    found.insert(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
    }
    let (root, mut found) = (workspace_root(), BTreeSet::new());
    for folder in ["crates", "tests", "xtask", "examples"] {
        look(&root, &root.join(folder), &mut found);
    }
    // This file names the lint.
    found.remove("tests/journeys/dependencies.rs");
    let listed = ["crates/sandbox/src/linux/kernel.rs", "crates/sandbox/tests/it/probe.rs"];
    assert_eq!(found, listed.map(str::to_owned).into());
    // Every member uses these lints; `xtask tidy` checks that.
    assert!(read("Cargo.toml").contains("\nunsafe_code = \"deny\"\n"));
}
