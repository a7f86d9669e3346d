//! One of the processes of a history.

use super::{Event, Span, line};
use crate::work::{SHARED, Setup, todo, word};
use crate::{Error, doing};
use foldback::core::Message;
use foldback::{ErrorKind, Memory, Mode, SearchRequest};
use foldback_testkit::Random;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::Path;

/// A worker that is one of the processes, and reports what it did.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    /// Its number: those below `writers` write, the others read.
    pub number: u32,
    /// How many write.
    pub writers: u32,
    /// The seed that determines what it does.
    pub seed: u64,
    /// How long it works.
    pub milliseconds: u64,
    /// How the store is opened.
    pub setup: Setup,
}

impl Worker {
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
        let memory = Memory::open(store, self.setup.options()?)?;
        let mut shared = memory.session(&todo(SHARED))?;
        let writer = self.number;
        let (mut n, mut weed) = (0, 0);
        while now() < end {
            if dice.below(8) > 0 {
                let message = Message::user(&text(writer, n));
                say(out, Event::Appended { writer, n }, || {
                    Ok(shared.record(message).map(drop)?)
                })?;
                n += 1;
                continue;
            }
            let id = todo(&weed_name(writer, weed));
            let make =
                || Ok(memory.session(&id)?.record(Message::user("soon forgotten")).map(drop)?);
            say(out, Event::Made { writer, weed }, make)?;
            let forget = || Ok(memory.maintenance().forget(&id).map(drop)?);
            say(out, Event::Forgot { writer, weed }, forget)?;
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
        let memory = Memory::open(store, self.setup.options()?.with_mode(Mode::ReadOnly))?;
        let shared = todo(SHARED);
        // The last message seen of each writer: the worker asks for those around it.
        let mut newest: Vec<u64> = vec![0; self.writers as usize];
        let mut weeds = newest.clone();
        while now() < end {
            let writer = dice.below(self.writers as usize);
            match dice.below(3) {
                0 => {
                    let messages = seen(
                        out,
                        || Ok(memory.len(&shared)?),
                        |&messages| Event::Counted { messages },
                    )?;
                    for message in memory.messages(&shared, messages.saturating_sub(4)..messages)? {
                        if let Some((writer, n)) = named(&message.text()) {
                            newest[writer as usize] = n.max(newest[writer as usize]);
                        }
                    }
                }
                1 => {
                    let n = (newest[writer] + 2).saturating_sub(dice.below(6) as u64);
                    let find = || finds(&memory, writer as u32, n);
                    seen(out, find, |&is_found| Event::Searched {
                        writer: writer as u32,
                        n,
                        is_found,
                    })?;
                }
                _ => {
                    let weed = weeds[writer];
                    let look = || is_there(&memory, writer as u32, weed);
                    let is_there = seen(out, look, |&is_there| Event::Looked {
                        writer: writer as u32,
                        weed,
                        is_there,
                    })?;
                    if !is_there && dice.below(4) == 0 {
                        weeds[writer] += 1;
                    }
                }
            }
        }
        Ok(())
    }
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
