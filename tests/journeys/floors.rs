//! Imports point down only. The table is in the root manifest.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[test]
fn imports_point_down() {
    let metadata = metadata();
    let floors = floors(&metadata);
    let mut wrong = Vec::new();
    for package in members(&metadata) {
        let Some(floor) = floors.get(package.name.as_str()) else { continue };
        for (kind, name) in dependencies(package) {
            let down = floors.get(&name).is_none_or(|other| other < floor);
            // Tests may import sideways and use crates beside the floors.
            if kind != DependencyKind::Development && (!down || beside(&metadata).contains(&name)) {
                wrong.push(format!("{} imports {name}", package.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_crate_has_its_floor() {
    let metadata = metadata();
    let floors = floors(&metadata);
    let beside = beside(&metadata);
    let mut known: Vec<_> = floors.into_keys().chain(beside).collect();
    let mut members: Vec<_> = members(&metadata).map(|p| p.name.to_string()).collect();
    known.sort();
    members.sort();
    assert_eq!(known, members);
}

#[test]
fn a_heavy_dependency_has_its_doors() {
    let metadata = metadata();
    let doors = metadata.workspace_metadata["doors"].as_object().unwrap();
    assert!(!doors.is_empty());
    for (dependency, doors) in doors {
        let importers: BTreeSet<_> = members(&metadata)
            .filter(|package| {
                dependencies(package)
                    .any(|(kind, name)| kind != DependencyKind::Development && name == *dependency)
            })
            .map(|package| package.name.to_string())
            .collect();
        let one = std::slice::from_ref(doors);
        let doors = doors.as_array().map_or(one, Vec::as_slice);
        let doors = doors.iter().map(|door| door.as_str().unwrap().to_owned()).collect();
        assert_eq!(importers, doors, "{dependency}");
    }
}

/// The measurements for the developers of foldback are built only on request.
#[test]
fn the_command_ships_without_the_lab() {
    let metadata = metadata();
    let cli = members(&metadata).find(|package| package.name == "foldback-cli").unwrap();
    let lab = cli.dependencies.iter().find(|dependency| dependency.name == "foldback-lab");
    assert!(lab.unwrap().optional && !cli.features.contains_key("default"), "{:?}", cli.features);
}

#[test]
fn a_light_crate_stays_light() {
    let metadata = metadata();
    let most = metadata.workspace_metadata["most-crates"].as_object().unwrap();
    assert!(!most.is_empty());
    for (package, most) in most {
        let crates = below(package);
        assert!(crates.len() as u64 <= most.as_u64().unwrap(), "{package} brings {crates:#?}");
    }
}

/// P14: recording and searching ask no model. The crates of the memory know none, and no network
/// either.
#[test]
fn p14_the_memory_has_no_model_to_ask() {
    let below = below("foldback");
    for missing in
        ["foldback-llm", "foldback-providers", "foldback-agent", "reqwest", "hyper", "tokio"]
    {
        let found = below.iter().find(|package| package.split(' ').next() == Some(missing));
        assert_eq!(found, None, "the memory imports {missing}");
    }
    assert!(below.iter().any(|package| package.starts_with("foldback-embedder ")), "{below:?}");
}

/// Every crate that a package pulls in, itself included, as `cargo tree` names them.
fn below(package: &str) -> BTreeSet<String> {
    // The tree of this package alone: in the workspace's, features of other members count as well.
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--no-dedupe", "--prefix=none"])
        .args(["--edges=normal", "--package", package])
        .current_dir(crate::story::workspace_root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// S2: only the owner's handle searches without a todo, and only the person at the terminal uses it.
#[test]
fn s2_rc7_no_agent_reaches_the_search_over_all_todos() {
    fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }
    let crates = crate::story::workspace_root().join("crates");
    let mut named = Vec::new();
    for member in std::fs::read_dir(&crates).unwrap() {
        let mut files = Vec::new();
        sources(&member.unwrap().path().join("src"), &mut files);
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.contains("AllTodos::open") || text.contains(".owner()") {
                named.push(path.strip_prefix(&crates).unwrap().display().to_string());
            }
        }
    }
    named.sort();
    let expected = [
        "cli/src/commands/search.rs",
        "foldback/src/audit/tests.rs",
        "foldback/src/memory.rs",
        "foldback/src/no_read_without_todo.rs",
        "foldback/src/owner.rs",
        "foldback/src/owner/tests.rs",
        "inspector/src/api/search.rs",
        "lab/src/index/load/all_todos.rs",
        "mcp-server/src/any_todo.rs",
    ];
    assert_eq!(named, expected);
}

#[test]
fn pure_crates_say_what_they_must_not_touch() {
    let root = crate::story::workspace_root();
    for pure in ["baselines", "chunker", "disclosure"] {
        let lints = std::fs::read_to_string(root.join("crates").join(pure).join("clippy.toml"));
        let lints = lints.unwrap_or_else(|error| panic!("{pure}: {error}"));
        for forbidden in ["SystemTime::now", "std::fs", "std::env::var"] {
            assert!(lints.contains(forbidden), "{pure} may use {forbidden}");
        }
    }
}

fn metadata() -> Metadata {
    let manifest = crate::story::workspace_root().join("Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap()
}

fn floors(metadata: &Metadata) -> BTreeMap<String, u64> {
    let table = metadata.workspace_metadata["floors"].as_object().unwrap();
    table.iter().map(|(name, floor)| (name.clone(), floor.as_u64().unwrap())).collect()
}

fn beside(metadata: &Metadata) -> Vec<String> {
    let list = metadata.workspace_metadata["beside"]["packages"].as_array().unwrap();
    list.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn members(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    metadata.workspace_packages().into_iter()
}

fn dependencies(package: &Package) -> impl Iterator<Item = (DependencyKind, String)> {
    package.dependencies.iter().map(|dependency| (dependency.kind, dependency.name.clone()))
}
