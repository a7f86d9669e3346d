//! The conditions of the registry for a crate, and those of the project. Each is one small function.

use super::is_published;
use super::order::floor;
use cargo_metadata::{Dependency, DependencyKind, Metadata, Package};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The categories that crates of this project use, of those that the registry knows
/// (<https://crates.io/category_slugs>).
const CATEGORIES: &[&str] = &[
    "algorithms",
    "api-bindings",
    "asynchronous",
    "authentication",
    "caching",
    "command-line-utilities",
    "concurrency",
    "cryptography",
    "data-structures",
    "database",
    "development-tools::profiling",
    "encoding",
    "filesystem",
    "network-programming",
    "os::linux-apis",
    "parser-implementations",
    "science",
    "text-processing",
    "web-programming",
    "web-programming::http-client",
    "web-programming::http-server",
];

/// The most keywords and categories of a crate, and the most characters of a keyword.
const MOST_KEYWORDS: usize = 5;
const MOST_CATEGORIES: usize = 5;
const LONGEST_KEYWORD: usize = 20;

/// Returns everything that keeps a crate from being published, as `crate: reason`, in the order of crates.
pub(super) fn findings(root: &Path, metadata: &Metadata) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut packages = metadata.workspace_packages();
    packages.sort_by_key(|package| package.name.to_string());
    for package in packages.into_iter().filter(|package| is_published(package)) {
        let mut reasons = missing(package);
        reasons.extend(keywords(package));
        reasons.extend(categories(package));
        reasons.extend(dependencies(metadata, package));
        if floor(metadata, package).is_none() {
            reasons.push("it has no floor in the root manifest".to_owned());
        }
        reasons.extend(readme(package));
        reasons.extend(outside(root, package)?);
        found.extend(reasons.into_iter().map(|reason| format!("{}: {reason}", package.name)));
    }
    Ok(found)
}

/// The fields that a page of the registry is made of.
fn missing(package: &Package) -> Vec<String> {
    let fields = [
        ("description", package.description.is_some()),
        ("documentation", package.documentation.is_some()),
        ("license", package.license.is_some()),
        ("readme", package.readme.is_some()),
        ("repository", package.repository.is_some()),
        ("rust-version", package.rust_version.is_some()),
        ("keywords", !package.keywords.is_empty()),
        ("categories", !package.categories.is_empty()),
    ];
    let missing = fields.into_iter().filter(|(_, is_there)| !is_there);
    missing.map(|(field, _)| format!("its manifest has no `{field}`")).collect()
}

fn keywords(package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    if package.keywords.len() > MOST_KEYWORDS {
        found.push(format!("it has more than {MOST_KEYWORDS} keywords"));
    }
    for keyword in &package.keywords {
        let begins = keyword.starts_with(|c: char| c.is_ascii_alphanumeric());
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '+'].contains(&c);
        if !begins || !keyword.chars().all(allowed) || keyword.len() > LONGEST_KEYWORD {
            found.push(format!("the registry refuses the keyword `{keyword}`"));
        }
    }
    found
}

fn categories(package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    if package.categories.len() > MOST_CATEGORIES {
        found.push(format!("it has more than {MOST_CATEGORIES} categories"));
    }
    for category in &package.categories {
        if !CATEGORIES.contains(&category.as_str()) {
            found.push(format!("the category `{category}` is not in xtask/src/publish/checks.rs"));
        }
    }
    found
}

/// Returns whether a dependency is left out of the published manifest: one of tests that has a path and no version.
pub(super) fn is_stripped(dependency: &Dependency) -> bool {
    let is_of_tests = dependency.kind == DependencyKind::Development;
    is_of_tests && dependency.path.is_some() && dependency.req.to_string() == "*"
}

/// A published crate names other members by their versions, and none that is not published.
fn dependencies(metadata: &Metadata, package: &Package) -> Vec<String> {
    let members = metadata.workspace_packages();
    let mut found = Vec::new();
    for dependency in package.dependencies.iter().filter(|one| !is_stripped(one)) {
        let name = &dependency.name;
        if dependency.req.to_string() == "*" {
            found.push(format!("it names {name} without a version"));
        }
        let Some(member) = members.iter().find(|member| member.name == *name) else { continue };
        if !is_published(member) {
            found.push(format!("it needs {name}, which is not published"));
        } else if !dependency.req.matches(&member.version) {
            let (asked, version) = (&dependency.req, &member.version);
            found.push(format!("it asks for {name} {asked}, which is {version} here"));
        }
    }
    found
}

/// The README begins with the crate's name.
fn readme(package: &Package) -> Option<String> {
    let path = package.readme()?;
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Some("its README cannot be read".to_owned());
    };
    let begins = text.lines().next() == Some(format!("# {}", package.name).as_str());
    (!begins).then(|| "its README does not begin with its name".to_owned())
}

/// A package holds nothing from outside the crate's folder, so no source may include such a file.
fn outside(root: &Path, package: &Package) -> io::Result<Vec<String>> {
    let Some(folder) = package.manifest_path.as_std_path().parent() else { return Ok(Vec::new()) };
    let mut sources = Vec::new();
    rust_files(&folder.join("src"), &mut sources)?;
    let mut found = Vec::new();
    for path in sources {
        let text = std::fs::read_to_string(&path)?;
        let leaves = |included: &str| leaves(folder, &path, included);
        if includes(shipped(&text)).any(leaves) {
            let path = path.strip_prefix(root).unwrap_or(&path);
            found.push(format!("{} includes a file from outside the package", path.display()));
        }
    }
    Ok(found)
}

/// Returns a source up to its tests, which only the workspace runs.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// Returns the last string in each call of `include_str!` and `include_bytes!`: the path, or its end.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    let calls = ["include_str!", "include_bytes!"].into_iter();
    let calls = calls.flat_map(|name| text.split(name).skip(1));
    calls.filter_map(|rest| {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        rest[..end].rsplit('"').nth(1)
    })
}

/// Returns whether a path that a source includes leads out of the crate's folder. One that is put together begins with
/// `/` and is counted from that folder.
fn leaves(folder: &Path, source: &Path, included: &str) -> bool {
    let base = if included.starts_with('/') { Some(folder) } else { source.parent() };
    let mut whole = PathBuf::from(base.unwrap_or(folder));
    for part in Path::new(included).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    !whole.starts_with(folder)
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use cargo_metadata::MetadataCommand;

    /// A dependency on a member, in the words of `cargo metadata`.
    pub(in crate::publish) fn dependency(name: &str, kind: &str, req: &str) -> String {
        format!(
            r#"{{"name": "{name}", "source": null, "req": "{req}", "kind": {kind}, "optional": false,
                "uses_default_features": true, "features": [], "target": null, "path": "/w/{name}"}}"#
        )
    }

    /// A member whose version is 0.1.0; `more` begins with a comma.
    pub(in crate::publish) fn member(name: &str, dependencies: &str, more: &str) -> String {
        format!(
            r#"{{"name": "{name}", "version": "0.1.0", "id": "{name}", "dependencies": [{dependencies}],
                "targets": [], "features": {{}}, "manifest_path": "/w/{name}/Cargo.toml"{more}}}"#
        )
    }

    pub(in crate::publish) fn workspace(members: &[String], floors: &str) -> Metadata {
        let ids: Vec<&str> =
            members.iter().map(|member| member.split('"').nth(3).unwrap()).collect();
        MetadataCommand::parse(format!(
            r#"{{"packages": [{}], "workspace_members": {ids:?}, "resolve": null, "version": 1,
                "workspace_root": "/w", "target_directory": "/w/target",
                "metadata": {{"floors": {floors}}}}}"#,
            members.join(", ")
        ))
        .unwrap()
    }

    /// The reasons that one check finds in the first member.
    fn found(check: fn(&Metadata, &Package) -> Vec<String>, members: &[String]) -> Vec<String> {
        let metadata = workspace(members, "{}");
        check(&metadata, metadata.workspace_packages()[0])
    }

    #[test]
    fn every_crate_can_be_published() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let metadata = crate::publish::metadata(&root).unwrap();
        assert_eq!(findings(&root, &metadata).unwrap(), Vec::<String>::new());
        let order = crate::publish::order::of(&metadata).unwrap();
        assert!(order.len() > 30 && order.iter().all(|package| is_published(package)));
    }

    #[test]
    fn a_missing_field_is_named() {
        let all = r#", "description": "A", "documentation": "A", "license": "A", "readme": "A",
            "repository": "A", "rust_version": "1.95.0", "keywords": ["a"], "categories": ["science"]"#;
        let missing = |more: &str| found(|_, package| missing(package), &[member("a", "", more)]);
        assert_eq!(missing(all), Vec::<String>::new());
        assert_eq!(missing(&all.replace("readme", "none")), ["its manifest has no `readme`"]);
        assert_eq!(missing("").len(), 8);
    }

    #[test]
    fn keywords_and_categories_are_those_of_the_registry() {
        let check =
            |_: &Metadata, package: &Package| [keywords(package), categories(package)].concat();
        let more = r#", "keywords": ["a", "b", "c", "d", "e", "two words"], "categories": ["ai"]"#;
        let found = found(check, &[member("a", "", more)]);
        let expected = [
            "it has more than 5 keywords",
            "the registry refuses the keyword `two words`",
            "the category `ai` is not in xtask/src/publish/checks.rs",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_published_crate_needs_published_ones_with_versions() {
        let needs = |kind: &str, req: &str, more: &str| {
            found(
                dependencies,
                &[member("a", &dependency("b", kind, req), ""), member("b", "", more)],
            )
        };
        let hidden = r#", "publish": []"#;
        assert_eq!(needs("null", "^0.1.0", ""), Vec::<String>::new());
        assert_eq!(needs(r#""dev""#, "*", hidden), Vec::<String>::new());
        let unpublished = "it needs b, which is not published";
        assert_eq!(needs(r#""dev""#, "^0.1.0", hidden), [unpublished]);
        assert_eq!(needs("null", "*", hidden), ["it names b without a version", unpublished]);
        assert_eq!(needs("null", "^0.2.0", ""), ["it asks for b ^0.2.0, which is 0.1.0 here"]);
    }

    #[test]
    fn a_file_from_outside_is_found() {
        let (folder, source) = (Path::new("/w/a"), Path::new("/w/a/src/b/c.rs"));
        let text = r#"
            const A: &str = include_str!("../d.md");
            const B: &[u8] = include_bytes!("../../../d.md");
            const C: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../d.md"));
        "#;
        let found: Vec<(&str, bool)> =
            includes(text).map(|path| (path, leaves(folder, source, path))).collect();
        assert_eq!(found, [("../d.md", false), ("/../d.md", true), ("../../../d.md", true)]);
        let tested = format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{{text}}}\n");
        assert_eq!(includes(shipped(&tested)).count(), 0);
    }
}
