//! Breaks stores that two machines share over a PostgreSQL server, which is started for the trials.

use crate::kill::{self, Program, Turns};
use crate::work::Setup;
use crate::{Acknowledged, Error, Place, Report, history};
use foldback_testkit::Random;
use foldback_testkit::postgres::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::thread::sleep;
use std::time::Duration;

/// Kills a writer of each machine at random times, as [`kill::at_random`] does.
///
/// # Errors
/// When no server is installed, or a child cannot be started.
pub fn kills(program: Program<'_>, seed: u64, kills: u64) -> Result<Report, Error> {
    let server = Server::start("kills").ok_or(Error::Server)?;
    kill::at_random(program, seed, kills, &|| Place::database(server.database()))
}

/// Ends a writer when it reaches this point, one of [`kill::SHARED_POINTS`], for the first, second, .. and `times`-th time, each
/// time on a new store. A writer of the other machine has made the store, and works on it afterwards.
///
/// # Errors
/// When no server is installed, or a child cannot be started.
pub fn at_point(program: Program<'_>, point: &str, seed: u64, times: u32) -> Result<Report, Error> {
    let server = Server::start("points").ok_or(Error::Server)?;
    let mut report = Report::default();
    let mut dice = Random::new(seed);
    for time in 1..=times {
        let end_at = format!("{point}:{time}");
        let place = &Place::database(server.database())?;
        // Each machine has an audit log of its own, and only one is read afterwards.
        let setup = Setup::of(seed).unguarded().in_database(place.address());
        let turns = Turns { program, seed, setup, place, steps: 80 };
        // It ends before: only a copy of more than one chunk is written in several commits.
        let long = Turns { steps: 1_500, ..turns };
        let mut acknowledged = Acknowledged::default();
        for (turns, machine, end_at) in
            [(turns, 0, None), (long, 1, Some(&*end_at)), (turns, 1, None), (turns, 0, None)]
        {
            turns.run(&mut dice, &mut acknowledged, (machine, end_at), &mut report)?;
        }
        report.trials += 1;
    }
    Ok(report)
}

/// Checks what four writers and four readers on two machines see, as [`history::of_processes`] does. The clocks of the
/// machines are an hour apart. After a third of the time the first writer is suspended, and the server is killed with
/// all that it was doing; it comes back at once, and the writer after another third.
///
/// # Errors
/// When no server is installed, or a child cannot be started or ends with an error.
pub fn histories(program: Program<'_>, seed: u64, milliseconds: u64) -> Result<Report, Error> {
    let mut server = Server::start("histories").ok_or(Error::Server)?;
    let place = Place::database(server.database())?;
    let third = Duration::from_millis(milliseconds / 3);
    history::of_processes(program, seed, &place, (4, 4), milliseconds, |processes| {
        sleep(third);
        let writer = processes.first().and_then(|id| Pid::from_raw(*id as i32));
        let signal = |signal| writer.is_some_and(|writer| kill_process(writer, signal).is_ok());
        signal(Signal::STOP);
        server.kill();
        server.restart();
        sleep(third);
        signal(Signal::CONT);
    })
}
