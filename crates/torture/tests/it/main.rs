//! A slice of each kind of trial.

#![expect(clippy::unwrap_used, reason = "a test says so by stopping")]

use foldback::Engine;
use foldback_testkit::effort;
use foldback_torture::kill::{self, POINTS, Program, SHARED_POINTS};
#[cfg(feature = "postgres")]
use foldback_torture::machines;
use foldback_torture::{Error, Place, Report, fault, flip, history, power_cut, simulation};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One seed for a plain store, and one for a guarded and encrypted store.
const SEEDS: [u64; 2] = [16, 15];

/// Those two, and an encrypted store on the other engine that is meant for production use.
const ENGINES: [(Engine, u64); 3] =
    [(Engine::Sqlite, SEEDS[0]), (Engine::Sqlite, SEEDS[1]), (Engine::Redb, 14)];

fn program() -> Program<'static> {
    Program(Path::new(env!("CARGO_BIN_EXE_torture")))
}

/// Prints and returns the report; `None`, with a note, if there is no `strace`.
#[track_caller]
fn report(what: &str, made: Result<Report, Error>) -> Option<Report> {
    match made {
        Err(Error::Strace(why)) if !has_strace() => {
            println!("SKIPPED: {what} need strace: {why}");
            None
        }
        made => {
            let report = made.unwrap();
            println!("{what}: {report}");
            assert!(report.failures.is_empty(), "{what}: {report}");
            Some(report)
        }
    }
}

fn has_strace() -> bool {
    std::process::Command::new("strace").arg("-V").output().is_ok()
}

/// R1: two writers of one store are killed at random times. Nothing acknowledged is lost, and nothing else is there.
#[test]
fn r1_writers_that_are_killed_at_any_time_lose_nothing() {
    for seed in SEEDS {
        let kills = u64::from(effort(100)).div_ceil(2);
        let report =
            report("kills", kill::at_random(program(), seed, kills, &Place::folder)).unwrap();
        assert!(report.counted("kills of children that worked") >= report.trials / 2, "{report}");
    }
}

/// R1: a writer that is ended at each named point of the write path loses nothing, and the next one continues.
#[test]
fn r1_writers_that_end_at_a_named_point_lose_nothing() {
    for (n, point) in POINTS.into_iter().enumerate() {
        // The seeds take turns; `torture` tries each point with many.
        let seed = SEEDS[n % SEEDS.len()];
        let report = report(point, kill::at_point(program(), point, seed, 1)).unwrap();
        assert!(report.counted(point) > 0, "{point} was never reached: {report}");
    }
}

/// R1: the points at which writers are ended are those of the source.
#[test]
fn r1_every_point_of_the_source_is_on_the_list() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut named = BTreeSet::new();
    let folders = crates.read_dir().unwrap().map(|entry| entry.unwrap().path().join("src"));
    for file in folders.flat_map(|folder| rust_files(&folder)) {
        let text = std::fs::read_to_string(file).unwrap();
        let points = text.split("failpoint!(\"").skip(1);
        named.extend(points.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    let listed = POINTS.iter().chain(&SHARED_POINTS).map(|point| (*point).to_owned());
    assert_eq!(named, listed.collect());
}

/// The Rust files below a folder, which need not exist.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in entries {
        match path.is_dir() {
            true => files.extend(rust_files(&path)),
            false => files.extend(path.extension().is_some_and(|end| end == "rs").then_some(path)),
        }
    }
    files
}

/// R2: whichever unsynced writes reach the disk, nothing acknowledged is lost.
#[test]
fn r2_a_power_cut_loses_nothing() {
    for (engine, seed) in ENGINES {
        let images = u64::from(effort(1_000)).div_ceil(3);
        let images = power_cut::images(program(), engine, seed, 100, images);
        if let Some(report) = report(&format!("power cuts of {engine}"), images) {
            assert!(report.counted("messages acknowledged") > 100, "{report}");
        }
    }
}

/// R3: a system call that fails, once or from then on, loses nothing and causes no panic.
#[test]
fn r3_failing_system_calls_lose_nothing() {
    for (engine, seed) in ENGINES {
        let most = effort(120).div_ceil(3) as usize;
        let made = fault::calls(program(), engine, seed, 50, Some(most));
        if let Some(report) = report(&format!("faults of {engine}"), made) {
            assert!(report.counted("runs that ended with an error") > most as u64 / 5, "{report}");
        }
    }
}

/// R4: a flipped bit anywhere in a store causes no wrong answer, and a repair makes nothing worse.
#[test]
fn r4_flipped_bits_are_no_wrong_answers() {
    let mut all = Report::default();
    for seed in SEEDS {
        let flips = u64::from(effort(1_200)).div_ceil(2);
        all.add(report("flips", flip::bytes(seed, flips)).unwrap());
    }
    assert!(all.counted("database: something lost, noticed") > 5, "{all}");
    // A flipped bit damages one slot of the witness, and the others still count. In the audit log every byte counts.
    let of = |kind: &str| all.counts.iter().filter(move |(what, _)| what.starts_with(kind)).count();
    assert!(all.counted("witness: nothing lost, nothing found") > 0 && of("witness") == 1, "{all}");
    assert!(all.counted("audit log: nothing lost, found") > 0 && of("audit log") == 1, "{all}");
}

/// R6: histories of processes that fail and end, simulated with a seed: nothing acknowledged is lost, and no answer is wrong.
#[test]
fn r6_simulated_histories_keep_what_was_acknowledged() {
    let report = simulation::histories(14, effort(1_000).into(), 40).unwrap();
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.counted("calls that failed") > report.trials, "{report}");
}

/// R6: a seed gives the same history each time.
#[test]
fn r6_a_simulated_history_happens_again() {
    let [first, second] = [(); 2].map(|()| simulation::histories(7, 3, 60).unwrap());
    assert_eq!((first.counts, first.failures), (second.counts, second.failures));
}

/// R10: one order of all calls explains what four writers and four readers saw.
#[test]
fn r10_histories_of_processes_are_linearizable() {
    let mut all = Report::default();
    for seed in SEEDS {
        let milliseconds = effort(10_000).into();
        let place = Place::folder().unwrap();
        let histories =
            history::of_processes(program(), seed, &place, (4, 4), milliseconds, |_| {});
        all.add(report("histories", histories).unwrap());
    }
    assert_much_was_seen(&all);
}

#[track_caller]
fn assert_much_was_seen(all: &Report) {
    for what in
        ["messages appended", "counts", "searches that found", "todos forgotten", "todos not seen"]
    {
        assert!(all.counted(what) > 0, "{what}: {all}");
    }
}

/// Prints and returns the report; `None` if there is no server.
#[cfg(feature = "postgres")]
#[track_caller]
fn report_on_server(what: &str, made: Result<Report, Error>) -> Option<Report> {
    match made {
        Err(Error::Server) => None,
        made => report(what, made),
    }
}

/// R1, PG3: a writer of each of two machines is killed at random times; the store is on a server.
#[cfg(feature = "postgres")]
#[test]
fn r1_pg3_killed_writers_of_two_machines_lose_nothing() {
    for seed in SEEDS {
        let kills = u64::from(effort(20)).div_ceil(2);
        let kills = machines::kills(program(), seed, kills);
        let Some(report) = report_on_server("kills on two machines", kills) else { return };
        assert!(report.counted("kills of children that worked") >= report.trials / 2, "{report}");
    }
}

/// R1, PG12: a writer that is ended at each named point of writing and taking copies of indexes loses nothing, and writers
/// of both machines continue.
#[cfg(feature = "postgres")]
#[test]
fn r1_pg12_writers_that_end_at_a_point_of_a_copy_lose_nothing() {
    for (n, point) in SHARED_POINTS.into_iter().enumerate() {
        let made = machines::at_point(program(), point, SEEDS[n % SEEDS.len()], 1);
        let Some(report) = report_on_server(point, made) else { return };
        assert!(report.counted(point) > 0, "{point} was never reached: {report}");
    }
}

/// R10, PG2, PG3: one order of all calls explains what two machines saw, whose clocks are an hour apart, while a writer
/// was suspended and their server was killed and started.
#[cfg(feature = "postgres")]
#[test]
fn r10_pg3_histories_of_machines_are_linearizable() {
    let mut all = Report::default();
    for seed in SEEDS {
        let histories = machines::histories(program(), seed, effort(6_000).into());
        let Some(report) = report_on_server("histories of machines", histories) else { return };
        all.add(report);
    }
    assert_much_was_seen(&all);
}
