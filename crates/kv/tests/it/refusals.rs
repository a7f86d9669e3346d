//! A disk that refuses, and a folder that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use foldback_kv::{Batch, Engine, Error, Key, Kv, Mode, Space, open};

use crate::folder::engines;
use foldback_testkit::alone;
use foldback_testkit::engine::check;

const ROLE: &str = "FOLDBACK_KV_TEST_REFUSAL";
const STORE: &str = "FOLDBACK_KV_TEST_STORE";

/// Plays a child's role; returns whether this process is a child.
fn plays_a_role() -> bool {
    let (Ok(role), Ok(store)) = (std::env::var(ROLE), std::env::var(STORE)) else { return false };
    let store = Path::new(&store);
    match role.as_str() {
        "limited" => limited(store),
        "unwritable" => unwritable(store, std::env::var(ENGINE).unwrap().parse().unwrap()),
        "pending" => pending(store),
        other => panic!("{other:?} is no role"),
    }
    true
}

const ENGINE: &str = "FOLDBACK_KV_TEST_ENGINE";

fn child(role: &str, store: &Path, wrap: &[&str]) -> Command {
    let alone = alone("refusals::r3_a_failed_write_poisons_until_reopened");
    let mut command = Command::new(wrap[0]);
    command.args(&wrap[1..]).arg(alone.get_program()).args(alone.get_args());
    command.env(ROLE, role).env(STORE, store);
    // The end of the child's own run of tests is not for the readers of this one's.
    command.stdout(Stdio::null());
    command
}

fn put(kv: &dyn Kv, n: u64, size: usize) -> Result<(), Error> {
    let key = Key { space: Space::Message, todo: 1, n };
    kv.commit(Batch { put: vec![(key, vec![n as u8; size])], ..Batch::default() })
}

#[test]
fn r3_a_failed_write_poisons_until_reopened() {
    if plays_a_role() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    // Files of this child may not grow beyond half a megabyte or so; without the signal, a write
    // beyond that is an IO error.
    let script = "trap '' XFSZ; ulimit -f 800; exec \"$@\"";
    let status = child("limited", &store, &["sh", "-c", script, "sh"]).status().unwrap();
    assert!(status.success());
    let kv = open(&store, Engine::Sqlite, Mode::ReadWrite).unwrap();
    let acknowledged: u64 = fs::read_to_string(dir.path().join("acks")).unwrap().parse().unwrap();
    let kept = kv.scan(Space::Message, 1, 0..1000, 1000).unwrap();
    assert!(kept.len() as u64 >= acknowledged, "{} of {acknowledged}", kept.len());
    assert!(kept.iter().all(|(n, value)| *value == vec![*n as u8; 20_000]));
    put(&*kv, 1000, 20_000).unwrap();
    assert_eq!(kv.check().unwrap(), []);
}

fn limited(store: &Path) {
    let kv = open(store, Engine::Sqlite, Mode::ReadWrite).unwrap();
    let mut acknowledged = 0;
    let first = loop {
        assert!(acknowledged < 900, "the limit was not felt");
        match put(&*kv, acknowledged, 20_000) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(acknowledged > 3);
    assert!(matches!(first, Error::Io { .. }), "{first:?}");
    for _ in 0..2 {
        let second = put(&*kv, acknowledged, 1);
        assert!(matches!(second, Err(Error::Poisoned { .. })), "{second:?}");
        assert!(matches!(kv.compact(), Err(Error::Poisoned { .. })));
    }
    // Reading still works.
    let kept = kv.scan(Space::Message, 1, 0..1000, 1000).unwrap();
    assert_eq!(kept.len() as u64, acknowledged);
    fs::write(store.with_file_name("acks"), acknowledged.to_string()).unwrap();
}

/// Runs a child to which the folder's modes apply: a superuser runs it as another user.
fn as_a_user(role: &str, dir: &Path, store: &Path, engine: Engine) {
    let mut command = child(role, store, &["env"]);
    command.env(ENGINE, engine.name());
    if is_superuser(dir) {
        let nobody = 65_534;
        let owner = format!("{nobody}:{nobody}");
        let status = Command::new("chown").args(["-R", &owner]).arg(store).status().unwrap();
        assert!(status.success());
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(nobody).gid(nobody).current_dir("/");
    }
    let change = |mode: &str| {
        assert!(Command::new("chmod").args(["-R", mode]).arg(store).status().unwrap().success());
    };
    change("u-w");
    let status = command.status().unwrap();
    change("u+w");
    assert!(status.success());
}

/// Returns whether file modes do not apply to this process.
fn is_superuser(dir: &Path) -> bool {
    let probe = dir.join("probe");
    fs::create_dir(&probe).unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o500)).unwrap();
    fs::write(probe.join("x"), "").is_ok()
}

#[test]
fn r11_a_folder_that_cannot_be_written_is_read() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let kv = open(&store, engine, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 a\nexpect 7 0->1\ncommit", "ok");
        drop(kv);
        as_a_user("unwritable", dir.path(), &store, engine);
    }
}

fn unwritable(store: &Path, engine: Engine) {
    let kv = open(store, engine, Mode::ReadOnly).unwrap();
    check(&*kv, "get message 7/0\nscan message 7/0..9\nlast message 7\nhead 7", "a\n0=a\n0=a\n1");
    assert_eq!(kv.changed().unwrap(), kv.changed().unwrap());
    assert_eq!(kv.check().unwrap(), []);
    assert!(matches!(put(&*kv, 0, 1), Err(Error::ReadOnly { .. })));
    drop(kv);
    let before = fs::read_dir(store).unwrap().count();
    // A store that is opened for writing says by its error that it can only be read.
    let writing = open(store, engine, Mode::ReadWrite).and_then(|kv| put(&*kv, 0, 1));
    assert!(matches!(writing, Err(Error::ReadOnly { .. })), "{writing:?}");
    assert_eq!(fs::read_dir(store).unwrap().count(), before);
}

#[test]
fn r11_a_log_that_cannot_be_read_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let kv = open(&live, Engine::Sqlite, Mode::ReadWrite).unwrap();
    check(&*kv, "put message 7/0 a\ncommit", "ok");
    let store = dir.path().join("store");
    fs::create_dir(&store).unwrap();
    for name in ["FORMAT", "store.sqlite", "store.sqlite-wal"] {
        // By another process: closing a handle in this one would drop the store's locks.
        let status = Command::new("cp").args([live.join(name), store.join(name)]).status().unwrap();
        assert!(status.success());
    }
    as_a_user("pending", dir.path(), &store, Engine::Sqlite);
    let kv = open(&store, Engine::Sqlite, Mode::ReadWrite).unwrap();
    check(&*kv, "get message 7/0", "a");
}

fn pending(store: &Path) {
    let error = open(store, Engine::Sqlite, Mode::ReadOnly).err().unwrap();
    assert!(matches!(error, Error::PendingLog { .. }), "{error:?}");
}
