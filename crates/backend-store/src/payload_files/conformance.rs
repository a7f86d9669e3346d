//! What every implementation of the port does.

use super::{FileName, PayloadFiles, Sealed, Stored};
use crate::Error;
use std::io::{ErrorKind, Write as _};
use std::time::{Duration, SystemTime};

/// Longer than any implementation waits before it sweeps.
const AGES: Duration = Duration::from_secs(90 * 24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

/// The hash under which test bytes are put.
const HASH: [u8; 32] = [0xa1; 32];

/// Checks an implementation whose place is empty. `large` is the size of a file that it handles as a large one.
pub(crate) fn holds(files: &dyn PayloadFiles, large: usize) {
    nothing_is_there(files);
    a_file_is_read_by_range(files, large);
    a_file_that_is_put_again_is_there_once(files);
    an_unfinished_file_has_no_name(files);
    forgetting_removes_one_todo(files);
    sweeping_takes_old_orphans_alone(files);
    #[cfg(feature = "objects")]
    a_claimed_place_is_recognised(files);
}

fn nothing_is_there(files: &dyn PayloadFiles) {
    let name = FileName { todo: 1, hash: HASH, copy: None };
    assert!(files.todos().unwrap().is_empty());
    assert_eq!(files.list(1).unwrap(), []);
    assert!(files.open(&name).unwrap().is_none());
    files.forget(1).unwrap();
    assert_eq!(files.sweep(1, HOUR, SystemTime::now() + AGES, &|_| false).unwrap(), 0);
}

fn a_file_is_read_by_range(files: &dyn PayloadFiles, large: usize) {
    for (i, size) in [1, 5_000, 70_000, large].into_iter().enumerate() {
        let hash = [i as u8; 32];
        let bytes = bytes_of(size);
        let name = named(2, hash, &put(files, 2, hash, &bytes));
        let mut file = files.open(&name).unwrap().unwrap();
        assert_eq!(file.len(), size as u64);
        // Backwards and forwards, within and across whatever is read ahead.
        for (at, length) in [
            (0, size),
            (size - 1, 1),
            (0, 1),
            (size / 2, size / 3),
            (size / 3, size - size / 3),
            (size, 0),
        ] {
            let mut out = vec![0; length];
            file.read_at(at as u64, &mut out).unwrap();
            assert!(out == bytes[at..at + length], "{length} bytes at {at} of {size}");
        }
        for (at, length) in [(0, size + 1), (size, 1), (size + 7, 3)] {
            let error = file.read_at(at as u64, &mut vec![0; length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length} bytes at {at} of {size}");
        }
        let address = files.address(&name).display().to_string();
        assert!(address.contains("/2/"), "{address}");
    }
    let names = files.list(2).unwrap();
    assert_eq!(names.len(), 4);
    assert!(names.is_sorted());
    assert_eq!(files.todos().unwrap(), [2]);
}

fn a_file_that_is_put_again_is_there_once(files: &dyn PayloadFiles) {
    let bytes = bytes_of(90_000);
    let first = put(files, 3, HASH, &bytes);
    let again = put(files, 3, HASH, &bytes);
    assert_eq!(again, first);
    assert_eq!(files.list(3).unwrap(), [named(3, HASH, &first)]);
    // Another todo's is its own.
    let other = put(files, 4, HASH, &bytes);
    assert_eq!(files.list(4).unwrap(), [named(4, HASH, &other)]);
    assert_eq!(files.todos().unwrap(), [2, 3, 4]);
}

fn an_unfinished_file_has_no_name(files: &dyn PayloadFiles) {
    let mut draft = files.draft(5).unwrap();
    draft.write_all(&bytes_of(100_000)).unwrap();
    assert_eq!(files.list(5).unwrap(), []);
    drop(draft);
    assert_eq!(files.list(5).unwrap(), []);
}

fn forgetting_removes_one_todo(files: &dyn PayloadFiles) {
    let names = files.list(2).unwrap();
    files.forget(2).unwrap();
    assert_eq!(files.list(2).unwrap(), []);
    assert!(names.iter().all(|name| files.open(name).unwrap().is_none()));
    assert!(!files.todos().unwrap().contains(&2));
    assert_eq!(files.list(3).unwrap().len(), 1);
    files.forget(2).unwrap();
}

fn sweeping_takes_old_orphans_alone(files: &dyn PayloadFiles) {
    let kept = named(6, [1; 32], &put(files, 6, [1; 32], b"named by a record"));
    let orphan = named(6, [2; 32], &put(files, 6, [2; 32], b"named by none"));
    let wanted = |name: &FileName| *name == kept;
    let now = SystemTime::now();
    assert_eq!(files.sweep(6, HOUR, now, &wanted).unwrap(), 0);
    assert_eq!(files.sweep(6, HOUR, now - AGES, &wanted).unwrap(), 0);
    assert_eq!(files.list(6).unwrap(), [kept, orphan]);
    assert_eq!(files.sweep(6, HOUR, now + AGES, &wanted).unwrap(), 1);
    assert_eq!(files.sweep(6, HOUR, now + AGES, &wanted).unwrap(), 0);
    assert_eq!(files.list(6).unwrap(), [kept]);
    assert_eq!(files.list(3).unwrap().len(), 1);
}

#[cfg(feature = "objects")]
fn a_claimed_place_is_recognised(files: &dyn PayloadFiles) {
    files.claim().unwrap();
    files.claim().unwrap();
    assert!(files.is_claimed().unwrap());
    assert_eq!(files.list(6).unwrap().len(), 1);
}

/// Puts bytes, accepting a file that is there if it has the same.
pub(crate) fn put(files: &dyn PayloadFiles, todo: u32, hash: [u8; 32], bytes: &[u8]) -> Stored {
    try_put(files, todo, hash, bytes).unwrap()
}

pub(crate) fn try_put(
    files: &dyn PayloadFiles,
    todo: u32,
    hash: [u8; 32],
    bytes: &[u8],
) -> Result<Stored, Error> {
    let mut draft = files.draft(todo)?;
    for part in bytes.chunks(10_000) {
        draft.write_all(part).unwrap();
    }
    let sealed = Sealed { seal: hash, stored: bytes.len() as u64 };
    draft.put_if_absent(&hash, sealed, &mut |mut file| {
        let mut found = vec![0; file.len() as usize];
        file.read_at(0, &mut found).ok()?;
        (found == bytes).then_some(sealed)
    })
}

pub(crate) fn named(todo: u32, hash: [u8; 32], stored: &Stored) -> FileName {
    FileName { todo, hash, copy: stored.copy }
}

/// Bytes of which no two parts are alike.
pub(crate) fn bytes_of(size: usize) -> Vec<u8> {
    let mut out: Vec<u8> = (0..size.div_ceil(8) as u64)
        .flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes())
        .collect();
    out.truncate(size);
    out
}

#[test]
fn bs9_a_folder_is_a_place_for_files() {
    let dir = tempfile::tempdir().unwrap();
    let folder = crate::folder::Folder::new(dir.path().join("payloads"));
    holds(&folder, 3 << 20);
}
