//! Makes the release program smaller: addresses that the loader relocates at every start are packed (2 MB), and
//! functions with the same machine code are merged (1 MB).

use std::env::var;
use std::path::Path;
use std::process::Command;

/// The first glibc whose loader reads them: an older one cannot start such a program.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = var("HOST") == var("TARGET");
    let ships = var("OPT_LEVEL").is_ok_and(|level| level != "0");
    if here && ships && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if here && ships && links_with_lld() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Whether the program is linked with the linker that comes with Rust for this target. Others may not know every
/// option.
fn links_with_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = var("RUSTC_LINKER").is_ok() || flags.contains("link");
    let comes_along = || {
        let rustc = var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let printed = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?.stdout;
        let sysroot = String::from_utf8(printed).ok()?;
        let linker = format!("lib/rustlib/{TARGET}/bin/gcc-ld/ld.lld");
        Some(Path::new(sysroot.trim()).join(linker).exists())
    };
    var("TARGET").as_deref() == Ok(TARGET) && !is_chosen && comes_along().unwrap_or(false)
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let printed = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let printed = String::from_utf8(printed).ok()?;
    let (major, minor) = printed.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
