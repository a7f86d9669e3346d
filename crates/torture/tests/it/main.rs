//! A slice of each kind of trial.

#![expect(clippy::unwrap_used, reason = "a test says so by stopping")]

use foldback_testkit::effort;
use foldback_torture::kill::{self, POINTS, Program};
use foldback_torture::{Error, Report, fault, flip, history, power_cut, simulation};
use std::path::Path;

fn program() -> Program<'static> {
    Program(Path::new(env!("CARGO_BIN_EXE_torture")))
}

/// The report, printed; `None`, with a word about it, where there is no `strace`.
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

/// R1: two writers of one store are killed at any time: nothing acknowledged is lost, nothing else is there.
#[test]
fn r1_writers_that_are_killed_at_any_time_lose_nothing() {
    let report = report("kills", kill::at_random(program(), 14, effort(100).into())).unwrap();
    assert!(report.counted("children that worked") > report.trials / 2, "{report}");
}

/// R1: ended at each named point of the write route, a writer loses nothing, and the next one goes on.
#[test]
fn r1_writers_that_end_at_a_named_point_lose_nothing() {
    for point in POINTS {
        let report =
            report(point, kill::at_point(program(), point, 14, effort(4).div_ceil(2))).unwrap();
        assert!(report.counted(point) > 0, "{point} was never reached: {report}");
    }
}

/// R2: whatever of the writes that were not synced reaches the disk, nothing acknowledged is lost.
#[test]
fn r2_a_power_cut_loses_nothing() {
    let images = power_cut::images(program(), 14, 100, effort(1_000).into());
    if let Some(report) = report("power cuts", images) {
        assert!(report.counted("messages acknowledged") > 100, "{report}");
    }
}

/// R3: a system call that fails, once or from then on, loses nothing and ends in no panic.
#[test]
fn r3_failing_system_calls_lose_nothing() {
    let most = effort(200) as usize;
    if let Some(report) = report("faults", fault::calls(program(), 14, 50, Some(most))) {
        assert!(report.counted("runs that ended with an error") > 10, "{report}");
    }
}

/// R4: a bit that flips anywhere in a store is no wrong answer, and a repair makes nothing worse.
#[test]
fn r4_flipped_bits_are_no_wrong_answers() {
    let report = report("flips", flip::bytes(14, effort(1_200).into())).unwrap();
    assert!(report.counted("database: something lost, noticed") > 5, "{report}");
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

/// R10: one order of all that was done explains what four writers and four readers saw.
#[test]
fn r10_histories_of_processes_are_linearizable() {
    let milliseconds = effort(20_000).into();
    let report =
        report("histories", history::of_processes(program(), 14, (4, 4), milliseconds)).unwrap();
    for what in
        ["messages appended", "counts", "searches that found", "todos forgotten", "todos not seen"]
    {
        assert!(report.counted(what) > 20, "{what}: {report}");
    }
}
