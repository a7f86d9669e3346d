//! What a child process does with a store, as its seed has it.
//!
//! It appends to a todo of its own and to one that it shares with others, in single messages and in whole exchanges, some
//! of them with results that are kept as files; it makes todos and forgets them; it compacts and indexes. Each message
//! follows from its todo and its number, so that a check needs to know only how many there are.

use crate::{Error, doing};
use foldback::core::{Message, Timestamp, TodoId, ToolCall, ToolCallId};
use foldback::{IndexConfig, KNOWN_SECRET, Memory, Options, Session};
use foldback_testkit::Random;
use std::io::Write;
use std::path::Path;

/// Of 100 things that are done, so many are appends of a single message, and so many of a whole exchange; then todos
/// that are forgotten; the rest compacts.
const APPENDS: usize = 70;
const EXCHANGES: usize = 15;
const FORGETS: usize = 10;

/// The todo that all writers share.
pub const SHARED: &str = "shared";

/// How a store is opened in all trials: indexes begin early, so that they are written at all.
#[must_use]
pub fn options() -> Options {
    let index = IndexConfig::default().with_index_after_blocks(6).with_batch_blocks(3);
    let options = Options::default().with_index(index).with_secret(KNOWN_SECRET);
    options.with_clock(|| Timestamp(1_700_000_000_000))
}

/// What one writer does.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Its number, of which its todos are named.
    pub writer: u32,
    /// What it does follows from this.
    pub seed: u64,
    /// How many things it does.
    pub steps: u64,
    /// How many messages it has in the shared todo already.
    pub shared: u64,
}

impl Work {
    /// Does it, and says each thing on `out` once it is durable.
    ///
    /// # Errors
    /// When the store fails.
    pub fn run(self, store: &Path, out: &mut dyn Write) -> Result<(), Error> {
        let memory = Memory::open(store, options())?;
        let own = todo(&own_name(self.writer));
        let mut kept = memory.session(&own)?;
        let mut shared = memory.session(&todo(SHARED))?;
        let mut shared_count = self.shared;
        let mut dice = Random::new(self.seed);
        let mut say = |words: String| {
            writeln!(out, "{words}").and_then(|()| out.flush()).map_err(doing("acknowledge"))
        };
        let writer = self.writer;
        for step in 0..self.steps {
            match dice.below(100) {
                one if one < APPENDS => {
                    append(&mut kept, own.as_str(), 1)?;
                    say(format!("kept {writer} {}", kept.len()))?;
                    if one % 4 == 0 {
                        shared.record(shared_message(writer, shared_count))?;
                        shared_count += 1;
                        say(format!("shared {writer} {shared_count}"))?;
                    }
                }
                one if one < APPENDS + EXCHANGES => {
                    let rest = 4 - kept.len() % 4;
                    append(&mut kept, own.as_str(), rest)?;
                    say(format!("kept {writer} {}", kept.len()))?;
                }
                one if one < APPENDS + EXCHANGES + FORGETS => {
                    let name = format!("weed-{writer}-{:x}-{step}", self.seed);
                    let weed = todo(&name);
                    append(&mut memory.session(&weed)?, &name, 4)?;
                    memory.maintenance().forget(&weed)?;
                    say(format!("forgotten {name}"))?;
                }
                one if one % 2 == 0 => {
                    compact(&memory)?;
                    say("compacted".to_owned())?;
                }
                _ => {
                    memory.maintenance().index()?;
                    say("indexed".to_owned())?;
                }
            }
        }
        Ok(())
    }
}

/// Space is returned where no other process keeps old pages in use.
fn compact(memory: &Memory) -> Result<(), Error> {
    match memory.maintenance().compact() {
        Err(error) if error.kind() == foldback::ErrorKind::Locked => Ok(()),
        done => Ok(done?),
    }
}

fn append(session: &mut Session, name: &str, count: u64) -> Result<(), Error> {
    let next = session.len();
    session.record_all((next..next + count).map(|n| message(name, n)).collect())?;
    Ok(())
}

/// The name of a writer's own todo.
#[must_use]
pub fn own_name(writer: u32) -> String {
    format!("kept-{writer}")
}

/// The message of this number in a todo of this name: a request, a call, its result and a reply take turns.
#[must_use]
pub fn message(name: &str, n: u64) -> Message {
    let (exchange, id) = (n / 4, format!("call_{}", n / 4));
    match n % 4 {
        0 => Message::user(&format!("{name}: please look at part {exchange} (第{exchange}部分).")),
        1 => {
            let arguments = serde_json::json!({ "path": format!("{name}/part-{exchange}.rs") });
            Message::calls("", vec![ToolCall::new(&id, "read_file", &arguments.to_string())])
        }
        2 => Message::tool_result(&ToolCallId::new(&id), &result(name, exchange)),
        _ => Message::assistant(&format!("I have read part {exchange} of {name}.")),
    }
}

/// Every third result is kept outside its message, and every ninth in a file of its own, which it takes more than 64 KiB
/// for; all are different.
fn result(name: &str, exchange: u64) -> String {
    let lines = match exchange % 9 {
        0 => 2_600,
        3 | 6 => 260,
        _ => 2,
    };
    let line = |n: u64| format!("{name} {exchange}.{n}: 值 {}\n", n * 7_919 % 10_007);
    (0..lines).map(line).collect()
}

/// A message of one writer in the shared todo.
#[must_use]
pub fn shared_message(writer: u32, n: u64) -> Message {
    Message::user(&format!("writer {writer} says {n}"))
}

/// A name of these trials is a todo's id.
#[expect(clippy::expect_used, reason = "the names are made of letters, digits and hyphens")]
pub(crate) fn todo(name: &str) -> TodoId {
    TodoId::new(name).expect("a name of these trials is an id")
}
