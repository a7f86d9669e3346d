//! R5: everything that reads external bytes is made to read damaged ones. The targets are those of
//! libFuzzer (`fuzz/`); here our own mutator feeds them, so that any toolchain can.

#[path = "../../fuzz/src/lib.rs"]
#[expect(
    clippy::expect_used,
    unreachable_pub,
    reason = "it is the library of another package, for tests alone"
)]
pub(crate) mod fuzzed;

use foldback_testkit::mutation::mutated;
use foldback_testkit::{Random, effort};
use fuzzed::{TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// R5: each target reads its seeds, and some hundreds of inputs made of them.
#[test]
fn r5_no_fuzz_target_falls() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| survives(&target, seed));
        let cases = if target.name.starts_with("store_") { 40 } else { 400 };
        let mut random = random_of(&target);
        for _ in 0..effort(cases) {
            survives(&target, &mutated(&mut random, &seeds));
        }
    }
}

/// `cargo run -p xtask -- fuzz --seconds 60 [TARGET]...` runs this.
#[test]
#[ignore = "runs for a chosen time; the command is above"]
fn r5_fuzz_targets_for_some_time() {
    let seconds = std::env::var("FOLDBACK_FUZZ_SECONDS").unwrap();
    let time = Duration::from_secs(seconds.parse().unwrap());
    let wanted = std::env::var("FOLDBACK_FUZZ_TARGETS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    for name in &wanted {
        assert!(TARGETS.iter().any(|target| target.name == *name), "there is no target {name}");
    }
    for target in TARGETS {
        if wanted.is_empty() || wanted.contains(&target.name) {
            run_for(&target, time);
        }
    }
}

fn run_for(target: &Target, time: Duration) {
    let seeds = (target.seeds)();
    let clock = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let mut random = Random::new(clock as u64);
    // The input survives a process that it ends.
    let last = artifact(target, "last");
    let (begun, mut count, mut slowest) = (Instant::now(), 0_u64, (Duration::ZERO, Vec::new()));
    while begun.elapsed() < time {
        let input = mutated(&mut random, &seeds);
        std::fs::write(&last, &input).unwrap();
        let now = Instant::now();
        survives(target, &input);
        if now.elapsed() > slowest.0 {
            slowest = (now.elapsed(), input);
        }
        count += 1;
    }
    std::fs::remove_file(last).unwrap();
    std::fs::write(artifact(target, "slowest"), &slowest.1).unwrap();
    println!(
        "{}: {count} inputs, the slowest {:?} ({} bytes)",
        target.name,
        slowest.0,
        slowest.1.len()
    );
}

/// Runs a target; an input that makes it fail is saved.
#[track_caller]
fn survives(target: &Target, input: &[u8]) {
    let run = AssertUnwindSafe(|| (target.run)(input));
    if catch_unwind(run).is_err() {
        let path = artifact(target, "crash");
        std::fs::write(&path, input).unwrap();
        panic!("{} falls over {}", target.name, path.display());
    }
}

/// A file beside those of libFuzzer.
fn artifact(target: &Target, name: &str) -> PathBuf {
    let folder = crate::story::workspace_root().join("fuzz/artifacts").join(target.name);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn random_of(target: &Target) -> Random {
    Random::new(target.name.bytes().fold(7, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)))
}

/// Each target has a binary of libFuzzer, and each binary a target.
#[test]
fn every_fuzz_target_has_its_binary() {
    let folder = crate::story::workspace_root().join("fuzz");
    let binaries = std::fs::read_dir(folder.join("fuzz_targets")).unwrap();
    let mut binaries: Vec<String> = binaries
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    binaries.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(binaries, names);
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for name in names {
        assert!(
            manifest.contains(&format!("name = \"{name}\"\n")),
            "{name} is not in the manifest"
        );
    }
}

/// The corpora that libFuzzer begins with: `FOLDBACK_FUZZ_CORPUS=fuzz/corpus cargo test -p foldback-tests corpora --
/// --ignored` writes them.
#[test]
#[ignore = "writes corpora into a chosen folder; the command is above"]
fn the_seeds_are_written_as_corpora() {
    let folder = std::env::var_os("FOLDBACK_FUZZ_CORPUS").unwrap();
    for target in TARGETS {
        let folder = crate::story::workspace_root().join(&folder).join(target.name);
        std::fs::create_dir_all(&folder).unwrap();
        for (n, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{n:03}")), seed).unwrap();
        }
    }
}
