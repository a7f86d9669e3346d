//! Power cuts: checks what a disk may hold when the power fails at any moment of a run.
//!
//! A run is traced: each write, each sync, each change of a name, and each line that is printed (the acknowledgements).
//! The trace gives images of the store as a disk may hold it at some moment: everything that was synced; some of the
//! other writes, in any order, the last of them torn at a sector of 512 bytes; and some of the other changes of names,
//! in their order. That is the method of CrashMonkey (Mohan et al., OSDI 2018) and ALICE (Pillai et al., OSDI 2014).
//! The disk has a file system that journals names: no rename or removal survives if an earlier one of the same run is
//! lost.

mod disk;
mod trace;

use crate::kill::Program;
use crate::place::folder;
use crate::work::{Setup, Work};
use crate::{Acknowledged, Error, Report, doing};
use disk::Disk;
use foldback::Engine;
use foldback_testkit::Random;
use std::path::Path;
use trace::Event;

/// Traces a run of `steps` steps and checks `images` images of it.
///
/// # Errors
/// When `strace` is missing, or a folder cannot be created.
pub fn images(
    program: Program<'_>,
    engine: Engine,
    seed: u64,
    steps: u64,
    images: u64,
) -> Result<Report, Error> {
    let dir = folder()?;
    let store = dir.path().join("store");
    let setup = Setup::of(seed).on(engine);
    let work = Work { writer: 0, seed, steps, shared: 0, setup };
    let events = trace::of(&program.work(&store, work), &dir.path().join("trace"))?;
    let mut report = Report::default();
    report.counts.insert("system calls traced".to_owned(), events.len() as u64);

    let mut dice = Random::new(seed);
    let mut moments = moments(&events, images, &mut dice);
    moments.sort_unstable();
    let mut disk = Disk::new(dir.path());
    let mut acknowledged = Acknowledged::default();
    let mut next = 0;
    for (at, event) in events.iter().enumerate() {
        while moments.get(next) == Some(&at) {
            next += 1;
            let findings = check(&disk, &acknowledged, setup, &mut dice)?;
            report.trials += 1;
            report.found(seed, &format!("before system call {at}, {event}"), findings);
        }
        match event {
            Event::Said(line) => acknowledged.hear(line),
            event => disk.take(event),
        }
    }
    report.count("runs");
    *report.counts.entry("messages acknowledged".to_owned()).or_default() +=
        acknowledged.messages();
    Ok(report)
}

/// Returns the moments to check: two in three just before or after a sync, the others anywhere.
fn moments(events: &[Event], images: u64, dice: &mut Random) -> Vec<usize> {
    let is_sync = |at: &usize| matches!(events[*at], Event::Sync { .. });
    let syncs: Vec<usize> = (0..events.len()).filter(is_sync).collect();
    let around = |dice: &mut Random| match syncs.get(dice.below(syncs.len())) {
        Some(sync) => sync + dice.below(2),
        None => 0,
    };
    let pick = |_| if dice.below(3) == 0 { dice.below(events.len()) } else { around(dice) };
    (0..images).map(pick).map(|at| at.min(events.len().saturating_sub(1))).collect()
}

/// Writes one image and checks it.
fn check(
    disk: &Disk,
    acknowledged: &Acknowledged,
    setup: Setup<'_>,
    dice: &mut Random,
) -> Result<Vec<String>, Error> {
    let dir = folder()?;
    let store = dir.path().join("store");
    disk.write_image(dir.path(), dice).map_err(doing("write an image"))?;
    if !is_store(&store) {
        // Before the store was created, nothing can have been acknowledged.
        let nothing = acknowledged.messages() == 0;
        return Ok(if nothing { vec![] } else { vec!["the store is gone".to_owned()] });
    }
    Ok(acknowledged.clone().check_after_power_cut(&store, setup))
}

fn is_store(store: &Path) -> bool {
    store.join("FORMAT").exists()
}
