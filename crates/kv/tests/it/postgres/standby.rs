//! A standby that takes over.

use super::proxy::Proxy;
use super::{append, batch, replace, values, writing};
use foldback_kv::{Error, Key, Space};
use foldback_testkit::postgres::Server;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Returns the address of a database on both servers.
fn both(primary: &Server, standby: &Server) -> String {
    format!("postgres://owner@127.0.0.1:{},127.0.0.1:{}/test_0", primary.port(), standby.port())
}

/// PG3: the primary is killed under load, and its synchronous standby is promoted: nothing acknowledged is lost, nothing
/// is doubled, and the writers go on by themselves.
#[test]
fn pg3_a_synchronous_standby_that_takes_over_has_everything() {
    let name = "pg3_a_synchronous_standby_that_takes_over_has_everything";
    let Some(mut primary) = Server::start(name) else { return };
    let address = primary.database();
    let dir = tempfile::tempdir().unwrap();
    drop(writing(&dir.path().join("1"), &address));
    let standby = primary.standby();
    let address = both(&primary, &standby);
    let machines = ["1", "2"].map(|name| writing(&dir.path().join(name), &address));
    let done = AtomicBool::new(false);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (at, kv) in machines.iter().enumerate() {
            for todo in [1, 2] {
                let (done, acknowledged) = (&done, &acknowledged);
                scope.spawn(move || {
                    let mut n = 0_u32;
                    while !done.load(Ordering::SeqCst) {
                        let value = [&[at as u8, todo as u8][..], &n.to_le_bytes()].concat();
                        append(kv.as_ref(), todo, &value).unwrap();
                        acknowledged.lock().unwrap().push(value);
                        n += 1;
                    }
                });
            }
        }
        thread::sleep(Duration::from_millis(600));
        primary.kill();
        thread::sleep(Duration::from_millis(300));
        standby.promote();
        let before = acknowledged.lock().unwrap().len();
        for _ in 0..200 {
            thread::sleep(Duration::from_millis(50));
            if acknowledged.lock().unwrap().len() > before + 20 {
                break;
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    let kv = &machines[0];
    let mut found = [values(kv.as_ref(), 1), values(kv.as_ref(), 2)].concat();
    let mut acknowledged = acknowledged.into_inner().unwrap();
    found.sort();
    acknowledged.sort();
    assert!(acknowledged.len() > 40, "{} are too few to prove anything", acknowledged.len());
    assert!(found == acknowledged, "{} found, {} acknowledged", found.len(), acknowledged.len());
    for kv in &machines {
        assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]));
    }
}

/// R4: a server that forgot acknowledged commits, as an older backup or a standby that was behind has, is read, and
/// takes no writes until the loss is accepted.
#[test]
fn r4_pg3_a_server_that_forgot_commits_is_noticed() {
    let name = "r4_pg3_a_server_that_forgot_commits_is_noticed";
    let Some(server) = Server::start(name) else { return };
    let address = server.database();
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("1");
    let kv = writing(&store, &address);
    for n in 0..3 {
        append(kv.as_ref(), 1, &[n]).unwrap();
    }
    drop(kv);
    server.sql("postgres", "CREATE DATABASE earlier TEMPLATE test_0");
    let kv = writing(&store, &address);
    for n in 3..6 {
        append(kv.as_ref(), 1, &[n]).unwrap();
    }
    drop(kv);
    let earlier = server.address("earlier");
    let kv = writing(&store, &earlier);
    let lost = kv.lost().unwrap().unwrap();
    assert_eq!((lost.acknowledged, lost.held), (6, 3));
    assert_eq!(values(kv.as_ref(), 1).len(), 3, "it is still read");
    for _ in 0..2 {
        assert!(matches!(append(kv.as_ref(), 1, b"x"), Err(Error::Lost { .. })));
        assert!(matches!(kv.compact(), Err(Error::Lost { .. })));
    }
    // Nor does a todo that lost nothing.
    assert!(matches!(append(kv.as_ref(), 2, b"x"), Err(Error::Lost { .. })));
    assert!(kv.check().unwrap().iter().any(|finding| finding.to_string().contains("lost writes")));
    // Another machine, which has not seen them, does not know.
    assert_eq!(writing(&dir.path().join("2"), &earlier).lost().unwrap(), None);
    kv.accept_loss().unwrap();
    assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]));
    append(kv.as_ref(), 1, b"on").unwrap();
    drop(kv);
    let kv = writing(&store, &earlier);
    assert_eq!(kv.lost().unwrap(), None);
    assert_eq!(kv.get(Key { space: Space::Message, todo: 1, n: 3 }).unwrap(), Some(b"on".to_vec()));
}

/// R4: a loss that one process has accepted holds no other process of its folder back.
#[test]
fn r4_pg3_an_accepted_loss_is_accepted_by_all() {
    let name = "r4_pg3_an_accepted_loss_is_accepted_by_all";
    let Some(server) = Server::start(name) else { return };
    let address = server.database();
    let dir = tempfile::tempdir().unwrap();
    append(writing(dir.path(), &address).as_ref(), 1, b"kept").unwrap();
    server.sql("postgres", "CREATE DATABASE earlier TEMPLATE test_0");
    let processes = [(); 2].map(|()| writing(dir.path(), &address));
    for kv in &processes {
        append(kv.as_ref(), 1, b"lost").unwrap();
    }
    replace(&server, "earlier");
    for kv in &processes {
        assert!(matches!(append(kv.as_ref(), 1, b"x"), Err(Error::Lost { .. })));
    }
    processes[0].accept_loss().unwrap();
    for kv in &processes {
        assert_eq!(kv.lost().unwrap(), None);
        append(kv.as_ref(), 1, b"on").unwrap();
    }
    assert_eq!(values(processes[0].as_ref(), 1).len(), 3);
}

/// R4: a commit whose answer was lost is witnessed once it is known to be made.
#[test]
fn r4_pg3_a_commit_that_was_sent_again_is_witnessed() {
    let name = "r4_pg3_a_commit_that_was_sent_again_is_witnessed";
    let Some(server) = Server::start(name) else { return };
    let address = server.database();
    let (dir, proxy) = (tempfile::tempdir().unwrap(), Proxy::start(server.port()));
    let store = dir.path().join("1");
    append(writing(&store, &address).as_ref(), 1, b"kept").unwrap();
    server.sql("postgres", "CREATE DATABASE earlier TEMPLATE test_0");
    let kv = writing(&store, &proxy.redirect(&address));
    let other = writing(&dir.path().join("2"), &address);
    let seen = other.changed().unwrap();
    proxy.swallow(true);
    thread::scope(|scope| {
        let sent = scope.spawn(|| kv.commit(batch(1, 1, b"sent again")));
        assert!(other.wait_for_change(seen, Duration::from_secs(20)).unwrap());
        proxy.swallow(false);
        sent.join().unwrap().unwrap();
    });
    drop(kv);
    let lost = writing(&store, &server.address("earlier")).lost().unwrap().unwrap();
    assert_eq!((lost.acknowledged, lost.held), (2, 1));
}
