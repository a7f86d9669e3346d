//! Commits that are gone, as the witness tells.

use super::row::last_commit;
use super::writer::roll_back;
use super::{Sqlite, table};
use crate::witness::Witness;
use crate::{Error, Finding, Lost, witness};

impl Sqlite {
    pub(super) fn find_loss(&self) -> Result<Option<Lost>, Error> {
        // The witness first: what others commit meanwhile is then in the store.
        let Some(acknowledged) = witness::read(&self.dir)? else { return Ok(None) };
        // A damaged number is a finding of its own, and says nothing of what is lost.
        let held = self.read(last_commit)?.ok();
        Ok(held.and_then(|held| acknowledged.lost_by(held)))
    }

    /// Lets the witness know of what is there, and of nothing more.
    pub(super) fn witness_what_is_held(&self) -> Result<(), Error> {
        self.write("its loss was accepted", |writer| {
            let connection = &writer.connection;
            table::run(connection, "BEGIN IMMEDIATE", ()).map_err(|error| self.fault(error))?;
            let held = last_commit(connection).map_err(|error| self.fault(error));
            let accepted =
                held.and_then(|held| Witness::open(&self.dir)?.accept(held.unwrap_or_default()));
            roll_back(connection);
            accepted
        })
    }

    /// What the log and the witness say. It comes before every other check, whose connection may bring the log in.
    pub(super) fn check_log(&self) -> Result<Vec<Finding>, Error> {
        let log = self.log_damage()?.or_else(|| self.log_at_open.clone());
        let lost = self.find_loss()?;
        // Where the witness is of the very commit that is held last, what stands behind the damage was never acknowledged: a
        // power cut lets writes that nobody waited for reach the disk in another order.
        let held = self.read(last_commit)?.ok();
        let is_known = held.is_some() && witness::read(&self.dir)? == held;
        let log = log.filter(|_| !is_known);
        Ok(log.into_iter().chain(lost.map(Finding::Lost)).collect())
    }
}
