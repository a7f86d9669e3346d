//! The folder of payload files.
//!
//! A path consists only of the todo's number and the hexadecimal digits of a hash, so no text that
//! a model or a user wrote ever reaches the file system:
//!
//! ```text
//! <root>/<todo number>/lock               held while a file takes its name or is swept
//! <root>/<todo number>/new-<pid>-<count>  a file that is being written
//! <root>/<todo number>/<2 hex>/<64 hex>   the payload of this hash
//! ```
//!
//! Below the root no link is followed.

mod draft;
mod local_file;
mod plain;
mod temp;

use crate::Error;
use crate::payload_files::{Draft, FileName, Good, PayloadFile, PayloadFiles, Sealed};
use draft::FolderDraft;
use local_file::LocalFile;
pub(crate) use plain::sync_folder;
use plain::{is_real_folder, list, older, open_file, private, real_folder, remove, same_file};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use temp::{TEMP, Temp};

pub(crate) struct Folder {
    root: PathBuf,
    /// Folders whose own entry this process has made durable.
    synced: Mutex<BTreeSet<PathBuf>>,
}

impl Folder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, synced: Mutex::default() }
    }

    fn path(&self, todo: u32, hash: &[u8; 32]) -> PathBuf {
        let name = hex(hash);
        let shard = name.get(..2).unwrap_or_default();
        self.todo(todo).join(shard).join(&name)
    }

    /// Opens the file of a payload, if there is one.
    fn open_plain(&self, todo: u32, hash: &[u8; 32]) -> Result<Option<File>, Error> {
        let path = self.path(todo, hash);
        for folder in path.ancestors().skip(1).take(2) {
            match fs::symlink_metadata(folder) {
                Ok(found) => real_folder(folder, &found)?,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Error::io("look at", folder, error)),
            }
        }
        open_file(&path, OpenOptions::new().read(true))
    }

    /// Creates a new file for writing, which is removed unless it is published.
    fn temp(&self, todo: u32) -> Result<Temp, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = self.todo(todo);
        self.make(&folder)?;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{TEMP}{}-{count}", std::process::id()));
            match private(OpenOptions::new().write(true).create_new(true)).open(&path) {
                Ok(file) => {
                    foldback_core::failpoint!("backend-store.temp.created");
                    return Ok(Temp { file: Some(file), path, kept: false });
                }
                // Left by a process that had the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create", path, error)),
            }
        }
    }

    /// Makes the written file durable under the name of its hash. If there is a file of that name
    /// that `good` accepts, that one stays, and the result of `good` is returned.
    ///
    /// When this returns, the file and its name survive a loss of power.
    fn publish(
        &self,
        mut temp: Temp,
        todo: u32,
        hash: &[u8; 32],
        good: Good<'_>,
    ) -> Result<Option<Sealed>, Error> {
        foldback_core::failpoint!("backend-store.payload.written");
        if let Some(file) = temp.file.take() {
            file.sync_all().map_err(|error| Error::io("sync", &temp.path, error))?;
        }
        foldback_core::failpoint!("backend-store.payload.synced");
        let path = self.path(todo, hash);
        let Some(shard) = path.parent() else { return Ok(None) };
        self.make(shard)?;
        let _lock = self.lock(todo)?;
        // Anything but a plain file is replaced, and not followed.
        let there = match self.open_plain(todo, hash) {
            Err(Error::Refused { .. }) => None,
            other => other?,
        };
        let there = there.and_then(|file| LocalFile::new(file).ok());
        if let Some(said) = there.and_then(|file| good(Box::new(file))) {
            // Left by a writer that did not reach its commit. Its time is renewed, so that it is
            // not swept before this writer commits, and it is synced, whatever that writer did.
            let open = OpenOptions::new().read(true).write(true).to_owned();
            if let Some(file) = open_file(&path, &open)? {
                file.set_modified(SystemTime::now())
                    .and_then(|()| file.sync_all())
                    .map_err(|error| Error::io("sync", &path, error))?;
                sync_folder(shard)?;
                return Ok(Some(said));
            }
        }
        fs::rename(&temp.path, &path).map_err(|error| Error::io("rename", &temp.path, error))?;
        temp.kept = true;
        foldback_core::failpoint!("backend-store.payload.renamed");
        if let Err(error) = sync_folder(shard) {
            // A second sync may succeed without having done anything, so the next attempt must find
            // nothing here and write the file again.
            fs::remove_file(&path).ok();
            return Err(error);
        }
        foldback_core::failpoint!("backend-store.payload.published");
        Ok(None)
    }

    fn todo(&self, todo: u32) -> PathBuf {
        self.root.join(todo.to_string())
    }

    /// Creates a folder below the root and all folders above it, each durably.
    fn make(&self, folder: &Path) -> Result<(), Error> {
        let inside: Vec<&Path> =
            folder.ancestors().take_while(|path| path.starts_with(&self.root)).collect();
        for path in inside.into_iter().rev() {
            let mut builder = DirBuilder::new();
            builder.recursive(path == self.root);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            let made = match builder.create(path) {
                // A recursive builder accepts what it finds. The root may be wherever the caller
                // likes, and may be a link that they made.
                Ok(()) => path != self.root,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
                Err(error) => return Err(Error::io("create", path, error)),
            };
            if path != self.root {
                let found = fs::symlink_metadata(path)
                    .map_err(|error| Error::io("look at", path, error))?;
                real_folder(path, &found)?;
            }
            // The process that created it may have died before making it durable, so it is not
            // enough to sync what was created here.
            let known = self.synced.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
            if (made || !known)
                && let Some(above) = path.parent()
            {
                let here = Path::new(".");
                sync_folder(if above.as_os_str().is_empty() { here } else { above })?;
                let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
                if synced.len() > 4096 {
                    synced.clear();
                }
                synced.insert(path.to_owned());
            }
        }
        Ok(())
    }

    /// Keeps out other writers and sweepers of the todo, in this and in other processes.
    fn lock(&self, todo: u32) -> Result<File, Error> {
        let path = self.todo(todo).join("lock");
        loop {
            let mut open = OpenOptions::new();
            open.read(true).write(true);
            let file = match open_file(&path, &open)? {
                Some(file) => file,
                None => match private(open.create_new(true)).open(&path) {
                    Ok(file) => file,
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(Error::io("create", path, error)),
                },
            };
            match file.lock() {
                Ok(()) => {}
                // Without locks, the age that sweeping waits for must be enough.
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(file),
                Err(error) => return Err(Error::io("lock", path, error)),
            }
            // The todo may have been forgotten while this waited, and the lock with it.
            match fs::symlink_metadata(&path) {
                Ok(found) if same_file(&file, &found) => return Ok(file),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("look at", path, error)),
            }
        }
    }
}

impl PayloadFiles for Folder {
    fn address(&self, name: &FileName) -> PathBuf {
        self.path(name.todo, &name.hash)
    }

    fn draft(&self, todo: u32) -> Result<Box<dyn Draft + '_>, Error> {
        Ok(Box::new(FolderDraft::new(self, todo, self.temp(todo)?)))
    }

    fn open(&self, name: &FileName) -> Result<Option<Box<dyn PayloadFile>>, Error> {
        let Some(file) = self.open_plain(name.todo, &name.hash)? else { return Ok(None) };
        let file = LocalFile::new(file)
            .map_err(|error| Error::io("look at", self.address(name), error))?;
        Ok(Some(Box::new(file)))
    }

    fn copy(&self, name: &FileName, to: &Folder) -> Result<bool, Error> {
        let Some(mut from) = self.open_plain(name.todo, &name.hash)? else { return Ok(false) };
        let mut temp = to.temp(name.todo)?;
        // From file to file, so that the system copies.
        temp.file()
            .and_then(|file| io::copy(&mut from, file))
            .map_err(|error| Error::io("write", &temp.path, error))?;
        to.publish(temp, name.todo, &name.hash, &mut |_| None).map(|_| true)
    }

    fn list(&self, todo: u32) -> Result<Vec<FileName>, Error> {
        let mut names = Vec::new();
        for (shard, name, found) in list(&self.todo(todo))? {
            if !found.is_dir() || !is_hex(&name, 2) {
                continue;
            }
            for (_, file, found) in list(&shard)? {
                let hash = unhex(&file).filter(|_| found.is_file() && file.starts_with(&name));
                names.extend(hash.map(|hash| FileName { todo, hash, copy: None }));
            }
        }
        Ok(names)
    }

    fn sweep(
        &self,
        todo: u32,
        age: Duration,
        now: SystemTime,
        wanted: &dyn Fn(&FileName) -> bool,
    ) -> Result<u64, Error> {
        let folder = self.todo(todo);
        if !is_real_folder(&folder)? {
            return Ok(0);
        }
        let _lock = self.lock(todo)?;
        let mut gone = 0;
        for (path, name, found) in list(&folder)? {
            if found.is_file() && name.starts_with(TEMP) && older(&path, &found, age, now)? {
                gone += u64::from(remove(&path)?);
            }
            if !found.is_dir() || !is_hex(&name, 2) {
                continue;
            }
            for (path, file, found) in list(&path)? {
                let Some(hash) = unhex(&file).filter(|_| file.starts_with(&name)) else { continue };
                let name = FileName { todo, hash, copy: None };
                if found.is_file() && !wanted(&name) && older(&path, &found, age, now)? {
                    gone += u64::from(remove(&path)?);
                }
            }
        }
        Ok(gone)
    }

    fn forget(&self, todo: u32) -> Result<(), Error> {
        let folder = self.todo(todo);
        if !is_real_folder(&folder)? {
            return Ok(());
        }
        let _lock = self.lock(todo)?;
        fs::remove_dir_all(&folder).map_err(|error| Error::io("remove", &folder, error))?;
        foldback_core::failpoint!("backend-store.todo.removed");
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        synced.retain(|path| !path.starts_with(&folder));
        drop(synced);
        sync_folder(&self.root)
    }

    fn todos(&self) -> Result<Vec<u32>, Error> {
        if !self.root.is_dir() {
            return Ok(Vec::new());
        }
        let mut todos: Vec<u32> = list(&self.root)?
            .into_iter()
            .filter(|(_, _, found)| found.is_dir())
            .filter_map(|(_, name, _)| name.parse().ok().filter(|no: &u32| no.to_string() == name))
            .collect();
        todos.sort_unstable();
        Ok(todos)
    }

    #[cfg(feature = "objects")]
    fn claim(&self) -> Result<(), Error> {
        self.make(&self.root)
    }

    #[cfg(feature = "objects")]
    fn is_claimed(&self) -> Result<bool, Error> {
        Ok(self.root.is_dir())
    }
}

pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter().fold(String::with_capacity(hash.len() * 2), |mut out, byte| {
        write!(out, "{byte:02x}").ok();
        out
    })
}

fn is_hex(name: &str, length: usize) -> bool {
    name.len() == length && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn unhex(name: &str) -> Option<[u8; 32]> {
    if !is_hex(name, 64) {
        return None;
    }
    let mut hash = [0; 32];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_gone_holds_nothing() {
        // As a copy finds it when a todo is forgotten after its folder was seen.
        let dir = tempfile::tempdir().unwrap();
        assert!(list(&dir.path().join("7")).unwrap().is_empty());
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(list(&file), Err(Error::Io { doing: "list", .. })));
    }
}
