//! Tracks the messages that a store has acknowledged.

use crate::work::{self, SHARED, Setup, TOKEN, own_name, shared_message, todo};
use foldback::{AuditFilter, ErrorKind, Memory};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Everything that a store has acknowledged to its writers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The number of messages in each writer's own todo.
    kept: BTreeMap<u32, u64>,
    /// The number of messages of each writer in the shared todo.
    shared: BTreeMap<u32, u64>,
    /// The todos that were forgotten.
    forgotten: BTreeSet<String>,
    /// The number of look-ups that were noted.
    noted: u64,
}

impl Acknowledged {
    /// Takes a line that a child has printed. A line that was cut off when the child ended is skipped.
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
            Some("noted") => self.noted += 1,
            Some("forgotten") => self.forgotten.extend(words.next().map(str::to_owned)),
            _ => {}
        }
    }

    /// Returns the minimum number of messages of a writer in the shared todo.
    #[must_use]
    pub fn shared_of(&self, writer: u32) -> u64 {
        self.shared.get(&writer).copied().unwrap_or(0)
    }

    /// Returns how many messages were acknowledged in total.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.kept.values().chain(self.shared.values()).sum()
    }

    /// Opens the store for writing and looks for everything that was acknowledged. Anything beyond that was written by
    /// a writer that ended before the acknowledgement; it counts as acknowledged from now on. Returns what breaks a
    /// promise.
    pub fn check(&mut self, store: &Path, setup: Setup<'_>) -> Vec<String> {
        let memory = match setup.options().and_then(|options| Memory::open(store, options)) {
            Ok(memory) => memory,
            Err(error) => return vec![format!("the store does not open: {error}")],
        };
        let mut findings = self.check_memory(&memory, setup);
        match memory.maintenance().doctor() {
            Ok(checkup) => findings.extend(checkup.findings),
            Err(error) => findings.push(format!("doctor: {error}")),
        }
        match memory.audit().read(&AuditFilter::default(), |_| {}) {
            Ok(report) if report.lines < self.noted => {
                let (noted, lines) = (self.noted, report.lines);
                findings.push(format!("{noted} look-ups were noted, but {lines} are in the log"));
            }
            Ok(report) => self.noted = report.lines,
            Err(error) => findings.push(format!("the audit log: {error}")),
        }
        findings
    }

    /// Like [`check`](Self::check), for a store after a power cut: its audit log, which is not synced, may end before
    /// what was noted.
    pub fn check_after_power_cut(&mut self, store: &Path, setup: Setup<'_>) -> Vec<String> {
        self.noted = 0;
        let mut findings = self.check(store, setup);
        findings.retain(|found| !found.starts_with("the audit log is broken"));
        findings
    }

    fn check_memory(&mut self, memory: &Memory, setup: Setup<'_>) -> Vec<String> {
        let mut findings = Vec::new();
        match memory.maintenance().lost() {
            Ok(None) => {}
            Ok(Some(lost)) => findings.push(format!("a loss is reported: {lost}")),
            Err(error) => findings.push(format!("the check for losses fails: {error}")),
        }
        for (writer, acknowledged) in &mut self.kept {
            let name = own_name(*writer);
            match held(memory, setup, &name, *acknowledged) {
                Ok(held) => *acknowledged = held,
                Err(wrong) => findings.push(wrong),
            }
        }
        if let Err(wrong) = self.check_shared(memory, setup) {
            findings.push(wrong);
        }
        for name in &self.forgotten {
            match memory.find(&todo(name)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => findings.push(format!("{name}: {error}")),
                Ok(_) => findings.push(format!("{name} was forgotten, but is there")),
            }
        }
        findings
    }

    fn check_shared(&mut self, memory: &Memory, setup: Setup<'_>) -> Result<(), String> {
        let of_store = |error: foldback::Error| format!("{SHARED}: {error}");
        let messages = match setup.messages(memory, SHARED) {
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
        for (writer, acknowledged) in &self.shared {
            let found = held.get(writer).copied().unwrap_or(0);
            if found < *acknowledged {
                return Err(format!(
                    "{SHARED}: {acknowledged} of {writer} were acknowledged, but {found} are there"
                ));
            }
        }
        // A writer that was killed before it acknowledged its first message may be among them.
        self.shared = held;
        Ok(())
    }
}

/// Returns how many messages a todo holds; an error if one is missing or different.
fn held(memory: &Memory, setup: Setup<'_>, name: &str, acknowledged: u64) -> Result<u64, String> {
    let read = |error: foldback::Error| format!("{name}: {error}");
    let found = setup.messages(memory, name).map_err(read)?;
    let len = found.len() as u64;
    if len < acknowledged {
        return Err(format!("{name}: {acknowledged} were acknowledged, but {len} are there"));
    }
    for (n, found) in (0..).zip(found) {
        if found != work::message(name, n) {
            return Err(format!("{name}: message {n} is a different one: {:?}", found.text()));
        }
    }
    let kept = memory.messages(&todo(name), 0..len).map_err(read)?;
    match kept.iter().find(|kept| setup.is_guarded && kept.json().contains(TOKEN)) {
        Some(kept) => Err(format!("{name}: a secret is stored: {:?}", kept.text())),
        None => Ok(len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_acknowledged_counts_once_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let setup = Setup::of(0);
        let memory = Memory::open(&store, setup.options().unwrap()).unwrap();
        let mut shared = memory.session(&todo(SHARED)).unwrap();
        shared.record(shared_message(1, 0)).unwrap();
        drop((shared, memory));
        let mut acknowledged = Acknowledged::default();
        assert_eq!(acknowledged.check(&store, setup), Vec::<String>::new());
        assert_eq!((acknowledged.shared_of(0), acknowledged.shared_of(1)), (0, 1));
    }
}
