//! The disk of a server runs full.

use super::{append, values, writing};
use foldback_kv::{Error, Mode, Server as Address, open};
use foldback_testkit::Random;
use foldback_testkit::postgres::Server;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A small disk in memory that holds a server's data. It is unmounted with the value.
struct Disk(PathBuf);

impl Disk {
    /// Moves the data of a server to a disk of its own. `None`, with a note, if none can be mounted.
    fn under(server: &mut Server) -> Option<Self> {
        server.stop();
        let (data, moved) = (server.data(), server.data().with_extension("moved"));
        fs::rename(&data, &moved).unwrap();
        fs::create_dir(&data).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"]).arg(&data);
        if !mount.output().is_ok_and(|ran| ran.status.success()) {
            println!("SKIPPED: a disk can be mounted by the superuser only");
            fs::remove_dir(&data).unwrap();
            fs::rename(&moved, &data).unwrap();
            return None;
        }
        let disk = Self(data);
        let mut copy = Command::new("cp");
        // The folder itself, too, so that its owner and its mode are the same.
        copy.args(["-a", "--no-target-directory"]).arg(&moved).arg(&disk.0);
        assert!(copy.status().unwrap().success());
        server.restart();
        Some(disk)
    }

    /// Takes the space that is left.
    fn fill(&self) {
        let mut file = File::create(self.0.join("fill")).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// R3, PG3: on a server without space a commit is an error that says so. What was acknowledged is read meanwhile, and the
/// same store goes on once there is room.
#[test]
fn r3_pg3_a_full_disk_of_the_server_loses_nothing() {
    let name = "r3_pg3_a_full_disk_of_the_server_loses_nothing";
    let Some(mut server) = Server::start(name) else { return };
    let Some(disk) = Disk::under(&mut server) else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(dir.path(), &address);
    let mut dice = Random::new(3);
    // No server can pack these to less.
    let mut value = || (0..50_000).map(|_| dice.below(256) as u8).collect::<Vec<u8>>();
    let mut acknowledged = Vec::new();
    let mut add = |acknowledged: &mut Vec<Vec<u8>>| {
        let value = value();
        append(kv.as_ref(), 1, &value).map(|_| acknowledged.push(value))
    };
    for _ in 0..5 {
        add(&mut acknowledged).unwrap();
    }
    disk.fill();
    let refused = (0..100).find_map(|_| add(&mut acknowledged).err()).unwrap();
    assert!(matches!(refused, Error::Full { .. }), "{refused}");
    assert!(add(&mut acknowledged).is_err());
    assert_eq!(values(kv.as_ref(), 1), acknowledged);
    let reader = open(&dir.path().join("2"), Address::new(&address), Mode::ReadOnly).unwrap();
    assert_eq!(values(reader.as_ref(), 1), acknowledged);

    disk.make_room();
    for _ in 0..5 {
        add(&mut acknowledged).unwrap();
    }
    assert_eq!(values(reader.as_ref(), 1), acknowledged);
    assert_eq!(kv.check().unwrap(), []);
}
