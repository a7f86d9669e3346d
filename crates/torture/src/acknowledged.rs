//! What a store has promised to hold.

use crate::work::{self, SHARED, own_name, shared_message, todo};
use foldback::{ErrorKind, Memory};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What was acknowledged by the writers of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Of each writer's own todo, how many messages.
    kept: BTreeMap<u32, u64>,
    /// Of each writer, how many messages in the shared todo.
    shared: BTreeMap<u32, u64>,
    /// The todos that were forgotten.
    forgotten: BTreeSet<String>,
}

impl Acknowledged {
    /// Takes what a child has said. A line that was cut off by its end says nothing.
    pub fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let number = |words: &mut std::str::Split<'_, char>| words.next()?.parse::<u64>().ok();
        match words.next() {
            Some(kind @ ("kept" | "shared")) => {
                let (Some(writer), Some(count)) = (number(&mut words), number(&mut words)) else {
                    return;
                };
                let counts = if kind == "kept" { &mut self.kept } else { &mut self.shared };
                let known = counts.entry(writer as u32).or_default();
                *known = count.max(*known);
            }
            Some("forgotten") => self.forgotten.extend(words.next().map(str::to_owned)),
            _ => {}
        }
    }

    /// How many messages of a writer stand in the shared todo at least.
    #[must_use]
    pub fn shared_of(&self, writer: u32) -> u64 {
        self.shared.get(&writer).copied().unwrap_or(0)
    }

    /// How many messages were acknowledged in all.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.kept.values().chain(self.shared.values()).sum()
    }

    /// Opens the store for writing and looks for everything that was acknowledged. What is there beyond that was written
    /// and not acknowledged any more; it counts as acknowledged from now on. Gives what breaks a promise.
    pub fn check(&mut self, store: &Path) -> Vec<String> {
        let memory = match Memory::open(store, work::options()) {
            Ok(memory) => memory,
            Err(error) => return vec![format!("the store does not open: {error}")],
        };
        let mut findings = Vec::new();
        match memory.maintenance().lost() {
            Ok(None) => {}
            Ok(Some(lost)) => findings.push(format!("a loss is reported: {lost}")),
            Err(error) => findings.push(format!("no loss can be looked for: {error}")),
        }
        match memory.maintenance().doctor() {
            Ok(checkup) => findings.extend(checkup.findings),
            Err(error) => findings.push(format!("doctor: {error}")),
        }
        for (writer, acknowledged) in &mut self.kept {
            let name = own_name(*writer);
            match held(&memory, &name, *acknowledged) {
                Ok(held) => *acknowledged = held,
                Err(wrong) => findings.push(wrong),
            }
        }
        if let Err(wrong) = self.check_shared(&memory) {
            findings.push(wrong);
        }
        for name in &self.forgotten {
            match memory.find(&todo(name)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => findings.push(format!("{name}: {error}")),
                Ok(_) => findings.push(format!("{name} was forgotten and is there")),
            }
        }
        findings
    }

    fn check_shared(&mut self, memory: &Memory) -> Result<(), String> {
        let of_store = |error: foldback::Error| format!("{SHARED}: {error}");
        let id = todo(SHARED);
        let messages = match memory.len(&id).and_then(|len| memory.messages(&id, 0..len)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(of_store)?,
        };
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        for message in messages {
            let text = message.text();
            let writer = text.split(' ').nth(1).and_then(|word| word.parse().ok());
            let writer = writer.ok_or_else(|| format!("{SHARED} holds {text:?}"))?;
            let next = held.entry(writer).or_default();
            if message != shared_message(writer, *next) {
                return Err(format!("{SHARED}: message {next} of writer {writer} is {text:?}"));
            }
            *next += 1;
        }
        for (writer, acknowledged) in &mut self.shared {
            let found = held.get(writer).copied().unwrap_or(0);
            if found < *acknowledged {
                return Err(format!("{SHARED}: {acknowledged} of {writer}, and {found} are there"));
            }
            *acknowledged = found;
        }
        Ok(())
    }
}

/// How many messages a todo holds; an error where one is missing or is another one.
fn held(memory: &Memory, name: &str, acknowledged: u64) -> Result<u64, String> {
    let id = todo(name);
    let read = |error: foldback::Error| format!("{name}: {error}");
    let len = memory.len(&id).map_err(read)?;
    if len < acknowledged {
        return Err(format!("{name}: {acknowledged} were acknowledged, and {len} are there"));
    }
    for (n, found) in (0..).zip(memory.messages(&id, 0..len).map_err(read)?) {
        if found != work::message(name, n) {
            return Err(format!("{name}: message {n} is another one: {:?}", found.text()));
        }
    }
    Ok(len)
}
