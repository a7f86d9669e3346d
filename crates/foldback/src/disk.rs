//! The free space of the disk that a store is on, and the reserve that the store keeps.

use crate::Error;
use crate::error::Failure;
use foldback_blockstore::Error as BlockError;
use foldback_kv::Error as KvError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The space that a store reserves so that data can be deleted on a full disk: deleting needs writing.
const RESERVE_BYTES: u64 = 1 << 20;

/// The reserve is only made if this many times its size is free.
const ENOUGH: u64 = 4;

const RESERVE: &str = "RESERVE";

/// Makes the reserve of a store if it has none and there is room for it. Its only purpose is deleting once
/// the disk is full.
pub(crate) fn make_reserve(store: &Path) {
    let path = store.join(RESERVE);
    if !path.exists() && free_bytes(store).is_some_and(|free| free >= ENOUGH * RESERVE_BYTES) {
        // An incomplete reserve reserves nothing.
        match fill(&path) {
            // Another process is making it right now.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => drop(fs::remove_file(&path)),
            Ok(()) => {}
        }
    }
}

/// Releases the space that the store in a folder reserves, for [`forget`](crate::Maintenance::forget), on a disk
/// that is so full that the store cannot even be opened. It is reserved again once there is room. Returns whether
/// there was any.
///
/// # Errors
/// When its file cannot be removed.
pub fn release_reserve(store: &Path) -> Result<bool, Error> {
    let path = store.join(RESERVE);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Failure::Io { path, source }.into()),
    }
}

/// Returns the error of an index or a file that could not be written; if the store's disk is nearly full, one
/// that names the disk.
pub(crate) fn named(store: Option<&Path>, error: impl Into<Error>) -> Error {
    let error = error.into();
    let is_of_files =
        matches!(error.failure(), Failure::Blocks(BlockError::Index { .. }) | Failure::Io { .. });
    let free = store.and_then(free_bytes).filter(|free| is_of_files && *free < LITTLE);
    match store.zip(free) {
        Some((path, free)) => no_room(path, free, error.to_string()),
        None => error,
    }
}

/// Returns the error of a compaction; if there was no room for it, the error says how much it needs.
pub(crate) fn named_of_compaction(store: &Path, error: KvError) -> Error {
    let KvError::Full { .. } = error else { return error.into() };
    let names = fs::read_dir(store).into_iter().flatten().flatten();
    let engine = names.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"store."));
    let needed: u64 = engine.map(|entry| bytes_of(&entry.path())).sum();
    let what = format!(
        "compacting rewrites the store, which needs up to {needed} bytes, and as many in the folder for \
         temporary files; make room, or copy the store to another disk by a backup and compact the copy"
    );
    no_room(store, free_bytes(store).unwrap_or_default(), what)
}

/// Returns the error of a deletion that has no room although the reserve is used up.
pub(crate) fn named_of_forgetting(store: &Path) -> Error {
    let what = "deleting needs some space itself, and the store's reserve for that is used up; remove other files, or \
                copy the store to another disk (`foldback backup FOLDER`) and forget the todo in the copy";
    no_room(store, free_bytes(store).unwrap_or_default(), what.to_owned())
}

fn no_room(path: &Path, free: u64, what: String) -> Error {
    Failure::NoRoom { path: path.to_owned(), free, what }.into()
}

/// Returns the size in bytes of a file, or of the files in a folder.
fn bytes_of(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| bytes_of(&entry.path())).sum(),
        Err(_) => path.metadata().map_or(0, |file| file.len()),
    }
}

/// With less than this much free, an index may not be written: its writer takes some megabytes at once.
const LITTLE: u64 = 4 << 20;

#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Creates the file with space actually allocated for it.
fn fill(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    allocate(&options.open(path)?)
}

#[cfg(target_os = "linux")]
fn allocate(file: &File) -> io::Result<()> {
    let flags = rustix::fs::FallocateFlags::empty();
    Ok(rustix::fs::fallocate(file, flags, 0, RESERVE_BYTES)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File) -> io::Result<()> {
    io::Write::write_all(&mut file, &vec![0x5a; RESERVE_BYTES as usize])
}
