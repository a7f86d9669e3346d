//! A disk as it may be after a power failure: everything synced, and some of the rest.

use super::trace::{Event, Place};
use foldback_testkit::Random;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

/// The bytes of a sector. The last write that reaches the disk may end at any sector.
const SECTOR: usize = 512;

/// The files below one folder.
pub(super) struct Disk {
    root: PathBuf,
    files: Vec<File>,
    /// Names as the run sees them, and as they are durable.
    names: BTreeMap<PathBuf, Named>,
    durable: BTreeMap<PathBuf, Named>,
    /// Changes of names since the last sync, in order.
    pending: Vec<Rename>,
    open: HashMap<i32, Open>,
}

/// What a name leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Folder,
    File(usize),
}

#[derive(Default)]
struct File {
    durable: Vec<u8>,
    /// The contents that a reader during the run sees.
    seen: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A change of one name: it leads to `to`, or nowhere.
struct Rename {
    path: PathBuf,
    to: Option<Named>,
    /// Whether the next change belongs to the same step.
    has_more: bool,
}

struct Open {
    path: PathBuf,
    file: Option<usize>,
    at: usize,
    is_append: bool,
}

impl Disk {
    /// Creates the model of the files below this folder, which is still empty.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            open: HashMap::new(),
        }
    }

    /// Applies a system call.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Open { fd, place, creates, truncates, appends } => {
                if let Some(path) = self.path(place) {
                    self.open(*fd, path, *creates, *truncates, *appends);
                }
            }
            Event::Close { fd } => drop(self.open.remove(fd)),
            Event::Seek { fd, to } => {
                self.open.entry(*fd).and_modify(|open| open.at = *to);
            }
            Event::Write { fd, at, bytes } => self.write(*fd, *at, bytes),
            Event::Copy { from, to, count } => self.copy(*from, *to, *count),
            Event::Length { fd, length } => {
                if let Some(file) = self.open.get(fd).and_then(|open| open.file) {
                    self.files[file].change(Change::Length(*length));
                }
            }
            Event::Room { fd, end } => {
                if let Some(file) = self.open.get(fd).and_then(|open| open.file)
                    && self.files[file].seen.len() < *end
                {
                    self.files[file].change(Change::Length(*end));
                }
            }
            Event::Sync { fd } => self.sync(*fd),
            Event::Rename { from, to } => {
                let (Some(from), Some(to)) = (self.path(from), self.path(to)) else { return };
                self.rename(&from, &to);
            }
            Event::Remove { place } => {
                if let Some(path) = self.path(place) {
                    self.name(path, None, false);
                }
            }
            Event::Folder { place } => {
                if let Some(path) = self.path(place) {
                    self.name(path, Some(Named::Folder), false);
                }
            }
            Event::Said(_) => {}
        }
    }

    /// Returns a path below the root, relative to it.
    fn path(&self, place: &Place) -> Option<PathBuf> {
        let whole = match place.folder {
            Some(fd) => self.root.join(&self.open.get(&fd)?.path).join(&place.path),
            None => place.path.clone(),
        };
        whole.strip_prefix(&self.root).ok().map(Path::to_owned)
    }

    fn open(&mut self, fd: i32, path: PathBuf, creates: bool, truncates: bool, appends: bool) {
        let file = match self.names.get(&path) {
            Some(Named::File(file)) => Some(*file),
            Some(Named::Folder) => None,
            None if creates => {
                self.files.push(File::default());
                let file = self.files.len() - 1;
                self.name(path.clone(), Some(Named::File(file)), false);
                Some(file)
            }
            None => None,
        };
        if let Some(file) = file.filter(|_| truncates) {
            self.files[file].change(Change::Length(0));
        }
        self.open.insert(fd, Open { path, file, at: 0, is_append: appends });
    }

    fn write(&mut self, fd: i32, at: Option<usize>, bytes: &[u8]) {
        let Some(open) = self.open.get_mut(&fd) else { return };
        let Some(file) = open.file else { return };
        let end = self.files[file].seen.len();
        let from = at.unwrap_or(if open.is_append { end } else { open.at });
        if at.is_none() {
            open.at = from + bytes.len();
        }
        self.files[file].change(Change::Write { at: from, bytes: bytes.to_vec() });
    }

    fn copy(&mut self, from: i32, to: i32, count: usize) {
        let Some(open) = self.open.get_mut(&from) else { return };
        let Some(file) = open.file else { return };
        let seen = &self.files[file].seen;
        let range = open.at.min(seen.len())..(open.at + count).min(seen.len());
        open.at = range.end;
        let bytes = seen[range].to_vec();
        self.write(to, None, &bytes);
    }

    fn sync(&mut self, fd: i32) {
        let Some(open) = self.open.get(&fd) else { return };
        if let Some(file) = open.file {
            self.files[file].settle();
            return;
        }
        // A sync of a folder makes the names in it durable. A step of two names is durable when either folder is synced.
        let folder = open.path.clone();
        let mut kept = Vec::new();
        let mut step = Vec::new();
        for change in std::mem::take(&mut self.pending) {
            let is_last = !change.has_more;
            step.push(change);
            if !is_last {
                continue;
            }
            let is_here = |change: &Rename| change.path.parent() == Some(&*folder);
            if step.iter().any(is_here) {
                step.drain(..).for_each(|change| change.apply(&mut self.durable));
            } else {
                kept.append(&mut step);
            }
        }
        self.pending = kept;
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let Some(named) = self.names.get(from).copied() else { return };
        let inside: Vec<PathBuf> = match named {
            Named::Folder => {
                self.names.keys().filter(|path| path.starts_with(from)).cloned().collect()
            }
            Named::File(_) => vec![from.to_owned()],
        };
        let last = inside.len() - 1;
        for (n, path) in inside.into_iter().enumerate() {
            let named = self.names.get(&path).copied();
            let place = match path.strip_prefix(from) {
                Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
                _ => to.to_owned(),
            };
            self.name(place, named, true);
            self.name(path, None, n != last);
        }
    }

    fn name(&mut self, path: PathBuf, to: Option<Named>, has_more: bool) {
        let change = Rename { path, to, has_more };
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    /// Writes the files into a folder as the disk may hold them now.
    pub(super) fn write_image(&self, to: &Path, dice: &mut Random) -> io::Result<()> {
        let mut names = self.durable.clone();
        // One image in four has every name, one in four only durable names.
        let mut left = match dice.below(4) {
            0 => self.pending.len(),
            1 => 0,
            _ => dice.below(self.pending.len() + 1),
        };
        for change in &self.pending {
            if left == 0 {
                break;
            }
            change.apply(&mut names);
            // A step is applied whole or not at all.
            left = if change.has_more { left.max(2) - 1 } else { left - 1 };
        }
        for (path, named) in &names {
            let place = to.join(path);
            match named {
                Named::Folder => std::fs::create_dir_all(place)?,
                // The first process that opens SQLite's log rebuilds its index.
                Named::File(_) if path.to_string_lossy().ends_with("-shm") => {}
                Named::File(file) => {
                    if let Some(folder) = place.parent() {
                        std::fs::create_dir_all(folder)?;
                    }
                    std::fs::write(place, self.files[*file].image(dice))?;
                }
            }
        }
        Ok(())
    }
}

impl Rename {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Named>) {
        match self.to {
            Some(named) => drop(names.insert(self.path.clone(), named)),
            None => drop(names.remove(&self.path)),
        }
    }
}

impl File {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    fn settle(&mut self) {
        self.durable.clone_from(&self.seen);
        self.pending.clear();
    }

    /// Returns everything synced and some of the later writes, the last of them torn.
    fn image(&self, dice: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let share = 1 + dice.below(4);
        let mut chosen: Vec<Change> =
            self.pending.iter().filter(|_| dice.below(share + 1) != 0).cloned().collect();
        if let Some(Change::Write { at, bytes }) = chosen.last_mut() {
            // Sectors are aligned to the disk, not to where the write begins.
            let sectors = (*at + bytes.len()) / SECTOR - *at / SECTOR + 1;
            let end = (*at / SECTOR + dice.below(sectors + 1)) * SECTOR;
            bytes.truncate(end.saturating_sub(*at));
        }
        chosen.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Length(length) => file.resize(*length, 0),
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*at..end].copy_from_slice(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(fd: i32, path: &str, creates: bool) -> Event {
        let place = Place { folder: None, path: Path::new("/r").join(path) };
        Event::Open { fd, place, creates, truncates: false, appends: false }
    }

    fn written(fd: i32, bytes: &[u8]) -> Event {
        Event::Write { fd, at: None, bytes: bytes.to_vec() }
    }

    /// Returns the contents that the file `name` has over many images; `None` if it is missing.
    fn contents(disk: &Disk, name: &str) -> std::collections::BTreeSet<Option<Vec<u8>>> {
        let mut dice = Random::new(7);
        let image = |_| {
            let dir = tempfile::tempdir().unwrap();
            disk.write_image(dir.path(), &mut dice).unwrap();
            std::fs::read(dir.path().join(name)).ok()
        };
        (0..200).map(image).collect()
    }

    #[test]
    fn what_was_synced_is_in_every_image() {
        let mut disk = Disk::new(Path::new("/r"));
        let folder = Event::Folder { place: Place { folder: None, path: "/r/s".into() } };
        for event in [folder, open(3, "s/a", true), written(3, b"one"), open(4, "s", false)] {
            disk.take(&event);
        }
        assert!(contents(&disk, "s/a").contains(&None));
        disk.take(&Event::Sync { fd: 4 });
        assert!(contents(&disk, "s/a").contains(&Some(Vec::new())), "a name without its content");
        disk.take(&Event::Sync { fd: 3 });
        assert_eq!(contents(&disk, "s/a"), [Some(b"one".to_vec())].into());
        disk.take(&written(3, b"two"));
        let seen = contents(&disk, "s/a");
        assert_eq!(seen, [Some(b"one".to_vec()), Some(b"onetwo".to_vec())].into(), "{seen:?}");
        let moved = |name: &str| Place { folder: Some(4), path: name.into() };
        disk.take(&Event::Rename { from: moved("a"), to: moved("b") });
        let whole = Some(b"onetwo".to_vec());
        disk.take(&Event::Sync { fd: 3 });
        assert_eq!(contents(&disk, "s/b"), [None, whole.clone()].into());
        disk.take(&Event::Sync { fd: 4 });
        assert_eq!(contents(&disk, "s/a"), [None].into());
        assert_eq!(contents(&disk, "s/b"), [whole].into());
    }

    #[test]
    fn the_last_write_may_be_torn() {
        let mut disk = Disk::new(Path::new("/r"));
        for event in [open(3, "a", true), written(3, &[7; 2_000])] {
            disk.take(&event);
        }
        let lengths: Vec<_> = contents(&disk, "a").into_iter().flatten().map(|b| b.len()).collect();
        assert_eq!(lengths, [0, 512, 1_024, 1_536, 2_000]);
    }
}
