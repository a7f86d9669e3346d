//! One of the processes of a history.

use super::{Event, Span, line};
use crate::work::{NOW, SHARED, Setup, todo, word};
use crate::{Error, doing};
use foldback::core::{Message, Timestamp};
use foldback::{ErrorKind, Memory, Mode, Options, SearchRequest};
use foldback_testkit::Random;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// A worker that is one of the processes, and reports what it did.
#[derive(Debug, Clone, Copy)]
pub struct Worker<'a> {
    /// Its number: those below `writers` write, the others read.
    pub number: u32,
    /// How many write.
    pub writers: u32,
    /// The seed that determines what it does.
    pub seed: u64,
    /// How long it works.
    pub milliseconds: u64,
    /// How the store is opened.
    pub setup: Setup<'a>,
}

impl Worker<'_> {
    /// Does the work, and writes each event with its span to `out`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn run(self, store: &Path, out: &mut dyn Write) -> Result<(), Error> {
        let dice = Random::new(self.seed);
        let end = now() + self.milliseconds * 1_000_000;
        if self.number < self.writers {
            self.write(store, dice, end, out)
        } else {
            self.read(store, dice, end, out)
        }
    }

    fn write(
        self,
        store: &Path,
        mut dice: Random,
        end: u64,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let memory = Memory::open(store, self.options()?)?;
        let mut shared = memory.session(&todo(SHARED))?;
        let writer = self.number;
        let (mut n, mut weed) = (0, 0);
        while now() < end {
            if dice.below(8) > 0 {
                let message = Message::user(&text(writer, n));
                say(out, Event::Appended { writer, n }, || {
                    self.until_done(|| shared.record(message.clone()).map(drop))
                })?;
                n += 1;
                continue;
            }
            let id = todo(&weed_name(writer, weed));
            let make = || memory.session(&id)?.record(Message::user("soon forgotten")).map(drop);
            say(out, Event::Made { writer, weed }, || self.until_done(make))?;
            let mut tries = 0;
            let forget = || {
                tries += 1;
                match memory.maintenance().forget(&id) {
                    // A try before this one did it, and could not say so.
                    Err(error) if error.kind() == ErrorKind::NotFound && tries > 1 => Ok(()),
                    done => done.map(drop),
                }
            };
            say(out, Event::Forgot { writer, weed }, || self.until_done(forget))?;
            weed += 1;
        }
        Ok(())
    }

    fn read(
        self,
        store: &Path,
        mut dice: Random,
        end: u64,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let memory = Memory::open(store, self.options()?.with_mode(Mode::ReadOnly))?;
        // The last message and the last todo seen of each writer: the worker asks for those around them.
        let mut newest = vec![(0, 0); self.writers as usize];
        while now() < end {
            match look(&memory, &mut newest, &mut dice, out) {
                Err(Error::Memory(error))
                    if self.is_on_server() && error.kind() == ErrorKind::Io =>
                {
                    sleep(PAUSE);
                }
                looked => looked?,
            }
        }
        Ok(())
    }

    /// Returns the options. The clocks of two machines are an hour apart.
    fn options(self) -> Result<Options, foldback::Error> {
        let hour = if self.is_on_server() { i64::from(self.number % 2) * 3_600_000 } else { 0 };
        Ok(self.setup.options()?.with_clock(move || Timestamp(NOW + hour)))
    }

    /// Returns whether the store is on a server, which may be away for a while, and on several machines.
    fn is_on_server(self) -> bool {
        self.setup.database.is_some()
    }

    /// Tries until it is done. An input or output error of a server that is away says that nothing was changed.
    fn until_done(
        self,
        mut what: impl FnMut() -> Result<(), foldback::Error>,
    ) -> Result<(), Error> {
        loop {
            match what() {
                Err(error) if self.is_on_server() && error.kind() == ErrorKind::Io => sleep(PAUSE),
                done => return Ok(done?),
            }
        }
    }
}

/// The time between two tries, or looks, at a server that is away.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks at the store once, in one of three ways.
fn look(
    memory: &Memory,
    newest: &mut [(u64, u64)],
    dice: &mut Random,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let shared = todo(SHARED);
    let writer = dice.below(newest.len());
    match dice.below(3) {
        0 => {
            let count = || Ok(memory.len(&shared)?);
            let messages = seen(out, count, |&messages| Event::Counted { messages })?;
            for message in memory.messages(&shared, messages.saturating_sub(4)..messages)? {
                if let Some((writer, n)) = named(&message.text()) {
                    let (last, _) = &mut newest[writer as usize];
                    *last = n.max(*last);
                }
            }
        }
        1 => {
            let n = (newest[writer].0 + 2).saturating_sub(dice.below(6) as u64);
            let writer = writer as u32;
            let find = || finds(memory, writer, n);
            seen(out, find, |&is_found| Event::Searched { writer, n, is_found })?;
        }
        _ => {
            let (_, weed) = &mut newest[writer];
            let (writer, asked) = (writer as u32, *weed);
            let look = || is_there(memory, writer, asked);
            let event = |&is_there: &bool| Event::Looked { writer, weed: asked, is_there };
            if !seen(out, look, event)? && dice.below(4) == 0 {
                *weed += 1;
            }
        }
    }
    Ok(())
}

/// Returns whether a message is found by a word that only it has.
fn finds(memory: &Memory, writer: u32, n: u64) -> Result<bool, Error> {
    let word = word(writer, n);
    let id = todo(SHARED);
    for hit in memory.search(&id, &SearchRequest::new(&word))?.hits {
        let messages = memory.messages(&id, hit.block.range.as_u64())?;
        if messages.iter().any(|message| named(&message.text()) == Some((writer, n))) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_there(memory: &Memory, writer: u32, weed: u64) -> Result<bool, Error> {
    match memory.find(&todo(&weed_name(writer, weed))) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn weed_name(writer: u32, weed: u64) -> String {
    format!("weed-{writer}-{weed}")
}

fn text(writer: u32, n: u64) -> String {
    format!("writer {writer} says {n}: {}", word(writer, n))
}

/// Returns the writer and the number in such a text.
pub(super) fn named(text: &str) -> Option<(u32, u64)> {
    let mut words = text.split([' ', ':']);
    let writer = words.nth(1)?.parse().ok()?;
    Some((writer, words.nth(1)?.parse().ok()?))
}

/// Returns the time of the machine's monotonic clock, which all processes share, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Does something and reports that it was done.
fn say(
    out: &mut dyn Write,
    event: Event,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    seen(out, work, |()| event)
}

/// Does something and reports what was seen.
fn seen<T>(
    out: &mut dyn Write,
    work: impl FnOnce() -> Result<T, Error>,
    event: impl FnOnce(&T) -> Event,
) -> Result<T, Error> {
    let begin = now();
    let answer = work()?;
    let span = Span { begin, end: now() };
    writeln!(out, "{}", line(span, event(&answer))).map_err(doing("report what was done"))?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_their_message() {
        assert_eq!(named(&text(3, 70)), Some((3, 70)));
        assert_ne!(word(3, 70), word(3, 71));
        assert_eq!(word(0, 1).len(), 12);
    }
}
