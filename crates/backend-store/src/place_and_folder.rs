//! A place outside a store's folder, with what the folder held before there was one.

use crate::Error;
use crate::folder::Folder;
use crate::payload_files::{Draft, FileName, PayloadFile, PayloadFiles};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The files at a place, and those that were put into the store's folder before it had that place. New ones are put at
/// the place.
pub(crate) struct PlaceAndFolder {
    place: Box<dyn PayloadFiles>,
    folder: Folder,
}

impl PlaceAndFolder {
    pub(crate) fn new(place: Box<dyn PayloadFiles>, folder: Folder) -> Self {
        Self { place, folder }
    }
}

impl PayloadFiles for PlaceAndFolder {
    fn address(&self, name: &FileName) -> PathBuf {
        match self.folder.open(name) {
            Ok(Some(_)) => self.folder.address(name),
            _ => self.place.address(name),
        }
    }

    fn draft(&self, todo: u32) -> Result<Box<dyn Draft + '_>, Error> {
        self.place.draft(todo)
    }

    fn open(&self, name: &FileName) -> Result<Option<Box<dyn PayloadFile>>, Error> {
        match self.place.open(name)? {
            Some(file) => Ok(Some(file)),
            None => self.folder.open(name),
        }
    }

    fn copy(&self, name: &FileName, to: &Folder) -> Result<bool, Error> {
        Ok(self.place.copy(name, to)? || self.folder.copy(name, to)?)
    }

    fn list(&self, todo: u32) -> Result<Vec<FileName>, Error> {
        let mut names = BTreeSet::from_iter(self.place.list(todo)?);
        names.extend(self.folder.list(todo)?);
        Ok(names.into_iter().collect())
    }

    fn sweep(
        &self,
        todo: u32,
        age: Duration,
        now: SystemTime,
        wanted: &dyn Fn(&FileName) -> bool,
    ) -> Result<u64, Error> {
        let gone = self.folder.sweep(todo, age, now, wanted)?;
        Ok(gone + self.place.sweep(todo, age, now, wanted)?)
    }

    fn forget(&self, todo: u32) -> Result<(), Error> {
        self.folder.forget(todo)?;
        self.place.forget(todo)
    }

    fn todos(&self) -> Result<Vec<u32>, Error> {
        let mut todos = BTreeSet::from_iter(self.place.todos()?);
        todos.extend(self.folder.todos()?);
        Ok(todos.into_iter().collect())
    }

    fn claim(&self) -> Result<(), Error> {
        self.place.claim()
    }

    fn is_claimed(&self) -> Result<bool, Error> {
        self.place.is_claimed()
    }
}
