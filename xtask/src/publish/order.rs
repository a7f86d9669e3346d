//! The order in which crates are published: by floor, and on one floor by what the registry asks for.

use super::checks::is_stripped;
use super::is_published;
use cargo_metadata::{Metadata, Package};

/// Returns the published crates, each after all that it names, or the crates that have no order.
///
/// Imports point down, so the floors give the order of the crates. On one floor a test of one crate may use another
/// one, and the registry accepts no crate before everything that its manifest names is there.
pub(super) fn of(metadata: &Metadata) -> Result<Vec<&Package>, String> {
    let mut waiting: Vec<(u64, &Package)> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| is_published(package))
        .map(|package| (floor(metadata, package).unwrap_or(u64::MAX), package))
        .collect();
    waiting.sort_by_key(|(floor, package)| (*floor, package.name.to_string()));
    let mut order: Vec<&Package> = Vec::new();
    while !waiting.is_empty() {
        let next = waiting.iter().position(|(_, package)| {
            !waiting.iter().any(|(_, other)| other.name != package.name && names(package, other))
        });
        match next {
            Some(next) => order.push(waiting.remove(next).1),
            None => {
                let names: Vec<&str> = waiting.iter().map(|(_, p)| p.name.as_str()).collect();
                return Err(format!("{}: each names another one of these", names.join(", ")));
            }
        }
    }
    Ok(order)
}

/// The floor of a crate, from the table in the root manifest.
pub(super) fn floor(metadata: &Metadata, package: &Package) -> Option<u64> {
    metadata.workspace_metadata["floors"][package.name.as_str()].as_u64()
}

/// Returns whether the published manifest of a crate names another one.
fn names(package: &Package, other: &Package) -> bool {
    let mut dependencies = package.dependencies.iter();
    dependencies.any(|dependency| dependency.name == *other.name && !is_stripped(dependency))
}

#[cfg(test)]
mod tests {
    use crate::publish::checks::tests::{dependency, member, workspace};

    fn order(members: &[String], floors: &str) -> Result<Vec<String>, String> {
        let metadata = workspace(members, floors);
        super::of(&metadata)
            .map(|order| order.iter().map(|package| package.name.to_string()).collect())
    }

    #[test]
    fn floors_come_first_and_tests_decide_on_one_floor() {
        let test = dependency("b", r#""dev""#, "^0.1.0");
        let members = [member("a", &test, ""), member("b", "", ""), member("z", "", "")];
        let floors = r#"{"a": 1, "b": 1, "z": 0}"#;
        assert_eq!(order(&members, floors).unwrap(), ["z", "b", "a"]);
        // A crate without a version is left out of the published manifest.
        let stripped = dependency("b", r#""dev""#, "*");
        let members = [member("a", &stripped, ""), member("b", "", ""), member("z", "", "")];
        assert_eq!(order(&members, floors).unwrap(), ["z", "a", "b"]);
    }

    #[test]
    fn a_ring_is_named() {
        let (a, b) = (dependency("b", r#""dev""#, "^0.1.0"), dependency("a", "null", "^0.1.0"));
        let members = [member("a", &a, ""), member("b", &b, "")];
        let error = order(&members, r#"{"a": 1, "b": 2}"#).unwrap_err();
        assert_eq!(error, "a, b: each names another one of these");
    }
}
