//! Records histories of concurrent processes, and checks whether one order of all calls explains what each of them saw.
//!
//! Writers append to one todo and create and forget others; readers count, search and look for todos. Each notes when a
//! call began and ended, by the machine's monotonic clock. The store is linearizable (Herlihy and Wing, TOPLAS 1990) if
//! every call seems to happen at one moment between the two. In general that is hard to decide; here each message has a
//! place that everybody sees afterwards, so it takes a few comparisons per call.

mod judge;
mod worker;

pub use worker::Worker;

use crate::kill::Program;
use crate::work::{SHARED, Setup, todo};
use crate::{Error, Place, Report, doing};
use foldback::Memory;
use foldback_testkit::Random;
use judge::contradictions;
use std::io::Read;
use std::process::{Child, Stdio};
use worker::named;

/// When a call began and ended, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    begin: u64,
    end: u64,
}

/// What one call did or saw. A message is identified by its writer and its number among that writer's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Appended { writer: u32, n: u64 },
    Counted { messages: u64 },
    Searched { writer: u32, n: u64, is_found: bool },
    Made { writer: u32, weed: u64 },
    Forgot { writer: u32, weed: u64 },
    Looked { writer: u32, weed: u64, is_there: bool },
}

/// Runs writers and readers on a new store for a time, and checks what they saw. While they work, `disturb` breaks the
/// server or the writers; it gets the ids of their processes, the writers' first.
///
/// # Errors
/// When a child cannot be started, or ends with an error.
pub fn of_processes(
    program: Program<'_>,
    seed: u64,
    place: &Place,
    (writers, readers): (u32, u32),
    milliseconds: u64,
    disturb: impl FnOnce(&[u32]),
) -> Result<Report, Error> {
    let setup = Setup::of(seed).unguarded().in_database(place.address());
    drop(Memory::open(&place.store(0), setup.options()?)?.session(&todo(SHARED))?);
    let mut dice = Random::new(seed);
    let mut children = Vec::new();
    for number in 0..writers + readers {
        let seed = dice.below(1 << 40) as u64;
        let worker = Worker { number, writers, seed, milliseconds, setup };
        let mut command = program.observe(&place.store(number), worker);
        children.push(command.stdout(Stdio::piped()).spawn().map_err(doing("start a child"))?);
    }
    disturb(&children.iter().map(Child::id).collect::<Vec<_>>());
    let mut history = Vec::new();
    for mut child in children {
        let mut text = String::new();
        if let Some(mut out) = child.stdout.take() {
            out.read_to_string(&mut text).map_err(doing("read what a child says"))?;
        }
        let ended = child.wait().map_err(doing("wait for a child"))?;
        if !ended.success() {
            return Err(Error::Child(ended.to_string()));
        }
        history.extend(text.lines().filter_map(read));
    }
    let memory = Memory::open(&place.store(0), setup.options()?)?;
    let id = todo(SHARED);
    let messages = memory.messages(&id, 0..memory.len(&id)?)?;
    let order: Vec<(u32, u64)> = messages.iter().filter_map(|m| named(&m.text())).collect();
    let mut report = Report { trials: 1, ..Report::default() };
    for (_, event) in &history {
        report.count(match event {
            Event::Appended { .. } => "messages appended",
            Event::Counted { .. } => "counts",
            Event::Searched { is_found: true, .. } => "searches that found",
            Event::Searched { .. } => "searches that found nothing",
            Event::Made { .. } => "todos made",
            Event::Forgot { .. } => "todos forgotten",
            Event::Looked { is_there: true, .. } => "todos seen",
            Event::Looked { .. } => "todos not seen",
        });
    }
    let mut findings = contradictions(&history, &order);
    findings.extend(memory.maintenance().doctor()?.findings);
    report.found(seed, "history", findings);
    Ok(report)
}

fn line(Span { begin, end }: Span, event: Event) -> String {
    let words = match event {
        Event::Appended { writer, n } => format!("appended {writer} {n} 1"),
        Event::Counted { messages } => format!("counted 0 {messages} 1"),
        Event::Searched { writer, n, is_found } => {
            format!("searched {writer} {n} {}", u8::from(is_found))
        }
        Event::Made { writer, weed } => format!("made {writer} {weed} 1"),
        Event::Forgot { writer, weed } => format!("forgot {writer} {weed} 1"),
        Event::Looked { writer, weed, is_there } => {
            format!("looked {writer} {weed} {}", u8::from(is_there))
        }
    };
    format!("{begin} {end} {words}")
}

fn read(line: &str) -> Option<(Span, Event)> {
    let mut words = line.split(' ');
    let span = Span { begin: words.next()?.parse().ok()?, end: words.next()?.parse().ok()? };
    let kind = words.next()?;
    let (writer, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let is = words.next()? == "1";
    let event = match kind {
        "appended" => Event::Appended { writer, n },
        "counted" => Event::Counted { messages: n },
        "searched" => Event::Searched { writer, n, is_found: is },
        "made" => Event::Made { writer, weed: n },
        "forgot" => Event::Forgot { writer, weed: n },
        "looked" => Event::Looked { writer, weed: n, is_there: is },
        _ => return None,
    };
    Some((span, event))
}
