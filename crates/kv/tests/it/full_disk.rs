//! R3: a disk that the store itself has filled.

use foldback_kv::{Batch, Delete, Engine, Error, Expect, Key, Kv, Mode, Space, open};
use std::path::Path;
use std::process::Command;

/// A small disk in memory, unmounted with the value.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, with a note, if none can be mounted.
    fn mount(size: &str) -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(disk.0.path());
        if mount.output().is_ok_and(|ran| ran.status.success()) {
            return Some(disk);
        }
        println!("SKIPPED: a disk can be mounted by the superuser only");
        None
    }

    fn store(&self) -> std::path::PathBuf {
        self.0.path().join("store")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

fn open_at(dir: &Path) -> std::sync::Arc<dyn Kv> {
    open(dir, Engine::Sqlite, Mode::ReadWrite).unwrap()
}

/// Appends records to a todo until the disk is full, and returns how many were acknowledged.
fn fill(kv: &dyn Kv, todo: u32, from: u64, bytes: usize) -> u64 {
    for n in from.. {
        let put = vec![(Key { space: Space::Message, todo, n }, vec![n as u8; bytes])];
        let expect = Some(Expect { todo, head: n, next: n + 1 });
        match kv.commit(Batch { expect, put, delete: Vec::new() }) {
            Ok(()) => {}
            Err(Error::Full { .. }) => return n,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

/// R3: what filled the disk can be erased, and the space is used again, whatever the size of the records.
#[test]
fn r3_a_disk_filled_by_the_store_gets_room_by_erasing() {
    for bytes in [300, 15_000, 700_000] {
        let Some(disk) = Disk::mount("12m") else { return };
        let kv = open_at(&disk.store());
        let held = fill(kv.as_ref(), 1, 0, bytes);
        // Most of the disk could be used.
        assert!(held * bytes as u64 > 6 << 20, "{held} records of {bytes} bytes");
        // A process that begins now finds the same.
        drop(kv);
        let kv = open_at(&disk.store());
        assert_eq!(kv.head(1).unwrap(), held);
        assert_eq!(
            kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX).unwrap().len() as u64,
            held
        );
        let expect = Some(Expect { todo: 1, head: held, next: 0 });
        let delete = vec![Delete::todo(Space::Message, 1)];
        kv.erase(Batch { expect, put: Vec::new(), delete }).unwrap();
        assert_eq!(kv.head(1).unwrap(), 0);
        assert!(fill(kv.as_ref(), 2, 0, bytes) > held / 2, "of {held} records of {bytes} bytes");
        assert_eq!(kv.check().unwrap(), Vec::new());
    }
}

/// R3: others who fill the disk while the store is in use leave it a log that its reserve can copy.
#[test]
fn r3_the_log_stays_short_on_a_disk_with_little_space() {
    let Some(disk) = Disk::mount("24m") else { return };
    let kv = open_at(&disk.store());
    let put = |n: u64| {
        let put = vec![(Key { space: Space::Message, todo: 1, n }, vec![7; 15_000])];
        kv.commit(Batch { put, ..Batch::default() }).unwrap();
    };
    (0..200).for_each(put);
    let log = disk.store().join("store.sqlite-wal").metadata().unwrap().len();
    assert!(log < 1 << 20, "{log} bytes");
}
