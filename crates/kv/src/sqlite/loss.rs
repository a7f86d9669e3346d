//! Commits that are gone according to the witness.

use super::connection::Access;
use super::row::last_commit;
use super::writer::roll_back;
use super::{Sqlite, table};
use crate::{Error, Finding, Lost, acknowledged, witness};

impl Sqlite {
    /// Returns the lost commits. A frozen file is checked once, when it is opened: it does not see what others write
    /// later.
    pub(super) fn find_loss(&self) -> Result<Option<Lost>, Error> {
        if let Some(lost) = self.frozen_loss.get() {
            return Ok(*lost);
        }
        let lost = acknowledged::find_loss(&self.dir, || self.read(last_commit))?;
        if self.access == Access::Frozen {
            return Ok(*self.frozen_loss.get_or_init(|| lost));
        }
        Ok(lost)
    }

    /// Sets the witness to the last commit that the store holds.
    pub(super) fn witness_what_is_held(&self) -> Result<(), Error> {
        self.write("its loss was accepted", |writer| {
            let connection = &writer.connection;
            table::run(connection, "BEGIN IMMEDIATE", ()).map_err(|error| self.fault(error))?;
            let held = last_commit(connection).map_err(|error| self.fault(error));
            let accepted = held.and_then(|held| acknowledged::accept_loss(&self.dir, held));
            roll_back(connection);
            accepted
        })
    }

    /// Returns what the log shows when the store is opened; the log itself may be written over later. A witness that
    /// did not exist before says nothing about it.
    pub(super) fn log_at_opening(
        &self,
        suspected: Option<Finding>,
        has_witness: bool,
    ) -> Option<Finding> {
        let suspected = suspected?;
        let log = self.log_damage().unwrap_or(Some(suspected));
        log.filter(|_| !(has_witness && self.is_witnessed().unwrap_or(false)))
    }

    /// Returns what the log and the witness say. This precedes every other check, because a check's connection may copy
    /// the log into the file.
    pub(super) fn check_log(&self) -> Result<Vec<Finding>, Error> {
        let log = match self.log_damage()? {
            Some(_) if self.is_witnessed()? => None,
            log => log,
        };
        let log = log.or_else(|| self.log_at_open.clone());
        Ok(log.into_iter().chain(self.find_loss()?.map(Finding::Lost)).collect())
    }

    /// Returns whether there is a witness that knows of no loss. If so, what follows the damage of a log is taken for
    /// writes that were not acknowledged: in a power cut they may reach the disk out of order. (After a power cut the
    /// witness may be behind, and then says nothing about a log that was also damaged.)
    fn is_witnessed(&self) -> Result<bool, Error> {
        Ok(witness::is_there(&self.dir) && self.find_loss()?.is_none())
    }
}
