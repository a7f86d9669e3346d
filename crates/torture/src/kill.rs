//! Kills processes: at any time, and at each named point of the write path.

use crate::history::Worker;
use crate::work::{Setup, Work};
use crate::{Acknowledged, Error, Place, Report, doing};
use foldback_testkit::Random;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// The named points that every store reaches. Tests check that all points of the source are listed, here or as those of
/// several machines, and that each is reached.
pub const POINTS: [&str; 27] = [
    "backend-store.temp.created",
    "backend-store.payload.written",
    "backend-store.payload.synced",
    "backend-store.payload.renamed",
    "backend-store.payload.published",
    "backend-store.todo.removed",
    "blockstore.index.cleared",
    "blockstore.index.vectors-written",
    "blockstore.index.committed",
    "blockstore.volume.committed",
    "blockstore.catalogue.written",
    "blockstore.catalogue.renamed",
    "foldback.record.drafted",
    "foldback.record.committed",
    "foldback.forget.records-gone",
    "foldback.forget.payloads-gone",
    "foldback.forget.index-gone",
    "kv.folder.begun",
    "kv.folder.made",
    "kv.folder.finished",
    "kv.sqlite.published",
    "kv.commit.begun",
    "kv.commit.applied",
    "kv.commit.durable",
    "kv.commit.witnessed",
    "kv.compact.log-emptied",
    "kv.compact.done",
];

/// The named points that only stores of several machines reach.
pub const SHARED_POINTS: [&str; 3] =
    ["blockstore.copy.chunk-written", "blockstore.copy.written", "blockstore.copy.received"];

/// The program that works as a child: `PROGRAM child ...`.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a>(pub &'a Path);

impl Program<'_> {
    /// Returns the command of a child that does this work on a store.
    pub(crate) fn work(self, store: &Path, work: Work<'_>) -> Command {
        let mut command = Command::new(self.0);
        command.arg("child").arg("--store").arg(store).stdin(Stdio::null());
        command.args(work.setup.is_guarded.then_some("--guarded"));
        command.args(work.setup.is_encrypted.then_some("--encrypted"));
        command.arg("--engine").arg(work.setup.engine.name());
        command.args(work.setup.database.into_iter().flat_map(|address| ["--database", address]));
        for (name, value) in [
            ("--writer", u64::from(work.writer)),
            ("--seed", work.seed),
            ("--shared", work.shared),
            ("--steps", work.steps),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command
    }

    /// Returns the command of a child that works for a time and reports what it saw.
    pub(crate) fn observe(self, store: &Path, worker: Worker<'_>) -> Command {
        let mut command = Command::new(self.0);
        command.arg("observe").arg("--store").arg(store).stdin(Stdio::null());
        command.args(worker.setup.is_encrypted.then_some("--encrypted"));
        command.args(worker.setup.database.into_iter().flat_map(|address| ["--database", address]));
        for (name, value) in [
            ("--worker", u64::from(worker.number)),
            ("--writers", u64::from(worker.writers)),
            ("--milliseconds", worker.milliseconds),
            ("--seed", worker.seed),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command
    }
}

/// How many kills one store gets before the next begins.
const OF_ONE_STORE: u64 = 20;

/// The longest time that children work before they are killed, in microseconds.
const LONGEST: usize = 200_000;

/// Kills two writers of one store at random times, `kills` times: alternately some time after they were started, and
/// after the first has acknowledged something, however slow the machine is. `new_place` makes the place of each store.
///
/// # Errors
/// When a child cannot be started.
pub fn at_random(
    program: Program<'_>,
    seed: u64,
    kills: u64,
    new_place: &dyn Fn() -> Result<Place, Error>,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut dice = Random::new(seed);
    let mut store = None;
    for kill in 0..kills {
        let (place, acknowledged) = match &mut store {
            Some(store) if kill % OF_ONE_STORE != 0 => store,
            _ => store.insert((new_place()?, Acknowledged::default())),
        };
        let mut setup = Setup::of(seed).in_database(place.address());
        if place.address().is_some() {
            // Each machine has an audit log of its own, and only one is read afterwards.
            setup = setup.unguarded();
        }
        let mut children = Vec::new();
        for writer in 0..2 {
            let shared = acknowledged.shared_of(writer);
            let seed = dice.below(1 << 40) as u64;
            let work = Work { writer, seed, steps: 1_000_000, shared, setup };
            children.push(Heard::spawn(program.work(&place.store(writer), work))?);
        }
        let before = acknowledged.clone();
        if kill % 2 == 1 {
            children[0].hear_line(acknowledged)?;
        }
        let wait = dice.below(LONGEST);
        thread::sleep(Duration::from_micros(wait as u64));
        for heard in &mut children {
            heard.child.kill().map_err(doing("kill a child"))?;
        }
        for heard in children {
            heard.hear_rest(acknowledged)?;
        }
        if *acknowledged != before {
            report.count("kills of children that worked");
        }
        report.trials += 1;
        let findings = acknowledged.check(&place.store(kill as u32), setup);
        let is_broken = !findings.is_empty();
        report.found(seed, &format!("kill {kill} after {wait} us"), findings);
        if is_broken {
            store = None;
        }
    }
    Ok(report)
}

/// Ends a writer when it reaches this point for the first, second, .. and `times`-th time, each time on a new store.
///
/// # Errors
/// When a child cannot be started.
pub fn at_point(program: Program<'_>, point: &str, seed: u64, times: u32) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut dice = Random::new(seed);
    for time in 1..=times {
        let end_at = format!("{point}:{time}");
        let (setup, place) = (Setup::of(seed), &Place::folder()?);
        let turns = Turns { program, seed, setup, place, steps: 160 };
        let mut acknowledged = Acknowledged::default();
        // The second child has no end point: what the first has left must not stop it.
        for end_at in [Some(&*end_at), None] {
            turns.run(&mut dice, &mut acknowledged, (0, end_at), &mut report)?;
        }
        report.trials += 1;
    }
    Ok(report)
}

/// Writers of one store, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'a> {
    pub(crate) program: Program<'a>,
    /// The seed of the trial.
    pub(crate) seed: u64,
    pub(crate) setup: Setup<'a>,
    pub(crate) place: &'a Place,
    /// How many steps each makes.
    pub(crate) steps: u64,
}

impl Turns<'_> {
    /// Starts a child on the machine of this number, and checks the store after it. With `POINT:N`, the child ends when it
    /// reaches the point for the Nth time.
    pub(crate) fn run(
        self,
        dice: &mut Random,
        acknowledged: &mut Acknowledged,
        (machine, end_at): (u32, Option<&str>),
        report: &mut Report,
    ) -> Result<(), Error> {
        let Self { program, setup, steps, .. } = self;
        let store = self.place.store(machine);
        let (seed, shared) = (dice.below(1 << 40) as u64, acknowledged.shared_of(0));
        let mut command = program.work(&store, Work { writer: 0, seed, steps, shared, setup });
        command.args(end_at.into_iter().flat_map(|end_at| ["--end-at", end_at]));
        let ended = Heard::spawn(command)?.hear_rest(acknowledged)?;
        let point = end_at.and_then(|end_at| end_at.split_once(':')).map(|(point, _)| point);
        match (point, ended.success()) {
            (Some(point), false) => report.count(point),
            (_, true) => {}
            (None, false) => report.found(self.seed, "the next writer", vec![ended.to_string()]),
        }
        if store.exists() {
            let findings = acknowledged.check(&store, setup);
            report.found(self.seed, end_at.unwrap_or("after"), findings);
        }
        Ok(())
    }
}

/// A child process and its output.
struct Heard {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Heard {
    fn spawn(mut command: Command) -> Result<Self, Error> {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(doing("start a child"))?;
        let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe.into());
        Ok(Self { child, out: BufReader::new(out.map_err(doing("read from a child"))?) })
    }

    /// Waits for one line, or for the end of the child.
    fn hear_line(&mut self, acknowledged: &mut Acknowledged) -> Result<(), Error> {
        hear_line(&mut self.out, acknowledged).map(drop)
    }

    /// Takes the rest of what the child prints.
    fn hear_rest(mut self, acknowledged: &mut Acknowledged) -> Result<ExitStatus, Error> {
        listen(&mut self.out, acknowledged)?;
        self.child.wait().map_err(doing("wait for a child"))
    }
}

/// Takes everything that a process prints.
pub(crate) fn listen(mut out: impl BufRead, acknowledged: &mut Acknowledged) -> Result<(), Error> {
    while hear_line(&mut out, acknowledged)? {}
    Ok(())
}

/// Takes a line; `false` if there is no more. The end of the process may have cut the last line short; then it is
/// skipped.
fn hear_line(out: &mut impl BufRead, acknowledged: &mut Acknowledged) -> Result<bool, Error> {
    let mut line = String::new();
    let read = out.read_line(&mut line).map_err(doing("read the output of a child"))?;
    if let Some(whole) = line.strip_suffix('\n') {
        acknowledged.hear(whole);
    }
    Ok(read > 0)
}
