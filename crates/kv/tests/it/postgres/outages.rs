//! A server that is killed, restarted, suspended, or cut off.

use super::proxy::Proxy;
use super::{append, batch, values, writing};
use foldback_core::TodoId;
use foldback_kv::{
    Batch, Delete, Error, FORGOTTEN_HEAD, Key, Mode, Registry, Server as Address, Space, open,
};
use foldback_testkit::postgres::Server;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// PG3: the answer of a commit is lost, and the commit is made exactly once, whether the head would tell or not.
#[test]
fn pg3_a_commit_whose_answer_was_lost_is_made_once() {
    let name = "pg3_a_commit_whose_answer_was_lost_is_made_once";
    let Some(server) = Server::start(name) else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let address = server.database();
    let kv = writing(&dir.path().join("1"), &proxy.redirect(&address));
    let other = writing(&dir.path().join("2"), &address);
    for round in 0..6 {
        kv.commit(batch(1, round, b"before")).ok();
        let head = kv.head(1).unwrap();
        let seen = other.changed().unwrap();
        proxy.swallow(true);
        thread::scope(|scope| {
            let lost = scope.spawn(|| match round % 2 {
                0 => kv.commit(batch(1, head, b"lost")),
                // Nothing but its token says that this was made.
                _ => {
                    let key = Key { space: Space::Session, todo: 1, n: 0 };
                    kv.commit(Batch { put: vec![(key, vec![1])], ..Batch::default() })
                }
            });
            // The server has made it, and others go on.
            assert!(other.wait_for_change(seen, Duration::from_secs(20)).unwrap());
            if round % 2 == 0 {
                append(other.as_ref(), 1, b"other").unwrap();
            } else {
                let key = Key { space: Space::Session, todo: 1, n: 0 };
                other.commit(Batch { put: vec![(key, vec![2])], ..Batch::default() }).unwrap();
            }
            proxy.swallow(false);
            lost.join().unwrap().unwrap();
        });
        if round % 2 == 1 {
            let key = Key { space: Space::Session, todo: 1, n: 0 };
            assert_eq!(kv.get(key).unwrap(), Some(vec![2]), "an older value came back");
        }
    }
    let all = values(other.as_ref(), 1);
    assert_eq!(all.iter().filter(|value| *value == b"lost").count(), 3);
    assert_eq!(all.iter().filter(|value| *value == b"other").count(), 3);
    assert_eq!(other.check().unwrap(), []);
}

/// PG3: the answer of a commit is lost while the server is still making it: the commit is sent again, waits for the
/// first one, and is made once, although nothing but its token says so.
#[test]
fn pg3_a_commit_is_sent_again_beside_itself() {
    let name = "pg3_a_commit_is_sent_again_beside_itself";
    let Some(server) = Server::start(name) else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let kv = writing(dir.path(), &proxy.redirect(&server.database()));
    let set = |value| {
        let key = Key { space: Space::Session, todo: 1, n: 0 };
        kv.commit(Batch { put: vec![(key, vec![value])], ..Batch::default() })
    };
    set(0).unwrap();
    let waiting = || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'foldback' \
                   AND wait_event_type = 'Lock'";
        server.sql("test_0", sql).trim().parse::<usize>().unwrap()
    };
    let until_waiting = |count| {
        let begin = Instant::now();
        while waiting() < count {
            assert!(begin.elapsed() < Duration::from_secs(20), "{count} sends do not wait");
            thread::sleep(Duration::from_millis(5));
        }
    };
    thread::scope(|scope| {
        // The last statement of the commit waits for this until a table is there.
        let hold = "DO $$ BEGIN LOCK TABLE foldback_slot IN EXCLUSIVE MODE; \
                    WHILE clock_timestamp() < now() + INTERVAL '1 minute' \
                    AND NOT EXISTS (SELECT FROM pg_class WHERE relname = 'release') \
                    LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";
        let held = scope.spawn(|| server.sql("test_0", hold));
        let holds = "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted \
                     AND relation = 'foldback_slot'::regclass";
        while server.sql("test_0", holds).trim() != "1" {
            thread::sleep(Duration::from_millis(5));
        }
        let sent = scope.spawn(|| set(1));
        until_waiting(1);
        proxy.hang_up();
        until_waiting(2);
        server.sql("test_0", "CREATE TABLE release ()");
        sent.join().unwrap().unwrap();
        held.join().unwrap();
    });
    let commits = "SELECT sum(number) FROM foldback_slot";
    assert_eq!(server.sql("test_0", commits).trim(), "2", "it was made twice");
    set(2).unwrap();
    assert_eq!(kv.check().unwrap(), []);
}

/// PG3: a commit that was made is sent again, and its beginning is refused: nothing of it is made piece by piece.
#[test]
fn pg3_a_commit_without_its_beginning_changes_nothing() {
    let name = "pg3_a_commit_without_its_beginning_changes_nothing";
    let Some(server) = Server::start(name) else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let address = server.database();
    let kv = writing(&dir.path().join("1"), &proxy.redirect(&address));
    let other = writing(&dir.path().join("2"), &address);
    let key = Key { space: Space::Session, todo: 1, n: 0 };
    let set = |kv: &dyn foldback_kv::Kv, value| {
        kv.commit(Batch { put: vec![(key, vec![value])], ..Batch::default() })
    };
    set(kv.as_ref(), 0).unwrap();
    let seen = other.changed().unwrap();
    proxy.swallow(true);
    thread::scope(|scope| {
        let lost = scope.spawn(|| set(kv.as_ref(), 1));
        assert!(other.wait_for_change(seen, Duration::from_secs(20)).unwrap());
        set(other.as_ref(), 2).unwrap();
        // The server may have answered late.
        proxy.wait_for_swallowed();
        proxy.mangle(true);
        proxy.swallow(false);
        let unknown = lost.join().unwrap().unwrap_err();
        assert!(matches!(unknown, Error::Unknown { .. }), "{unknown}");
    });
    assert_eq!(other.get(key).unwrap(), Some(vec![2]), "an older value came back");
    let commits = "SELECT sum(number) FROM foldback_slot";
    assert_eq!(server.sql("test_0", commits).trim(), "3");
}

/// PG3: a commit whose answer never comes is sent again on another connection, and is known to be made.
#[test]
fn pg3_a_commit_that_hangs_is_sent_again() {
    let Some(server) = Server::start("pg3_a_commit_that_hangs_is_sent_again") else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let kv = writing(dir.path(), &proxy.redirect(&server.database()));
    kv.commit(batch(1, 0, b"before")).unwrap();
    proxy.hang();
    kv.commit(batch(1, 1, b"hanging")).unwrap();
    assert_eq!(values(kv.as_ref(), 1), [b"before".to_vec(), b"hanging".to_vec()]);
}

/// PG3: a todo is forgotten whose deletion takes longer than a commit may: it is waited for while the server works on it.
#[test]
fn pg3_a_deletion_that_takes_long_is_waited_for() {
    let name = "pg3_a_deletion_that_takes_long_is_waited_for";
    let Some(server) = Server::start(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path(), &server.database());
    let registry = Registry::new(kv.clone());
    let todo = registry.create(&TodoId::new("large").unwrap(), b"").unwrap();
    kv.commit(batch(todo.no(), 0, b"one of many")).unwrap();
    let slow = format!(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(20); RETURN OLD; END $$; \
         CREATE TRIGGER slow BEFORE DELETE ON foldback_record FOR EACH ROW \
         WHEN (OLD.todo = {}) EXECUTE FUNCTION slow()",
        todo.no()
    );
    server.sql("test_0", &slow);
    let begin = Instant::now();
    registry.remove(&todo, vec![Delete::todo(Space::Message, todo.no())]).unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(kv.head(todo.no()).unwrap(), FORGOTTEN_HEAD);
    assert_eq!(kv.last(Space::Message, todo.no()).unwrap(), None);
    assert_eq!(kv.check().unwrap(), []);
}

/// PG3: a deletion whose answer never comes is sent again, like any other commit.
#[test]
fn pg3_a_deletion_that_hangs_is_sent_again() {
    let Some(server) = Server::start("pg3_a_deletion_that_hangs_is_sent_again") else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let kv = writing(dir.path(), &proxy.redirect(&server.database()));
    kv.commit(batch(1, 0, b"before")).unwrap();
    proxy.hang();
    let begin = Instant::now();
    let delete = vec![Delete::todo(Space::Message, 1)];
    kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(kv.last(Space::Message, 1).unwrap(), None);
}

/// PG3: a server that accepts connections and says nothing does not keep the others from being asked.
#[test]
fn pg3_a_server_that_says_nothing_is_passed_over() {
    let name = "pg3_a_server_that_says_nothing_is_passed_over";
    let Some(server) = Server::start(name) else { return };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let first = format!("@127.0.0.1:{},", silent.local_addr().unwrap().port());
    let kv = writing(dir.path(), &format!("{}?connect_timeout=1", address.replace('@', &first)));
    kv.commit(batch(1, 0, b"hello")).unwrap();
    assert_eq!(values(kv.as_ref(), 1).len(), 1);
}

/// PG3: connections are cut at any time under load.
#[test]
fn pg3_cut_connections_lose_nothing() {
    let Some(server) = Server::start("pg3_cut_connections_lose_nothing") else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let address = server.database();
    let kv = writing(&dir.path().join("1"), &proxy.redirect(&address));
    let done = AtomicBool::new(false);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for at in 0..4_u8 {
            let (kv, done, acknowledged) = (kv.as_ref(), &done, &acknowledged);
            scope.spawn(move || {
                let mut n = 0_u32;
                while !done.load(Ordering::SeqCst) {
                    let value = [&[at][..], &n.to_le_bytes()].concat();
                    append(kv, 1 + u32::from(at % 2), &value).unwrap();
                    acknowledged.lock().unwrap().push(value);
                    n += 1;
                }
            });
        }
        for round in 0..25_u64 {
            wait_for_more(&acknowledged);
            thread::sleep(Duration::from_millis(round * 7 % 40));
            proxy.cut(false);
        }
        done.store(true, Ordering::SeqCst);
    });
    check_all(&dir.path().join("2"), &address, acknowledged.into_inner().unwrap());
}

/// Waits until a few more values are acknowledged, so that what follows hits writers at work, on any machine.
fn wait_for_more(acknowledged: &Mutex<Vec<Vec<u8>>>) {
    let count = || acknowledged.lock().unwrap().len();
    let (before, begin) = (count(), Instant::now());
    while count() < before + 4 && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that a database holds every acknowledged value exactly once, and no other.
fn check_all(dir: &std::path::Path, address: &str, mut acknowledged: Vec<Vec<u8>>) {
    let kv = writing(dir, address);
    let mut found = [values(kv.as_ref(), 1), values(kv.as_ref(), 2)].concat();
    found.sort();
    acknowledged.sort();
    assert!(acknowledged.len() > 20, "{} are too few to prove anything", acknowledged.len());
    assert_eq!(found.len(), acknowledged.len(), "lost, doubled, or never written");
    assert!(found == acknowledged);
    assert_eq!(kv.check().unwrap(), []);
}

/// PG3: the server is killed in the middle of transactions, and starts again, under load.
#[test]
fn pg3_a_server_that_is_killed_under_load_loses_nothing() {
    let name = "pg3_a_server_that_is_killed_under_load_loses_nothing";
    let Some(mut server) = Server::start(name) else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(&dir.path().join("1"), &address);
    let done = AtomicBool::new(false);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for at in 0..4_u8 {
            let (kv, done, acknowledged) = (kv.as_ref(), &done, &acknowledged);
            scope.spawn(move || {
                let mut n = 0_u32;
                while !done.load(Ordering::SeqCst) {
                    let value = [&[at][..], &n.to_le_bytes()].concat();
                    append(kv, 1 + u32::from(at % 2), &value).unwrap();
                    acknowledged.lock().unwrap().push(value);
                    n += 1;
                }
            });
        }
        for round in 0..6_u64 {
            wait_for_more(&acknowledged);
            thread::sleep(Duration::from_millis(round * 31 % 60));
            if round % 3 == 2 {
                server.stop();
            } else {
                server.kill();
            }
            server.restart();
        }
        wait_for_more(&acknowledged);
        done.store(true, Ordering::SeqCst);
    });
    check_all(&dir.path().join("2"), &address, acknowledged.into_inner().unwrap());
}

/// PG3: a server that says nothing for a while, as an overloaded machine does, is waited for.
#[test]
fn pg3_a_suspended_server_is_waited_for() {
    let Some(server) = Server::start("pg3_a_suspended_server_is_waited_for") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(dir.path(), &address);
    kv.commit(batch(1, 0, b"before")).unwrap();
    for n in 1..4 {
        server.suspend();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| kv.commit(batch(1, n, b"meanwhile")));
            thread::sleep(Duration::from_millis(400));
            assert!(!waiting.is_finished(), "nobody can have answered");
            server.resume();
            waiting.join().unwrap().unwrap();
        });
    }
    assert_eq!(values(kv.as_ref(), 1).len(), 4);
}

/// PG3: without a server, a store says so in time, and goes on when the server is back.
#[test]
fn pg3_a_store_goes_on_when_its_server_is_back() {
    let name = "pg3_a_store_goes_on_when_its_server_is_back";
    let Some(mut server) = Server::start(name) else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(&dir.path().join("1"), &address);
    kv.commit(batch(1, 0, b"before")).unwrap();
    server.stop();
    let begin = Instant::now();
    let refused = open(&dir.path().join("2"), Address::new(&address), Mode::ReadWrite);
    let error = refused.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let name = format!(
        "the database postgres://127.0.0.1:{}/test_0 could not be reached: ",
        server.port()
    );
    assert!(error.to_string().starts_with(&name), "{error}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| kv.commit(batch(1, 1, b"meanwhile")));
        let reading = scope.spawn(|| kv.head(1));
        thread::sleep(Duration::from_millis(700));
        server.restart();
        waiting.join().unwrap().unwrap();
        reading.join().unwrap().unwrap();
    });
    assert_eq!(values(kv.as_ref(), 1), [b"before".to_vec(), b"meanwhile".to_vec()]);
}

/// PG3: a server that stays away while a commit is in the air leaves an error that says so, and the store goes on.
#[test]
fn pg3_an_unknown_outcome_is_said() {
    let Some(server) = Server::start("pg3_an_unknown_outcome_is_said") else { return };
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let address = server.database();
    let kv = writing(dir.path(), &proxy.redirect(&address));
    kv.commit(batch(1, 0, b"before")).unwrap();
    proxy.swallow(true);
    let begin = Instant::now();
    let unknown = kv.commit(batch(1, 1, b"unknown")).unwrap_err();
    assert!(matches!(unknown, Error::Unknown { .. }), "{unknown}");
    assert!(begin.elapsed() < Duration::from_secs(45), "{:?}", begin.elapsed());
    assert!(unknown.to_string().contains("unknown whether that write is stored"), "{unknown}");
    proxy.swallow(false);
    // It was made; a writer that reads the todo again sees it.
    assert_eq!(values(kv.as_ref(), 1).len(), 2);
    assert_eq!(append(kv.as_ref(), 1, b"after").unwrap(), 2);
}
