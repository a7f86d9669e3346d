//! Waiting for what others commit.

use super::{batch, writing};
use foldback_kv::{Kv, Mode, Server as Address, open};
use foldback_testkit::postgres::Server;
use std::thread;
use std::time::{Duration, Instant};

/// Waits for a commit of another store, and returns how long it took from the commit's answer.
fn wait_for(reader: &dyn Kv, writer: &dyn Kv, head: u64) -> Duration {
    let seen = reader.changed().unwrap();
    thread::scope(|scope| {
        let written = scope.spawn(|| {
            thread::sleep(Duration::from_millis(120));
            writer.commit(batch(1, head, b"news")).unwrap();
            Instant::now()
        });
        assert!(reader.wait_for_change(seen, Duration::from_secs(10)).unwrap());
        assert_ne!(reader.changed().unwrap(), seen);
        let now = Instant::now();
        now.saturating_duration_since(written.join().unwrap())
    })
}

/// PG5: a waiting reader learns of a commit of another process, also after its connection was lost.
#[test]
fn pg5_who_waits_is_told() {
    let Some(mut server) = Server::start("pg5_who_waits_is_told") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let writer = writing(&dir.path().join("1"), &address);
    let reader = open(&dir.path().join("2"), Address::new(&address), Mode::ReadOnly).unwrap();
    let seen = reader.changed().unwrap();
    let begin = Instant::now();
    assert!(!reader.wait_for_change(seen, Duration::from_millis(300)).unwrap(), "nothing happened");
    assert!(begin.elapsed() >= Duration::from_millis(300));
    // By now it listens: without a notice it would look every two seconds.
    for head in 0..3 {
        let took = wait_for(&*reader, &*writer, head);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    server.stop();
    server.restart();
    let took = wait_for(&*reader, &*writer, 3);
    assert!(took < Duration::from_secs(3), "{took:?}");
    thread::sleep(Duration::from_secs(1));
    let took = wait_for(&*reader, &*writer, 4);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// PG5: where there are no notices, the counter is the truth: a reader that may not listen sees every commit in time.
#[test]
fn pg5_without_notices_the_counter_is_read() {
    let Some(server) = Server::start("pg5_without_notices_the_counter_is_read") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    server.sql("test_0", "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC");
    server.sql("test_0", "CREATE ROLE writer LOGIN; GRANT CREATE ON SCHEMA public TO writer");
    let address = address.replace("owner@", "writer@");
    let writer = writing(&dir.path().join("1"), &address);
    let reader = writing(&dir.path().join("2"), &address);
    for head in 0..3 {
        let took = wait_for(&*reader, &*writer, head);
        assert!(took < Duration::from_millis(2_500), "{took:?}");
    }
}
