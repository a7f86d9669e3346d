//! Commits that are gone, as the witness tells.

use super::connection::Access;
use super::row::last_commit;
use super::writer::roll_back;
use super::{Sqlite, table};
use crate::{Error, Finding, Lost, acknowledged, witness};

impl Sqlite {
    /// A frozen file is asked once, when it is opened: it does not see what others write later.
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

    /// Lets the witness know of what is there, and of nothing more.
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

    /// What the log shows when the store is opened; the log itself may be written over later. A witness that was not there
    /// before says nothing of it.
    pub(super) fn log_at_opening(
        &self,
        suspected: Option<Finding>,
        has_witness: bool,
    ) -> Option<Finding> {
        let suspected = suspected?;
        let log = self.log_damage().unwrap_or(Some(suspected));
        log.filter(|_| !(has_witness && self.is_witnessed().unwrap_or(false)))
    }

    /// What the log and the witness say. It comes before every other check, whose connection may bring the log in.
    pub(super) fn check_log(&self) -> Result<Vec<Finding>, Error> {
        let log = match self.log_damage()? {
            Some(_) if self.is_witnessed()? => None,
            log => log,
        };
        let log = log.or_else(|| self.log_at_open.clone());
        Ok(log.into_iter().chain(self.find_loss()?.map(Finding::Lost)).collect())
    }

    /// Whether there is a witness, and it knows of no loss. Then what stands behind the damage of a log is taken for writes that
    /// nobody waited for: a power cut lets them reach the disk in another order. (After one the witness may be behind, and
    /// says nothing of a log that was damaged as well.)
    fn is_witnessed(&self) -> Result<bool, Error> {
        Ok(witness::is_there(&self.dir) && self.find_loss()?.is_none())
    }
}
