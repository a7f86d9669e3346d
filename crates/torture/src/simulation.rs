//! Simulates histories of several processes in one: a seed decides who does what, when, and what fails.
//!
//! Three processes share a store in memory. Each accesses it through its own engine, which [fails](Faulty) as a disk
//! does: a commit is refused, or fails before or after the moment at which it is durable, or a read fails. When a
//! process ends, what it had not committed is lost, and another begins. The clock advances by a moment or by a day.
//! After each step a process without failures compares the store with what was acknowledged; the others may answer with
//! an error, but never wrongly.
//!
//! Everything happens in one thread, in an order that the seed determines, so the seed repeats it. The method is that
//! of FoundationDB (Zhou et al., SIGMOD 2021, section 4). Threads and files are not simulated: other trials break
//! those.

use crate::work::{NOW, Setup, message, todo, word};
use crate::{Error, Report};
use foldback::core::{Budget, Message, Role, Timestamp};
use foldback::kv::{self, Kv};
use foldback::{ErrorKind, Memory, Options, SearchRequest, Session};
use foldback_testkit::Random;
use foldback_testkit::engine::Faulty;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const PROCESSES: usize = 3;
const TODOS: usize = 3;

/// The longest time between two steps, in milliseconds. It is used now and then, so that pauses close blocks.
const LONGEST_PAUSE: usize = 86_400_000;

/// Simulates `histories` histories of `steps` steps each.
///
/// # Errors
/// When a store without failures cannot be created.
pub fn histories(seed: u64, histories: u64, steps: u64) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut dice = Random::new(seed);
    for history in 0..histories {
        let mut simulation = Simulation::new(dice.below(1 << 40) as u64)?;
        for step in 0..steps {
            let (what, findings) = simulation.step()?;
            report.count(what);
            let is_broken = !findings.is_empty();
            report.found(seed, &format!("history {history}, step {step}, {what}"), findings);
            if is_broken {
                break;
            }
        }
        report.found(seed, &format!("history {history}, at the end"), simulation.examine());
        let faults = simulation.processes.iter().map(|process| process.kv.faults()).sum::<u64>();
        *report.counts.entry("calls that failed".to_owned()).or_default() +=
            faults + simulation.faults;
        report.trials += 1;
    }
    Ok(report)
}

struct Simulation {
    truth: Arc<dyn Kv>,
    setup: Setup<'static>,
    clock: Arc<AtomicI64>,
    dice: Random,
    processes: Vec<Process>,
    /// The process that never fails and never ends.
    witness: Memory,
    /// The acknowledged contents of each todo.
    todos: Vec<Held>,
    /// Failures seen by processes that have ended.
    faults: u64,
}

struct Process {
    kv: Arc<Faulty>,
    memory: Memory,
    sessions: BTreeMap<usize, Session>,
}

#[derive(Default)]
struct Held {
    messages: Vec<Message>,
    /// How often the todo was forgotten. Its messages differ each time.
    round: u64,
    /// The number of the next exchange.
    next: u64,
}

impl Held {
    fn label(&self, todo: usize) -> String {
        format!("{}-{}", name(todo), self.round)
    }
}

fn name(todo: usize) -> String {
    format!("simulated-{todo}")
}

impl Simulation {
    fn new(seed: u64) -> Result<Self, Error> {
        let (truth, setup) = (kv::memory(), Setup::of(seed).unguarded());
        let clock = Arc::new(AtomicI64::new(NOW));
        let mut dice = Random::new(seed);
        let witness = Memory::open_on(truth.clone(), None, options_at(setup, &clock)?)?;
        let begin = |_| Process::begin(&truth, setup, &clock, &mut dice);
        let processes = (0..PROCESSES).map(begin).collect::<Result<_, _>>()?;
        let todos = (0..TODOS).map(|_| Held::default()).collect();
        Ok(Self { truth, setup, clock, dice, processes, witness, todos, faults: 0 })
    }

    /// Makes one step. Returns its name, and what is wrong after it.
    fn step(&mut self) -> Result<(&'static str, Vec<String>), Error> {
        let pause = if self.dice.below(20) == 0 { LONGEST_PAUSE } else { 2_000 };
        self.clock.fetch_add(self.dice.below(pause) as i64, Ordering::Relaxed);
        let (process, todo) = (self.dice.below(PROCESSES), self.dice.below(TODOS));
        let (what, findings) = match self.dice.below(100) {
            0..50 => ("record", self.record(process, todo)),
            50..65 => ("read", self.read(process, todo)),
            65..80 => ("search", self.search(process, todo)),
            80..85 => ("show", self.show(process, todo)),
            85..89 => ("forget", self.forget(process, todo)),
            89..92 => ("compact", self.compact(process)),
            _ => {
                self.faults += self.processes[process].kv.faults();
                let (truth, setup, clock) = (&self.truth, self.setup, &self.clock);
                self.processes[process] = Process::begin(truth, setup, clock, &mut self.dice)?;
                ("end a process", Vec::new())
            }
        };
        Ok((what, findings))
    }

    fn record(&mut self, process: usize, todo: usize) -> Vec<String> {
        let held = &mut self.todos[todo];
        let (first, label) = (held.next * 4, held.label(todo));
        // An exchange has four messages; of some only the first is recorded.
        let count = if self.dice.below(3) == 0 { 4 } else { 1 };
        held.next += 1;
        let word = word(todo as u32, held.round << 32 | held.next);
        // The first message of an exchange ends with a word that nothing else has.
        let question = Message::user(&format!("{label}: please look at {word}"));
        let mut messages = vec![question];
        messages.extend((first + 1..first + count).map(|n| message(&label, n)));
        let recorded = self.processes[process].record(todo, messages.clone());
        // A failed commit is there completely, or not at all.
        let is_there = match (recorded, self.len(todo)) {
            (Ok(()), _) => true,
            (Err(_), Ok(len)) => len != self.todos[todo].messages.len(),
            (Err(_), Err(wrong)) => return vec![wrong],
        };
        if is_there {
            self.todos[todo].messages.extend(messages);
        }
        self.compare(todo)
    }

    fn forget(&mut self, process: usize, number: usize) -> Vec<String> {
        let id = todo(&name(number));
        if self.processes[process].memory.maintenance().forget(&id).is_err()
            && let Err(error) = self.witness.maintenance().forget(&id)
            && error.kind() != ErrorKind::NotFound
        {
            return vec![format!("{id} cannot be forgotten: {error}")];
        }
        let held = &mut self.todos[number];
        *held = Held { round: held.round + 1, ..Held::default() };
        match self.witness.find(&id) {
            Ok(_) => vec![format!("{id} was forgotten, but is there")],
            Err(_) => self.compare(number),
        }
    }

    fn compact(&self, process: usize) -> Vec<String> {
        let _ = self.processes[process].memory.maintenance().compact();
        (0..TODOS).flat_map(|todo| self.compare(todo)).collect()
    }

    /// Reads a todo: a process that fails answers correctly or not at all.
    fn read(&mut self, process: usize, todo: usize) -> Vec<String> {
        let memory = &self.processes[process].memory;
        match read_all(memory, todo) {
            Ok(messages) if messages == self.todos[todo].messages => Vec::new(),
            Ok(messages) => vec![format!(
                "a process reads {} messages of {}, but {} were acknowledged",
                messages.len(),
                name(todo),
                self.todos[todo].messages.len()
            )],
            Err(_) => Vec::new(),
        }
    }

    /// Searches: what was acknowledged is found by a word that nothing else holds.
    fn search(&mut self, process: usize, number: usize) -> Vec<String> {
        let held = &self.todos[number];
        if held.messages.is_empty() {
            return Vec::new();
        }
        let at = self.dice.below(held.messages.len());
        if *held.messages[at].role() != Role::User {
            return Vec::new();
        }
        let text = held.messages[at].text();
        let word = text.rsplit(' ').next().unwrap_or_default();
        let request = SearchRequest::new(word);
        let id = todo(&name(number));
        let mut findings = Vec::new();
        for (who, memory) in [("a process", &self.processes[process].memory), ("it", &self.witness)]
        {
            let answer = match memory.search(&id, &request) {
                Ok(answer) => answer,
                Err(_) if who == "a process" => continue,
                Err(error) => return vec![format!("a search fails: {error}")],
            };
            let holds =
                answer.hits.iter().any(|hit| hit.block.range.as_u64().contains(&(at as u64)));
            if !holds && answer.not_searched.is_empty() {
                findings.push(format!("{who} does not find message {at} of {id} by its text"));
            }
        }
        findings
    }

    /// Shows a todo: the view holds the newest message.
    fn show(&mut self, process: usize, number: usize) -> Vec<String> {
        let Some(newest) = self.todos[number].messages.last() else { return Vec::new() };
        let newest = newest.text();
        let Ok(shown) = self.processes[process].prompt(number) else { return Vec::new() };
        // Of a large message, its beginning.
        let begins = newest.lines().next().unwrap_or_default();
        let is_shown = shown.iter().any(|message| message.text().contains(begins));
        if is_shown { Vec::new() } else { vec![format!("the view does not show {begins:?}")] }
    }

    fn len(&self, number: usize) -> Result<usize, String> {
        match self.witness.len(&todo(&name(number))) {
            Ok(len) => Ok(len as usize),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(format!("{}: {error}", name(number))),
        }
    }

    /// Checks that a todo holds what was acknowledged, and that its blocks leave nothing out.
    fn compare(&self, number: usize) -> Vec<String> {
        let held = &self.todos[number];
        let found = match read_all(&self.witness, number) {
            Ok(found) => found,
            Err(error) => return vec![format!("{}: {error}", name(number))],
        };
        if found != held.messages {
            let (found, held) = (found.len(), held.messages.len());
            return vec![format!(
                "{}: {held} were acknowledged, but {found} are there",
                name(number)
            )];
        }
        if found.is_empty() {
            return Vec::new();
        }
        let blocks = match self.witness.blocks(&todo(&name(number)), 0, usize::MAX) {
            Ok(blocks) => blocks,
            Err(error) => return vec![format!("{}: {error}", name(number))],
        };
        let mut next = 0;
        for block in blocks {
            let range = block.range.as_u64();
            if range.start != next {
                return vec![format!(
                    "{}: a block begins at {}, not {next}",
                    name(number),
                    range.start
                )];
            }
            next = range.end;
        }
        Vec::new()
    }

    fn examine(&self) -> Vec<String> {
        self.processes.iter().for_each(|process| process.kv.fail(false));
        let mut findings: Vec<String> = (0..TODOS).flat_map(|todo| self.compare(todo)).collect();
        match self.witness.maintenance().doctor() {
            Ok(checkup) => findings.extend(checkup.findings),
            Err(error) => findings.push(format!("doctor: {error}")),
        }
        findings
    }
}

impl Process {
    fn begin(
        truth: &Arc<dyn Kv>,
        setup: Setup<'_>,
        clock: &Arc<AtomicI64>,
        dice: &mut Random,
    ) -> Result<Self, Error> {
        let kv = Arc::new(Faulty::new(truth.clone(), dice.below(1 << 40) as u64));
        let memory = Memory::open_on(kv.clone(), None, options_at(setup, clock)?)?;
        kv.fail(true);
        Ok(Self { kv, memory, sessions: BTreeMap::new() })
    }

    fn session(&mut self, number: usize) -> Result<&mut Session, foldback::Error> {
        Ok(match self.sessions.entry(number) {
            Entry::Occupied(session) => session.into_mut(),
            Entry::Vacant(none) => none.insert(self.memory.session(&todo(&name(number)))?),
        })
    }

    fn record(&mut self, number: usize, messages: Vec<Message>) -> Result<(), foldback::Error> {
        let recorded = self.session(number)?.record_all(messages);
        if recorded.is_err() {
            self.sessions.remove(&number);
        }
        recorded.map(drop)
    }

    fn prompt(&mut self, number: usize) -> Result<Vec<Arc<Message>>, foldback::Error> {
        let session = self.session(number)?;
        session.refresh()?;
        Ok(session.prompt(&Budget::default()).messages)
    }
}

fn options_at(setup: Setup<'_>, clock: &Arc<AtomicI64>) -> Result<Options, foldback::Error> {
    let clock = clock.clone();
    let options = setup.options()?;
    Ok(options.with_clock(move || Timestamp(clock.load(Ordering::Relaxed))))
}

fn read_all(memory: &Memory, number: usize) -> Result<Vec<Message>, foldback::Error> {
    let id = todo(&name(number));
    match memory.len(&id).and_then(|len| memory.messages(&id, 0..len)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}
