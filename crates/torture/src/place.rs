//! Where the stores of trials are.

use crate::{Error, doing};
use std::path::PathBuf;
use tempfile::TempDir;

/// The place of one store: a folder, or a database and the folders of the machines that share it. The folders are
/// removed with the value.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
    database: Option<String>,
}

impl Place {
    /// Makes a place on one machine.
    ///
    /// # Errors
    /// When no folder can be created.
    pub fn folder() -> Result<Self, Error> {
        Ok(Self { dir: folder()?, database: None })
    }

    /// Makes a place on several machines, whose records are in the empty database at an address.
    ///
    /// # Errors
    /// When no folder can be created.
    pub fn database(address: String) -> Result<Self, Error> {
        Ok(Self { database: Some(address), ..Self::folder()? })
    }

    /// Returns the folder in which this process opens the store: with a database, a folder for each machine, of which
    /// there are two.
    #[must_use]
    pub fn store(&self, process: u32) -> PathBuf {
        let name = match self.database {
            Some(_) => format!("machine-{}", process % 2),
            None => "store".to_owned(),
        };
        self.dir.path().join(name)
    }

    /// Returns the address of the database.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.database.as_deref()
    }
}

pub(crate) fn folder() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("torture-").tempdir().map_err(doing("create a folder"))
}
