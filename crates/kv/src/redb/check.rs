//! The check of a redb store.

use super::database::{RECORDS, Records, connect, guarded};
use crate::{Error, Finding, Mode, ordered};
use ::redb::{ReadableDatabase, ReadableTable, StorageError};
use std::path::Path;

/// Returns what is wrong with the records, from the first on and, if a page cannot be read, from the last back.
pub(super) fn judge(records: &Records) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !walk(records, false, &mut findings) {
        walk(records, true, &mut findings);
    }
    findings
}

/// Checks one record after the other. Returns whether it reached the end.
fn walk(records: &Records, from_the_last: bool, findings: &mut Vec<Finding>) -> bool {
    let mut look = || -> Result<(), StorageError> {
        let mut rest = records.iter()?;
        while let Some(item) = if from_the_last { rest.next_back() } else { rest.next() } {
            let (key, stored) = item?;
            findings.extend(ordered::judge(key.value(), stored.value()));
        }
        Ok(())
    };
    let answer = look();
    findings.extend(answer.as_ref().err().map(engine));
    answer.is_ok()
}

/// Reads the file again, with the checksums that redb has of its pages, and compares its records
/// with those in use.
pub(super) fn compare(records: &Records, file: &Path) -> Result<Vec<Finding>, Error> {
    let mut stored = match connect(file, Mode::ReadOnly) {
        Err(Error::Damaged { detail, .. }) => return Ok(vec![Finding::Engine { detail }]),
        opened => opened?,
    };
    let compared = guarded(file, move || {
        let mut findings = Vec::new();
        if !stored.check_integrity()? {
            findings.push(because("redb had to repair its structures"));
        }
        let table = stored.begin_read()?.open_table(RECORDS)?;
        let mut others = table.iter()?;
        for item in records.iter()? {
            let (key, value) = item?;
            let other = others.next().transpose()?;
            if other.is_none_or(|other| {
                (other.0.value(), other.1.value()) != (key.value(), value.value())
            }) {
                findings.push(because("the file's records differ from those in use"));
                return Ok(findings);
            }
        }
        if others.next().is_some() {
            findings.push(because("the file has more records than those in use"));
        }
        Ok(findings)
    });
    match compared {
        Err(Error::Damaged { detail, .. }) => Ok(vec![Finding::Engine { detail }]),
        compared => compared,
    }
}

fn engine(error: &StorageError) -> Finding {
    Finding::Engine { detail: error.to_string() }
}

fn because(detail: &str) -> Finding {
    Finding::Engine { detail: detail.to_owned() }
}
