//! The work of a child process on a store, determined by its seed.
//!
//! It appends to a todo of its own and to a shared one, in single messages and in whole exchanges. Some results are
//! stored as files. It creates todos and forgets them, compacts and indexes. Each message is determined by its todo and
//! its number, so a check only needs to know how many there are. Some messages hold made-up secrets, which a
//! [guarded](Setup) store keeps sealed.

use crate::{Error, doing};
use foldback::core::{Message, Timestamp, TodoId, ToolCall, ToolCallId};
use foldback::kv::Server;
use foldback::{
    Audit, EncryptionKey, Engine, IndexConfig, KNOWN_SECRET, Memory, Options, Quota, Redaction,
    RedactionKey, Session,
};
use foldback_testkit::Random;
use std::io::Write;
use std::path::Path;

/// Of 100 steps, how many append a single message, append a whole exchange, and forget a todo; the rest compact or
/// index.
const APPENDS: usize = 70;
const EXCHANGES: usize = 15;
const FORGETS: usize = 10;

/// The time of every store, in milliseconds since 1970.
pub(crate) const NOW: i64 = 1_700_000_000_000;

/// The todo that all writers share.
pub const SHARED: &str = "shared";

/// How the store of a trial is opened, by its writers and by the check. The seed of the trial determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup<'a> {
    /// Whether secrets are replaced and sealed, look-ups are noted in the audit log, a todo's size is limited (by
    /// quotas that are never reached), and the store has a secret of its own.
    pub is_guarded: bool,
    /// Whether everything is encrypted.
    pub is_encrypted: bool,
    /// The engine that keeps the records.
    pub engine: Engine,
    /// The address of the database that keeps them instead.
    pub database: Option<&'a str>,
}

impl<'a> Setup<'a> {
    /// Returns the setup of a seed. Four seeds in a row have different ones: plain, guarded, encrypted, both.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let (is_guarded, is_encrypted) = (seed & 1 != 0, seed & 2 != 0);
        Self { is_guarded, is_encrypted, engine: Engine::Sqlite, database: None }
    }

    /// Returns the same setup without its guards.
    #[must_use]
    pub fn unguarded(self) -> Self {
        Self { is_guarded: false, ..self }
    }

    /// Returns the same setup on another engine.
    #[must_use]
    pub fn on(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// Returns the same setup with the records in a database, if there is one.
    #[must_use]
    pub fn in_database(self, database: Option<&'a str>) -> Self {
        Self { database, ..self }
    }

    /// Returns the options. Indexes begin early, so that they are written at all.
    ///
    /// # Errors
    /// Never, because the key is valid.
    pub fn options(self) -> Result<Options, foldback::Error> {
        let index = IndexConfig::default().with_index_after_blocks(6).with_batch_blocks(3);
        let options = Options::default().with_engine(self.engine).with_index(index);
        let mut options = options.with_clock(|| Timestamp(NOW));
        if let Some(address) = self.database {
            options = options.with_server(Server::new(address));
        }
        if self.is_encrypted {
            options = options.with_encryption(EncryptionKey::new([0x51; 32]));
        }
        if !self.is_guarded {
            return Ok(options.with_secret(KNOWN_SECRET));
        }
        let key: RedactionKey = "7f".repeat(32).parse()?;
        let quota = Quota::default().with_messages(1 << 40).with_bytes(1 << 50);
        let quota = quota.with_blocks(1 << 30).with_payload_bytes(1 << 40);
        let options = options.with_redaction(Redaction::default().with_key(key));
        Ok(options.with_quota(quota).with_audit(Audit::new("torture")))
    }

    /// Returns the messages of a todo as they were recorded: their sealed parts are opened.
    ///
    /// # Errors
    /// Those of [`Memory::messages`], and when a sealed part cannot be opened.
    pub fn messages(self, memory: &Memory, name: &str) -> Result<Vec<Message>, foldback::Error> {
        let id = todo(name);
        match self.is_guarded {
            true => Ok(memory.conversations().export_revealed(&id)?.messages),
            false => memory.messages(&id, 0..memory.len(&id)?),
        }
    }
}

/// The work of one writer.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// Its number. Its todos are named after it.
    pub writer: u32,
    /// The seed that determines its work.
    pub seed: u64,
    /// How many steps it makes.
    pub steps: u64,
    /// How many messages it already has in the shared todo.
    pub shared: u64,
    /// How the store is opened.
    pub setup: Setup<'a>,
}

impl Work<'_> {
    /// Does the work, and prints each change to `out` once it is durable.
    ///
    /// # Errors
    /// When the store fails.
    pub fn run(self, store: &Path, out: &mut dyn Write) -> Result<(), Error> {
        let memory = Memory::open(store, self.setup.options()?)?;
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
                    if self.setup.is_guarded && one % 4 == 1 {
                        memory.recall(&own, "list_blocks", "{}")?;
                        say("noted".to_owned())?;
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

/// Returns space to the file system, unless another process keeps old pages in use.
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

/// Returns the name of a writer's own todo.
#[must_use]
pub fn own_name(writer: u32) -> String {
    format!("kept-{writer}")
}

/// Returns the message of this number in a todo of this name: a request, a call, its result and a reply alternate.
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
        _ => {
            let token = token(exchange);
            Message::assistant(&format!("I have read part {exchange} of {name} with {token}."))
        }
    }
}

/// Returns a made-up token, a different one for each of 10,000 numbers.
fn token(n: u64) -> String {
    format!("{TOKEN}{:04}", n % 10_000)
}

/// The beginning of each token.
pub(crate) const TOKEN: &str = "ghp_0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k";

/// Returns a result. Every third one is stored outside its message, and every ninth, of more than 64 KiB, in a separate
/// file. All are different.
fn result(name: &str, exchange: u64) -> String {
    // The words of a file are few, because a check analyses all of them.
    let (lines, dashes) = match exchange % 9 {
        0 => (200, 350),
        3 | 6 => (260, 0),
        _ => (2, 0),
    };
    let dashes = "-".repeat(dashes);
    let line = |n: u64| format!("{name} {exchange}.{n}: 值 {}{dashes}\n", n * 7_919 % 10_007);
    (0..lines).map(line).collect()
}

/// Returns the `n`-th message of one writer in the shared todo.
#[must_use]
pub fn shared_message(writer: u32, n: u64) -> Message {
    match n % 8 {
        7 => Message::user(&format!("writer {writer} says {n} with {}", token(n))),
        _ => Message::user(&format!("writer {writer} says {n}")),
    }
}

/// Returns the todo id for a name of these trials.
#[expect(clippy::expect_used, reason = "the names are made of letters, digits and hyphens")]
pub(crate) fn todo(name: &str) -> TodoId {
    TodoId::new(name).expect("a name of these trials is an id")
}

/// Returns a word of 12 letters that no other message has.
pub(crate) fn word(writer: u32, n: u64) -> String {
    // An odd multiplier, so that different numbers give different words.
    let mut mixed = (n << 8 | u64::from(writer)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    let letter = |_| {
        let letter = b'a' + (mixed % 26) as u8;
        mixed /= 26;
        char::from(letter)
    };
    (0..12).map(letter).collect()
}
