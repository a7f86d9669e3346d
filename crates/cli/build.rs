//! Packs the addresses that the loader relocates at every start, 2 MB of the program that ships.

use std::env::var;
use std::process::Command;

/// The first glibc whose loader reads them: an older one starts no such program.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = var("HOST") == var("TARGET");
    let small = matches!(var("OPT_LEVEL").as_deref(), Ok("s" | "z"));
    if here && small && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let printed = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let printed = String::from_utf8(printed).ok()?;
    let (major, minor) = printed.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
