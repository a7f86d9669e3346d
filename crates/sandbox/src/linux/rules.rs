//! What a command may open: rules for Landlock.

use super::kernel;
use crate::{Sandbox, SandboxError};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The features needed: all file system rights, ioctls on devices, signals, abstract sockets.
const NEEDED: ABI = ABI::V6;

/// Programs, libraries, and what they read in passing. Missing ones are skipped.
const SYSTEM: [&str; 46] = [
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/sbin",
    "/usr",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// Devices that hold and reveal nothing.
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Builds the rules of a sandbox that may write these folders.
///
/// # Errors
/// When Landlock cannot enforce them, or a path that was granted cannot be opened.
pub(super) fn ruleset(sandbox: &Sandbox, writable: &[PathBuf]) -> Result<OwnedFd, SandboxError> {
    check(kernel::landlock_abi())?;
    let mut rules = created(sandbox.network).map_err(unavailable)?;
    if sandbox.system {
        for path in SYSTEM {
            let Ok(opened) = PathFd::new(path) else { continue };
            rules = granted(rules, opened, Path::new(path), readable())?;
        }
        for path in DEVICES {
            let Ok(opened) = PathFd::new(path) else { continue };
            let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
            rules = granted(rules, opened, Path::new(path), device)?;
        }
    }
    let read = sandbox.read.iter().map(|path| (path, readable()));
    let write = writable.iter().map(|path| (path, changeable()));
    for (path, access) in read.chain(write) {
        let opened = PathFd::new(path).map_err(|error| SandboxError::Path {
            path: path.clone(),
            source: io::Error::other(error),
        })?;
        rules = granted(rules, opened, path, access)?;
    }
    let none = || SandboxError::Unavailable("Landlock could not create a ruleset".to_owned());
    Option::<OwnedFd>::from(rules).ok_or_else(none)
}

/// Checks whether this version of Landlock is enough.
fn check(abi: io::Result<i64>) -> Result<(), SandboxError> {
    let has = match abi {
        Ok(abi) if abi >= NEEDED as i64 => return Ok(()),
        Ok(abi) => format!("has ABI {abi}"),
        Err(error) => format!("has none, or it is not switched on ({error})"),
    };
    Err(SandboxError::Unavailable(format!(
        "Landlock ABI {} is needed (Linux 6.12), and this kernel {has}",
        NEEDED as i64
    )))
}

/// Rules that grant nothing yet.
fn created(network: bool) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .scope(Scope::from_all(NEEDED))?;
    let rules = if network { rules } else { rules.handle_access(AccessNet::from_all(NEEDED))? };
    rules.create()
}

fn granted(
    rules: RulesetCreated,
    opened: PathFd,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    let file = AccessFs::from_file(NEEDED);
    let access = if path.is_dir() { access } else { access & file };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(unavailable)
}

fn readable() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEEDED)
}

/// Every right except creating devices and ioctls on devices.
fn changeable() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEEDED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn unavailable(error: RulesetError) -> SandboxError {
    SandboxError::Unavailable(format!("Landlock does not support these rules: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_landlock_lacks_is_said() {
        let why = |abi| check(abi).unwrap_err().to_string();
        assert!(check(Ok(6)).is_ok() && check(Ok(7)).is_ok());
        assert_eq!(
            why(Ok(4)),
            "no sandbox is available: Landlock ABI 6 is needed (Linux 6.12), and this kernel has ABI 4"
        );
        assert!(why(Err(io::Error::from_raw_os_error(libc::ENOSYS))).contains("has none"));
    }
}
