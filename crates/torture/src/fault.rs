//! Makes system calls fail: each one of a run, once or from then on, as on a full disk, on a broken disk, or by a
//! signal.
//!
//! With `strace -e inject` a call fails without being executed. Short writes are not among the faults: an injected
//! result would claim bytes that were never written.

use crate::kill::{Program, listen};
use crate::place::folder;
use crate::work::{Setup, Work};
use crate::{Acknowledged, Error, Report, doing};
use foldback::Engine;
use foldback_testkit::Random;
use std::io::BufReader;
use std::process::{Command, Stdio};

/// The calls that change files.
const CALLS: [&str; 9] =
    ["fsync", "fdatasync", "pwrite64", "write", "ftruncate", "rename", "unlink", "mkdir", "openat"];

const ERRORS: [&str; 3] = ["ENOSPC", "EIO", "EINTR"];

/// The exit code of a child that panics.
const PANIC: i32 = 101;

/// Makes the system calls of a run of `steps` steps fail, one in each trial: all of them, or `most` of them.
///
/// # Errors
/// When `strace` is missing, or a folder cannot be created.
pub fn calls(
    program: Program<'_>,
    engine: Engine,
    seed: u64,
    steps: u64,
    most: Option<usize>,
) -> Result<Report, Error> {
    let setup = Setup::of(seed).on(engine);
    let work = Work { writer: 0, seed, steps, shared: 0, setup };
    let mut report = Report::default();
    let mut faults = Vec::new();
    for call in CALLS {
        let count = counted(program, work, call)?;
        let each = (1..=count).flat_map(|n| ERRORS.map(|error| (n, error)));
        // A signal comes only once.
        let each = each.flat_map(|(n, error)| [(n, error, ""), (n, error, "+")]);
        faults
            .extend(each.filter(|(_, e, end)| *e != "EINTR" || end.is_empty()).map(|f| (call, f)));
    }
    report.counts.insert("possible faults of the run".to_owned(), faults.len() as u64);
    let mut dice = Random::new(seed);
    while let Some(most) = most.filter(|most| *most < faults.len()) {
        let gone = dice.below(faults.len());
        faults.swap_remove(gone);
        if faults.len() <= most {
            break;
        }
    }
    for (call, (n, error, end)) in faults {
        let dir = folder()?;
        let store = dir.path().join("store");
        let mut acknowledged = Acknowledged::default();
        let inject = format!("inject={call}:error={error}:when={n}{end}");
        let mut strace = strace(program, &store, work);
        strace[0].args(["-e", &format!("trace={call}"), "-e", &inject]);
        let [mut command, work] = strace;
        command.arg(work.get_program()).args(work.get_args());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let child = child.as_mut().map_err(|error| Error::Strace(error.to_string()))?;
        if let Some(out) = child.stdout.take() {
            listen(BufReader::new(out), &mut acknowledged)?;
        }
        let ended = child.wait().map_err(doing("wait for a child"))?;
        let trial = format!("{call} number {n}{end} with {error}");
        match ended.code() {
            Some(0) => report.count("runs that continued"),
            Some(PANIC) | None => report.found(seed, &trial, vec![format!("it ended: {ended}")]),
            Some(_) => report.count("runs that ended with an error"),
        }
        report.trials += 1;
        if store.join("FORMAT").exists() {
            report.found(seed, &trial, acknowledged.check(&store, setup));
        } else if acknowledged.messages() > 0 {
            report.found(seed, &trial, vec!["the store is gone".to_owned()]);
        }
    }
    Ok(report)
}

/// Returns how often a run makes a call.
fn counted(program: Program<'_>, work: Work<'_>, call: &str) -> Result<u64, Error> {
    let dir = folder()?;
    let log = dir.path().join("trace");
    let [mut command, work] = strace(program, &dir.path().join("store"), work);
    command.args(["-e", &format!("trace={call}"), "-e", "signal=none"]);
    // Of an option that is given twice, the last one counts.
    command.arg("-o").arg(&log).arg(work.get_program()).args(work.get_args());
    let ended = command.stdout(Stdio::null()).status();
    let ended = ended.map_err(|error| Error::Strace(error.to_string()))?;
    if !ended.success() {
        return Err(Error::Strace(format!("the traced process ended with {ended}")));
    }
    let text = std::fs::read_to_string(&log).map_err(doing("read a trace"))?;
    Ok(text.lines().filter(|line| !line.contains("resumed>")).count() as u64)
}

/// Returns the tracer without the command that it traces, and that command.
fn strace(program: Program<'_>, store: &std::path::Path, work: Work<'_>) -> [Command; 2] {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null"]).stdin(Stdio::null());
    [strace, program.work(store, work)]
}
