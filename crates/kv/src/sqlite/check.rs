//! The check of the file.

use super::connection::Access;
use super::row::{blob, high, low};
use super::writer::roll_back;
use super::{Sqlite, connection, fault, log, table};
use crate::witness::Link;
use crate::{Error, Finding, Key, Space, record};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Sqlite {
    pub(super) fn check_records(&self, findings: &mut Vec<Finding>) -> Result<(), Error> {
        for space in Space::ALL {
            if !self.has(space)? {
                continue;
            }
            self.check_table(table::of(space).walk, findings, |id, stored| {
                let key = Key { space, todo: high(id), n: u64::from(low(id)) };
                let whole = stored.and_then(|bytes| record::check(key, bytes));
                let whole = if id < 0 { Err("its key is out of range".to_owned()) } else { whole };
                whole.err().map(|detail| Finding::Record { key, detail })
            })?;
        }
        self.check_table(table::HEADS.walk, findings, |id, stored| {
            if id == table::LAST_COMMIT {
                return Link::judge(stored);
            }
            let todo = low(id);
            let head = stored.and_then(|bytes| record::open_head(todo, bytes));
            let head = if high(id) == 0 { head } else { Err(format!("{id} is not a todo")) };
            head.err().map(|detail| Finding::Head { todo, detail })
        })
    }

    /// Walks a table in steps, so that a long check keeps no old pages in use.
    fn check_table(
        &self,
        sql: &'static str,
        findings: &mut Vec<Finding>,
        judge: impl Fn(i64, Result<&[u8], String>) -> Option<Finding>,
    ) -> Result<(), Error> {
        let mut from = i64::MIN;
        loop {
            let step = self.read(|connection| {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query((from, i64::try_from(CHECK_STEP).unwrap_or(1)))?;
                let mut last = None;
                let mut seen = 0;
                while let Some(row) = rows.next()? {
                    let id: i64 = row.get(0)?;
                    findings.extend(judge(id, blob(row, 1)?));
                    last = Some(id);
                    seen += 1;
                }
                Ok(last.filter(|_| seen == CHECK_STEP))
            });
            match step.map(|last| last.and_then(|id| id.checked_add(1))) {
                Ok(Some(next)) => from = next,
                Ok(None) => return Ok(()),
                // This table cannot be read to its end, but the others may be readable.
                Err(error @ (Error::Damaged { .. } | Error::Engine { .. })) => {
                    findings.push(Finding::Engine { detail: fault::words(&error) });
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn check_engine(&self, findings: &mut Vec<Finding>) -> Result<(), Error> {
        let answer = self.read(|connection| {
            let mut lines = table::check_identity(connection)?;
            let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
            let mut rows = statement.query(())?;
            while let Some(row) = rows.next()? {
                let line: String = row.get(0)?;
                if line != "ok" {
                    lines.push(line);
                }
            }
            Ok(lines)
        });
        match answer {
            Ok(lines) => {
                findings.extend(lines.into_iter().map(|detail| Finding::Engine { detail }));
            }
            Err(error @ (Error::Damaged { .. } | Error::Engine { .. })) => {
                findings.push(Finding::Engine { detail: fault::words(&error) });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the log's damage. While others write, an incomplete frame looks like damage, so the
    /// log is checked again while nobody can write.
    pub(super) fn log_damage(&self) -> Result<Option<Finding>, Error> {
        let log = connection::log_of(&self.file);
        if log::damage(&log).is_none() {
            return Ok(None);
        }
        if self.access != Access::Write || self.poisoned.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(20));
            return Ok(log::damage(&log));
        }
        self.write("its log was checked", |writer| {
            let begun = writer.connection.execute_batch("BEGIN IMMEDIATE");
            begun.map_err(|error| self.fault(error))?;
            let found = log::damage(&log);
            roll_back(&writer.connection);
            Ok(found)
        })
    }
}

/// How many records a check reads in one transaction.
const CHECK_STEP: usize = 1000;
