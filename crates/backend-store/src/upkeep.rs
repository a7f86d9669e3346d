//! Checks payloads, removes unreferenced files, forgets and copies.

use crate::payload_files::FileName;
use crate::store::{PAGE, file_name};
use crate::{BackendStore, Error, Finding, Meta, Usage};
use foldback_kv::{Delete, Key, Space, Todo};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

impl BackendStore {
    /// Reads and checks every payload of the todo, and checks that no number is missing. Damage is
    /// a finding and not an error, and so is a file that cannot be read; an empty answer means that
    /// all payloads are sound.
    ///
    /// # Errors
    /// When the store fails other than by damage.
    pub fn verify(&self, todo: &Todo) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for n in 1..=self.last(todo)? {
            let what = match self.write_to(todo, n, io::sink()) {
                Ok(_) => continue,
                Err(Error::Corrupt { what, .. }) => what,
                Err(Error::NotFound { .. }) => "it is missing".to_owned(),
                // A failure to read one payload says nothing about the others.
                Err(
                    error @ (Error::Refused { .. }
                    | Error::Io { .. }
                    | Error::Kv(foldback_kv::Error::Damaged { .. })),
                ) => error.to_string(),
                Err(error) => return Err(error),
            };
            findings.push(Finding { n, what });
        }
        Ok(findings)
    }

    /// Removes files without a commit: those that a crash left unfinished, and payloads that no
    /// record names. It removes only files last written at least `older_than` before `now`. That
    /// must be longer than any writer takes from [`prepare`](Self::prepare) to its commit; an hour
    /// is plenty. Returns how many files were removed.
    ///
    /// # Errors
    /// When a record is damaged, because the file that it names is then unknown; and when the store
    /// or the disk fails.
    pub fn sweep(&self, todo: &Todo, older_than: Duration, now: SystemTime) -> Result<u64, Error> {
        let Some(files) = &self.files else { return Ok(0) };
        let wanted = self.wanted(todo.no())?;
        files.sweep(todo.no(), older_than, now, &|name| wanted.contains(name))
    }

    /// Returns the names of the files that the records of a todo name.
    pub(crate) fn wanted(&self, todo: u32) -> Result<BTreeSet<FileName>, Error> {
        let sealing = self.sealing(todo)?;
        let mut wanted = BTreeSet::new();
        let mut from = 1;
        loop {
            let found = self.kv.scan(Space::Payload, todo, from..Key::N_END, PAGE)?;
            let Some((last, _)) = found.last() else { return Ok(wanted) };
            from = last + 1;
            for (n, value) in &found {
                let meta = Meta::read(*n, value).map_err(|fault| fault.of(*n, "record"))?;
                if meta.in_file() {
                    let name = file_name(todo, sealing.as_ref(), &meta);
                    // In a folder, where a copied store has the bytes of objects, it has no random part.
                    wanted.extend([name, FileName { copy: None, ..name }]);
                }
            }
        }
    }

    /// Removes the folders of todos that no longer exist, which a writer may leave if its todo is
    /// forgotten while it writes. `lives` returns whether a todo of this number exists, and is
    /// called after the folder was seen. Returns how many todos this concerned.
    ///
    /// # Errors
    /// The errors of `lives`, and when the disk fails.
    pub fn sweep_forgotten(
        &self,
        mut lives: impl FnMut(u32) -> Result<bool, Error>,
    ) -> Result<u64, Error> {
        let Some(files) = &self.files else { return Ok(0) };
        let mut gone = 0;
        for no in files.todos()? {
            if !lives(no)? {
                files.forget(no)?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    /// Returns the deletions that belong in the batch that forgets the rest of the todo. Its files stay until
    /// [`remove_files`](Self::remove_files), so that nothing is lost if the batch is not committed.
    #[must_use]
    pub fn forget(&self, todo: &Todo) -> Vec<Delete> {
        let spaces = [Space::Payload, Space::PayloadBytes, Space::PayloadHash];
        spaces.map(|space| Delete::todo(space, todo.no())).to_vec()
    }

    /// Removes all payload files of the todo permanently. Call it **after** the batch with the
    /// deletions of [`forget`](Self::forget) is committed. Files that a crash in between leaves
    /// behind are removed by [`sweep_forgotten`](Self::sweep_forgotten).
    ///
    /// # Errors
    /// When the disk fails; then some of the files may be gone.
    pub fn remove_files(&self, todo: &Todo) -> Result<(), Error> {
        self.files.as_ref().map_or(Ok(()), |files| files.forget(todo.no()))
    }

    /// Returns how much the todo holds in payloads. Reads every payload's record; a damaged one is not counted.
    ///
    /// # Errors
    /// When the store fails.
    pub fn usage(&self, todo: &Todo) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        let mut after = 0;
        loop {
            let metas = self.metas(todo, after, PAGE)?;
            let Some(last) = metas.last() else { return Ok(usage) };
            after = last.n;
            for meta in &metas {
                usage.payloads += 1;
                usage.files += u64::from(meta.in_file());
                usage.bytes += meta.bytes;
                usage.stored += meta.stored;
            }
        }
    }
}
