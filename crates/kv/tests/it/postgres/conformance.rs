//! The suite that every engine passes, and what a server adds to it.

use super::{batch, writing};
use foldback_kv::{
    Batch, EncryptionKey, Key, Mode, Server as Address, Space, Truth, open, open_with,
};
use foldback_testkit::{engine, postgres::Server};
use std::cell::Cell;

/// PG1: the suite, on a plain and on a sealed store.
#[test]
fn pg1_postgres_conforms() {
    let Some(server) = Server::start("pg1_postgres_conforms") else { return };
    let (dir, stores) = (tempfile::tempdir().unwrap(), Cell::new(0));
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        engine::conforms(|| {
            let dir = dir.path().join(stores.replace(stores.get() + 1).to_string());
            let truth = Truth::Server(Address::new(server.database()));
            open_with(&dir, truth, Mode::ReadWrite, key.as_ref()).unwrap()
        });
    }
}

/// PG1: random batches give what an ordered map gives.
#[test]
fn r6_pg1_postgres_is_the_model() {
    let Some(server) = Server::start("r6_pg1_postgres_is_the_model") else { return };
    crate::model::run_on_servers(|| Truth::Server(Address::new(server.database())), 12);
}

/// PG1: a commit is one transaction, and one round trip: everything is sent before anything is answered.
#[test]
fn pg1_a_commit_is_one_transaction_and_one_round_trip() {
    let name = "pg1_a_commit_is_one_transaction_and_one_round_trip";
    let Some(server) = Server::start(name) else { return };
    let proxy = super::proxy::Proxy::start(server.port());
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path(), &proxy.redirect(&server.database()));
    kv.commit(batch(1, 0, b"the connection is there")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let commits = "SELECT sum(number) FROM foldback_slot";
    assert_eq!(server.sql("test_0", commits).trim(), "1");
    let before = transactions(&server);
    // After one of 64, old tokens are removed; beside others, a notice is sent.
    let turns = (1..6).map(|head| {
        let before = proxy.turns();
        kv.commit(batch(1, head, b"hello")).unwrap();
        proxy.turns() - before
    });
    assert_eq!(turns.min(), Some(1), "round trips of a commit");
    // The notices are transactions of their own, which wait for no disk.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let made = transactions(&server) - before;
    assert!((5..=10).contains(&made), "{made} transactions of five commits");
}

/// Returns how many transactions changed something so far.
fn transactions(server: &Server) -> u64 {
    let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
    server.sql("postgres", sql).trim().parse().unwrap()
}

/// PG1: the tokens of old commits do not pile up, whether anybody compacts the store or not.
#[test]
fn pg1_old_tokens_are_removed() {
    let Some(server) = Server::start("pg1_old_tokens_are_removed") else { return };
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path(), &server.database());
    let age = "UPDATE foldback_commit SET made = now() - INTERVAL '2 hours'";
    let old = || {
        let sql = "SELECT count(*) FROM foldback_commit WHERE made < now() - INTERVAL '1 hour'";
        server.sql("test_0", sql).trim().parse::<u64>().unwrap()
    };
    kv.commit(batch(1, 0, b"")).unwrap();
    server.sql("test_0", age);
    let heads = 1..3_000;
    let removed = heads.clone().find(|head| {
        kv.commit(batch(1, *head, b"")).unwrap();
        head % 50 == 0 && old() == 0
    });
    assert!(removed.is_some(), "none was removed in {} commits", heads.end);
    server.sql("test_0", age);
    kv.compact().unwrap();
    assert_eq!(old(), 0);
}

/// PG1: no commit waits while the tokens of old ones are removed.
#[test]
fn pg1_no_commit_waits_for_old_tokens() {
    let Some(server) = Server::start("pg1_no_commit_waits_for_old_tokens") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(dir.path(), &address);
    kv.commit(batch(1, 0, b"")).unwrap();
    server.sql("test_0", "UPDATE foldback_commit SET made = now() - INTERVAL '2 hours'");
    let held = server.hold(&address, "UPDATE foldback_commit SET made = made");
    // One commit in 64 removes tokens.
    for head in 1..600 {
        let begin = std::time::Instant::now();
        kv.commit(batch(1, head, b"")).unwrap();
        assert!(begin.elapsed().as_secs() < 5, "commit {head}: {:?}", begin.elapsed());
    }
    drop(held);
}

/// PG1: values of any size, and batches of any number of records.
#[test]
fn pg1_large_batches_are_whole() {
    let Some(server) = Server::start("pg1_large_batches_are_whole") else { return };
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path(), &server.database());
    let key = |n| Key { space: Space::Block, todo: 5, n };
    let put = (0..2_500).map(|n| (key(n), vec![n as u8; 40])).collect();
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    assert_eq!(kv.scan(Space::Block, 5, 0..Key::N_END, usize::MAX).unwrap().len(), 2_500);
    let put = (0..3).map(|n| (key(n), vec![n as u8; 20 << 20])).collect();
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    for n in 0..3 {
        assert!(kv.get(key(n)).unwrap() == Some(vec![n as u8; 20 << 20]), "record {n}");
    }
    assert_eq!(kv.check().unwrap(), []);
}

/// PG1: a check holds a few megabytes at once, whatever the records have.
#[test]
fn pg1_a_check_reads_in_steps_of_few_bytes() {
    let Some(server) = Server::start("pg1_a_check_reads_in_steps_of_few_bytes") else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), super::proxy::Proxy::start(server.port()));
    let kv = writing(dir.path(), &proxy.redirect(&server.database()));
    let key = |n| Key { space: Space::Block, todo: 5, n };
    let put = (0..32).map(|n| (key(n), vec![n as u8; 1 << 20])).collect();
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    assert_eq!(kv.check().unwrap(), []);
    assert!(((1 << 20)..(8 << 20)).contains(&proxy.longest()), "{} bytes", proxy.longest());
}

/// R4: a changed byte of a record, of a head, and a row in a wrong place are findings, and wrong answers of none.
#[test]
fn r4_what_was_changed_in_the_database_is_noticed() {
    let name = "r4_what_was_changed_in_the_database_is_noticed";
    let Some(server) = Server::start(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path(), &server.database());
    for n in 0..3 {
        kv.commit(batch(1, n, b"hello")).unwrap();
    }
    assert_eq!(kv.check().unwrap(), []);
    for sql in [
        "UPDATE foldback_record SET record = set_byte(record, 10, 0) WHERE n = 1",
        "UPDATE foldback_record SET slot = 63 WHERE n = 2",
        "UPDATE foldback_head SET head = 7",
    ] {
        server.sql("test_0", sql);
    }
    let said: Vec<String> = kv.check().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(kv.get(Key { space: Space::Message, todo: 1, n: 1 }).is_err());
    assert!(matches!(kv.head(1), Err(foldback_kv::Error::CorruptHead { todo: 1, .. })));
    assert!(matches!(
        kv.commit(batch(1, 3, b"more")),
        Err(foldback_kv::Error::CorruptHead { todo: 1, .. })
    ));
}

/// PG1: a backup is a store of the default engine, of one moment, sealed if the database is.
#[cfg(feature = "sqlite")]
#[test]
fn pg1_a_backup_opens_without_a_server() {
    let Some(server) = Server::start("pg1_a_backup_opens_without_a_server") else { return };
    let dir = tempfile::tempdir().unwrap();
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        let name = if key.is_some() { "sealed" } else { "plain" };
        let (store, copy) = (dir.path().join(name), dir.path().join(format!("{name}-copy")));
        let address = Address::new(server.database());
        let kv = open_with(&store, address, Mode::ReadWrite, key.as_ref()).unwrap();
        let registry = foldback_kv::Registry::new(kv.clone());
        let todo = |id: &str| foldback_core::TodoId::new(id).unwrap();
        let [gone, kept] = ["gone", "kept"].map(|id| registry.create(&todo(id), b"info").unwrap());
        for n in 0..30 {
            kv.commit(batch(kept.no(), n, &[7; 1_000])).unwrap();
        }
        registry.remove(&gone, Vec::new()).unwrap();
        kv.backup(&copy).unwrap();
        assert!(matches!(kv.backup(&copy), Err(foldback_kv::Error::NotEmpty { .. })));
        kv.commit(batch(kept.no(), 30, b"later")).unwrap();
        let engine = foldback_kv::Engine::Sqlite;
        if key.is_some() {
            let unopened = open(&copy, engine, Mode::ReadOnly);
            assert!(matches!(unopened, Err(foldback_kv::Error::NoKey { .. })));
        }
        let copied = open_with(&copy, engine, Mode::ReadWrite, key.as_ref()).unwrap();
        assert_eq!(copied.head(kept.no()).unwrap(), 30);
        assert_eq!(copied.head(gone.no()).unwrap(), foldback_kv::FORGOTTEN_HEAD);
        let found = copied.scan(Space::Message, kept.no(), 0..99, 99).unwrap();
        assert!(found.len() == 30 && found.iter().all(|(_, value)| *value == [7; 1_000]));
        assert_eq!(copied.check().unwrap(), []);
    }
}
