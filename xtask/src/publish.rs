//! Publishing, tried out: whether every crate can go to the registry, in which order, and how large it is.
//!
//! Nothing is uploaded. `RELEASING.md` names the command that uploads.

mod checks;
mod order;

use cargo_metadata::{Metadata, MetadataCommand, Package};
use std::io;
use std::path::Path;
use std::process::Command;

/// The most bytes that crates.io accepts of a packed crate.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Checks and packs every published crate. `arguments` hold `--dry-run`, and `--verify` if each package is to be built
/// as well. Returns whether all can be published.
pub(crate) fn run(root: &Path, arguments: &[String]) -> io::Result<bool> {
    let known = |argument: &String| ["--dry-run", "--verify"].contains(&argument.as_str());
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    if !has("--dry-run") || !arguments.iter().all(known) {
        let why = "expected --dry-run [--verify]; RELEASING.md names the command that uploads";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let metadata = metadata(root)?;
    let mut findings = checks::findings(root, &metadata)?;
    let order = match order::of(&metadata) {
        Ok(order) => order,
        Err(finding) => {
            findings.push(finding);
            Vec::new()
        }
    };
    if findings.is_empty() {
        pack(root, &order, has("--verify"))?;
        findings = sizes(&metadata, &order)?;
    }
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    Ok(findings.is_empty())
}

/// Reads the manifests of the members, and nothing from a registry.
fn metadata(root: &Path) -> io::Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.manifest_path(root.join("Cargo.toml")).no_deps();
    command.exec().map_err(io::Error::other)
}

/// Returns whether a package goes to the registry.
fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}

/// Packs all in one call: a crate that is not in the registry yet is found beside the others.
fn pack(root: &Path, order: &[&Package], verify: bool) -> io::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["package", "--locked", "--allow-dirty", "--quiet"]).current_dir(root);
    if !verify {
        cargo.arg("--no-verify");
    }
    for package in order {
        cargo.args(["--package", package.name.as_str()]);
    }
    if cargo.status()?.success() {
        return Ok(());
    }
    Err(io::Error::other("`cargo package` failed"))
}

/// Prints the crates in their order with their sizes. Returns those that the registry would refuse.
fn sizes(metadata: &Metadata, order: &[&Package]) -> io::Result<Vec<String>> {
    let folder = metadata.target_directory.join("package");
    let mut found = Vec::new();
    for (at, package) in order.iter().enumerate() {
        let (name, version) = (&package.name, &package.version);
        let bytes = std::fs::metadata(folder.join(format!("{name}-{version}.crate")))?.len();
        println!("{:>2}. {name} {version}: {} KiB", at + 1, bytes.div_ceil(1024));
        if bytes > LARGEST {
            found.push(format!("{name}: its package has {bytes} bytes, more than {LARGEST}"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_dry_run_is_accepted() {
        for arguments in [vec![], vec!["--verify"], vec!["--dry-run", "--force"]] {
            let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
            let error = run(Path::new("."), &arguments).unwrap_err();
            assert!(error.to_string().starts_with("expected --dry-run"), "{error}");
        }
    }
}
