//! `torture` runs the trials for a time, and is also the child process that they end.

use clap::{Args, Parser, Subcommand};
use foldback::Engine;
use foldback_core::fail;
use foldback_testkit::Random;
use foldback_torture::history::{self, Worker};
use foldback_torture::kill::{self, Program};
#[cfg(feature = "postgres")]
use foldback_torture::machines;
use foldback_torture::work::{Setup, Work};
use foldback_torture::{Error, Place, Report, fault, flip, power_cut, simulation};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Breaks stores on purpose, and compares what is left with what was acknowledged.
#[derive(Parser)]
struct Torture {
    #[command(subcommand)]
    child: Option<Child>,

    /// How long to run, in minutes
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,

    /// The first seed; a failure reports the seed that repeats it
    #[arg(long)]
    seed: Option<u64>,

    /// Run only trials of this kind
    #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(KINDS.iter().map(|(kind, _)| *kind)))]
    only: Option<String>,
}

#[derive(Subcommand)]
enum Child {
    /// Works on a store, and prints each change once it is durable
    #[command(hide = true, name = "child")]
    Work(ChildArgs),
    /// Works on a store for a time, concurrently with others, and prints what it saw
    #[command(hide = true)]
    Observe(ObserverArgs),
}

#[derive(Args)]
struct ChildArgs {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    writer: u32,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    shared: u64,
    #[arg(long)]
    steps: u64,
    /// Opens the store with redaction, an audit log and quotas
    #[arg(long)]
    guarded: bool,
    /// Opens the store with a key
    #[arg(long)]
    encrypted: bool,
    #[arg(long)]
    engine: Engine,
    /// The address of the database that keeps the records instead
    #[arg(long)]
    database: Option<String>,
    /// POINT:N ends the process when it reaches the point for the Nth time
    #[arg(long)]
    end_at: Option<String>,
}

#[derive(Args)]
struct ObserverArgs {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    worker: u32,
    #[arg(long)]
    writers: u32,
    #[arg(long)]
    milliseconds: u64,
    #[arg(long)]
    seed: u64,
    /// Opens the store with a key
    #[arg(long)]
    encrypted: bool,
    /// The address of the database that keeps the records
    #[arg(long)]
    database: Option<String>,
}

type Kind = fn(Program<'_>, u64) -> Result<Report, Error>;

/// The kinds of trials, run in turns of some seconds each.
const KINDS: &[(&str, Kind)] = &[
    ("kills", |program, seed| kill::at_random(program, seed, 20, &Place::folder)),
    ("points", |program, seed| {
        let mut dice = Random::new(seed);
        let point = kill::POINTS[dice.below(kill::POINTS.len())];
        kill::at_point(program, point, seed, 4)
    }),
    ("power-cuts", |program, seed| power_cut::images(program, Engine::Sqlite, seed, 200, 200)),
    ("power-cuts-redb", |program, seed| power_cut::images(program, Engine::Redb, seed, 200, 200)),
    ("faults", |program, seed| fault::calls(program, Engine::Sqlite, seed, 50, Some(20))),
    ("faults-redb", |program, seed| fault::calls(program, Engine::Redb, seed, 50, Some(20))),
    ("flips", |_, seed| flip::bytes(seed, 200)),
    ("histories", |program, seed| {
        history::of_processes(program, seed, &Place::folder()?, (4, 4), 10_000, |_| {})
    }),
    ("simulation", |_, seed| simulation::histories(seed, 100, 100)),
    #[cfg(feature = "postgres")]
    ("points-postgres", |program, seed| {
        let mut dice = Random::new(seed);
        let point = kill::SHARED_POINTS[dice.below(kill::SHARED_POINTS.len())];
        machines::at_point(program, point, seed, 2)
    }),
    #[cfg(feature = "postgres")]
    ("kills-postgres", |program, seed| machines::kills(program, seed, 20)),
    #[cfg(feature = "postgres")]
    ("histories-postgres", |program, seed| machines::histories(program, seed, 10_000)),
];

fn main() -> ExitCode {
    let torture = Torture::parse();
    let done = match torture.child {
        Some(Child::Work(child)) => child.run(),
        Some(Child::Observe(observer)) => observer.run(),
        None => torture.run(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Standard error itself may be what fails.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(3)
        }
    }
}

impl Torture {
    fn run(self) -> Result<ExitCode, Error> {
        let program = std::env::current_exe()
            .map_err(|source| Error::Io { doing: "find this program", source })?;
        let mut seed = self.seed.unwrap_or(1);
        let until = Instant::now() + Duration::from_secs_f64(self.minutes * 60.0);
        let wanted = |kind: &str| self.only.as_deref().is_none_or(|only| only == kind);
        let mut reports: Vec<(&str, Report)> = Vec::new();
        loop {
            for &(kind, run) in KINDS.iter().filter(|(kind, _)| wanted(kind)) {
                let report = match run(Program(&program), seed) {
                    // A kind that cannot run here is reported, and the others continue.
                    Err(why @ (Error::Strace(_) | Error::Server)) => {
                        eprintln!("SKIPPED: {kind}: {why}");
                        continue;
                    }
                    report => report?,
                };
                report.failures.iter().for_each(|failure| {
                    eprintln!("FAILED: --only {kind} --seed {}: {}", failure.seed, failure.what);
                });
                match reports.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, sum)) => sum.add(report),
                    None => reports.push((kind, report)),
                }
            }
            seed += 1;
            if Instant::now() >= until {
                break;
            }
        }
        reports.iter().for_each(|(kind, report)| println!("{kind}: {report}"));
        let is_whole = reports.iter().all(|(_, report)| report.failures.is_empty());
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl ChildArgs {
    fn run(self) -> Result<ExitCode, Error> {
        if let Some((point, times)) = self.end_at.as_deref().and_then(|at| at.split_once(':')) {
            let left = AtomicU32::new(times.parse().unwrap_or(1));
            let reached = move || {
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    std::process::abort();
                }
            };
            // A point that is not compiled in is never reached; the parent reports that.
            let _ = fail::cfg_callback(point, reached);
        }
        let Self { writer, seed, steps, shared, engine, .. } = self;
        let (is_guarded, is_encrypted) = (self.guarded, self.encrypted);
        let setup = Setup { is_guarded, is_encrypted, engine, database: self.database.as_deref() };
        let work = Work { writer, seed, steps, shared, setup };
        work.run(&self.store, &mut std::io::stdout())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ObserverArgs {
    fn run(self) -> Result<ExitCode, Error> {
        let Self { store, worker: number, writers, milliseconds, seed, encrypted, database } = self;
        let setup = Setup { is_encrypted: encrypted, ..Setup::of(0) };
        let setup = setup.in_database(database.as_deref());
        // In one piece at the end, because a full pipe would make others wait.
        let mut said = Vec::new();
        Worker { number, writers, seed, milliseconds, setup }.run(&store, &mut said)?;
        let written = std::io::stdout().write_all(&said);
        written.map_err(|source| Error::Io { doing: "report what was seen", source })?;
        Ok(ExitCode::SUCCESS)
    }
}
