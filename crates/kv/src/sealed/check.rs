//! Checks that everything that is sealed opens, and is what was written last.

use super::keys::Kind;
use super::ledger::{self, domain_of, key_of, noted};
use super::{LEDGERS, NOT_LAST, NOT_OPENED, STORE_KEY, SUM, Sealed};
use crate::{Error, Finding, Key, Kv as _, Space, registry};
use std::collections::BTreeSet;

/// How many records are read at once.
const STEP: usize = 256;

/// While others write, the sum is compared again; if they keep writing, it is left to the next check.
const ATTEMPTS: usize = 20;

/// Checks the engine and everything in it.
pub(super) fn check(store: &Sealed) -> Result<Vec<Finding>, Error> {
    let mut findings: BTreeSet<Finding> = store.inner.check()?.into_iter().collect();
    // A cached key would hide that its record is gone.
    store.keys.drop_all();
    let damaged: BTreeSet<Key> = findings.iter().filter_map(record_of).collect();
    if matches!(store.inner.get(STORE_KEY), Ok(None)) {
        let detail = "it is missing, and without it the store no longer opens".to_owned();
        findings.insert(Finding::Record { key: STORE_KEY, detail });
    }
    let domains = sum(store, &mut findings)?;
    for domain in domains {
        for space in Space::ALL {
            if !matches!(
                (space, domain),
                (Space::Name, _) | (Space::Meta, super::KEYS..=super::STORE)
            ) {
                records(store, space, domain, &damaged, &mut findings)?;
            }
        }
        count(store, domain, &mut findings)?;
        name(store, domain, &mut findings)?;
        match store.head(domain) {
            Ok(_) => {}
            Err(Error::CorruptHead { todo, detail }) => {
                findings.insert(Finding::Head { todo, detail });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(findings.into_iter().collect())
}

fn record_of(finding: &Finding) -> Option<Key> {
    match finding {
        Finding::Record { key, .. } => Some(*key),
        _ => None,
    }
}

/// Compares all ledgers with their sum. Returns the todos that have one.
fn sum(store: &Sealed, findings: &mut BTreeSet<Finding>) -> Result<BTreeSet<u32>, Error> {
    let keys = &store.keys;
    let get_sum = || match store.inner.get(SUM) {
        Err(Error::Corrupt { .. }) => Ok(None),
        found => found,
    };
    for attempt in 1.. {
        let before = get_sum()?;
        let (mut total, mut domains) = ([0; 32], BTreeSet::new());
        let mut from = 0;
        loop {
            let found = match store.inner.scan(Space::Meta, LEDGERS, from..Key::N_END, STEP) {
                // It is among the engine's findings, and without it the sum does not match.
                Err(Error::Corrupt { key, .. }) => {
                    let before = store.inner.scan(Space::Meta, LEDGERS, from..key.n, STEP)?;
                    domains.insert(key.n as u32);
                    if before.is_empty() {
                        from = key.n + 1;
                        continue;
                    }
                    before
                }
                found => found?,
            };
            let Some((last, _)) = found.last() else { break };
            from = last + 1;
            for (n, stored) in &found {
                let domain = *n as u32;
                domains.insert(domain);
                ledger::add(&mut total, &ledger::part_of_sum(keys, domain, stored));
                if ledger::open(keys, domain, Some(stored)).is_err() {
                    let (key, detail) = (key_of(domain), NOT_OPENED.to_owned());
                    findings.insert(Finding::Record { key, detail });
                }
            }
        }
        let sum = before.as_deref().and_then(|sum| keys.open(&keys.own, Kind::Sum, SUM, sum));
        if sum.as_deref() == Some(&total[..]) {
            return Ok(domains);
        }
        if get_sum()? == before || attempt == ATTEMPTS {
            let detail = match sum {
                None => "it is missing, or no key opens it",
                Some(_) => {
                    "it does not match the todos in the store: some are from an earlier time, or gone"
                }
            };
            if get_sum()? == before {
                findings.insert(Finding::Record { key: SUM, detail: detail.to_owned() });
            }
            return Ok(domains);
        }
    }
    Ok(BTreeSet::new())
}

/// Opens the records of a todo in a space, and its record in the registry.
fn records(
    store: &Sealed,
    space: Space,
    todo: u32,
    damaged: &BTreeSet<Key>,
    findings: &mut BTreeSet<Finding>,
) -> Result<(), Error> {
    let mut from = 0;
    while from < Key::N_END {
        match store.scan(space, todo, from..Key::N_END, STEP) {
            Ok(found) => {
                if found.len() < STEP {
                    break;
                }
                from = found.last().map_or(Key::N_END, |(n, _)| n + 1);
            }
            Err(Error::Corrupt { key, detail }) => {
                if !damaged.contains(&key) {
                    findings.insert(Finding::Record { key, detail });
                }
                // The key of a todo opens none of its records.
                if key.space != space || key.todo != todo {
                    break;
                }
                from = from.max(key.n) + 1;
            }
            Err(Error::CorruptHead { todo, detail }) => {
                findings.insert(Finding::Head { todo, detail });
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Checks that a todo is found by its id.
fn name(store: &Sealed, domain: u32, findings: &mut BTreeSet<Finding>) -> Result<(), Error> {
    let key = Key { space: Space::Todo, todo: 0, n: u64::from(domain) };
    let found = match store.get(key) {
        Ok(Some(record)) if domain != 0 => registry::is_found(store, domain, &record),
        _ => return Ok(()),
    };
    match found {
        Ok(true) => Ok(()),
        Ok(false) => {
            let detail =
                "its todo is not found by its id, because the record for that is gone".to_owned();
            findings.insert(Finding::Record { key, detail });
            Ok(())
        }
        Err(Error::Corrupt { key, detail }) => {
            findings.insert(Finding::Record { key, detail });
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Checks that a todo has as many records as its ledger says.
fn count(store: &Sealed, domain: u32, findings: &mut BTreeSet<Finding>) -> Result<(), Error> {
    let counted = store.settled(domain, |ledger| {
        let mut count = 0;
        for space in Space::ALL.into_iter().filter(|space| !noted(*space).is_empty()) {
            if matches!((space, domain), (Space::Meta, super::KEYS..=super::STORE)) {
                continue;
            }
            // Records with the number of a todo belong to that todo.
            let from =
                if (space, domain) == (Space::Todo, 0) { u64::from(Key::TODO_END) } else { 0 };
            let found = match store.inner.scan(space, domain, from..noted(space).end, usize::MAX) {
                Err(Error::Corrupt { .. }) => return Ok(Ok(())),
                found => found?,
            };
            count += found.len() as u64;
        }
        let registered = Key { space: Space::Todo, todo: 0, n: u64::from(domain) };
        if domain_of(registered) == domain {
            match store.inner.get(registered) {
                Err(Error::Corrupt { .. }) => return Ok(Ok(())),
                found => count += u64::from(found?.is_some()),
            }
        }
        let detail =
            format!("{NOT_LAST}: there are {count} records, but {} were written", ledger.count);
        let wrong = || Error::CorruptHead { todo: domain, detail };
        Ok(if count == ledger.count { Ok(()) } else { Err(wrong()) })
    });
    match counted {
        Err(Error::CorruptHead { todo, detail }) => {
            findings.insert(Finding::Head { todo, detail });
            Ok(())
        }
        Err(Error::Corrupt { .. }) => Ok(()),
        counted => counted,
    }
}
