//! Several writers of one database, in processes of their own folders, as machines have them.

use super::{append, batch, values, writing};
use foldback_core::TodoId;
use foldback_kv::{
    Batch, Delete, EncryptionKey, Error, FORGOTTEN_HEAD, Key, Kv, Mode, Registry,
    Server as Address, Space, open_with,
};
use foldback_testkit::postgres::Server;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

/// R10: writers with folders of their own append to one todo, and to several, and one order explains all of it.
#[test]
fn r10_pg2_machines_write_one_todo() {
    let Some(server) = Server::start("r10_pg2_machines_write_one_todo") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let machines: Vec<_> =
        (0..4).map(|at| writing(&dir.path().join(at.to_string()), &address)).collect();
    thread::scope(|scope| {
        for (at, kv) in machines.iter().enumerate() {
            for todo in [1, 2] {
                scope.spawn(move || {
                    for n in 0..25_u8 {
                        append(kv.as_ref(), todo, &[at as u8, n]).unwrap();
                        assert_eq!(kv.lost().unwrap(), None);
                    }
                });
            }
        }
    });
    for todo in [1, 2] {
        let all = values(machines[0].as_ref(), todo);
        assert_eq!(all.len(), 100);
        for at in 0..4 {
            let own: Vec<u8> = all.iter().filter(|v| v[0] == at).map(|v| v[1]).collect();
            assert_eq!(own, (0..25).collect::<Vec<u8>>(), "machine {at}, in its order");
        }
    }
    assert_eq!(machines[0].check().unwrap(), []);
}

/// S14: two machines that write an encrypted store at once keep its ledgers right.
#[test]
fn s14_pg2_machines_write_an_encrypted_store() {
    let Some(server) = Server::start("s14_pg2_machines_write_an_encrypted_store") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let key = EncryptionKey::new([7; 32]);
    let open = |at: usize| {
        let dir = dir.path().join(at.to_string());
        open_with(&dir, Address::new(address.clone()), Mode::ReadWrite, Some(&key)).unwrap()
    };
    // They find or make the key at once, too.
    let machines: Vec<Arc<dyn Kv>> = thread::scope(|scope| {
        let opened: Vec<_> = (0..3).map(|at| scope.spawn(move || open(at))).collect();
        opened.into_iter().map(|machine| machine.join().unwrap()).collect()
    });
    thread::scope(|scope| {
        for (at, kv) in machines.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..15_u8 {
                    append(kv.as_ref(), 1 + u32::from(n % 2), &[at as u8, n]).unwrap();
                    let key = Key { space: Space::Session, todo: 1, n: 0 };
                    let put = vec![(key, vec![at as u8, n])];
                    kv.commit(Batch { put, ..Batch::default() }).unwrap();
                }
            });
        }
    });
    assert_eq!(values(machines[0].as_ref(), 1).len() + values(machines[1].as_ref(), 2).len(), 45);
    assert_eq!(machines[2].check().unwrap(), []);
}

/// A todo is forgotten by one machine while another writes to it: nothing of it stays, whatever it held.
#[test]
fn pg2_what_is_forgotten_takes_no_more_writes() {
    let Some(server) = Server::start("pg2_what_is_forgotten_takes_no_more_writes") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let [one, other] = ["1", "2"].map(|name| writing(&dir.path().join(name), &address));
    let registry = Registry::new(one.clone());
    for round in 0..40 {
        let todo = registry.create(&TodoId::new(&format!("t{round}")).unwrap(), b"").unwrap();
        let no = todo.no();
        if round % 2 == 0 {
            other.commit(batch(no, 0, b"first")).unwrap();
        }
        let head = u64::from(round % 2 == 0);
        thread::scope(|scope| {
            let writer = scope.spawn(|| other.commit(batch(no, head, b"late")));
            let all = Delete::todo(Space::Message, no);
            let remover = scope.spawn(|| registry.remove(&todo, vec![all]));
            remover.join().unwrap().unwrap();
            let written = writer.join().unwrap();
            assert!(matches!(written, Ok(()) | Err(Error::Conflict { .. })), "{written:?}");
        });
        assert_eq!(other.head(no).unwrap(), FORGOTTEN_HEAD, "round {round}");
        assert_eq!(other.last(Space::Message, no).unwrap(), None, "round {round}: a phantom");
    }
}

/// Writers that lock the same records in different orders do not stop each other.
#[test]
fn pg2_blind_writers_of_the_same_records_go_on() {
    let Some(server) = Server::start("pg2_blind_writers_of_the_same_records_go_on") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(dir.path(), &address);
    thread::scope(|scope| {
        for at in 0..4_u8 {
            let kv = kv.as_ref();
            scope.spawn(move || {
                for round in 0..25_u64 {
                    let number = |n: u64| if at % 2 == 0 { n } else { 9 - n };
                    let put = |n| (Key { space: Space::Meta, todo: 3, n: number(n) }, vec![at]);
                    let delete =
                        Delete { space: Space::Meta, todo: 3, range: round % 5..round % 5 + 2 };
                    let delete = vec![delete];
                    kv.commit(Batch { put: (0..10).map(put).collect(), delete, expect: None })
                        .unwrap();
                }
            });
        }
    });
    let found = kv.scan(Space::Meta, 3, 0..10, 10).unwrap();
    let writers: BTreeSet<_> = found.iter().map(|(_, value)| value[0]).collect();
    assert_eq!((found.len(), writers.len()), (10, 1), "the last batch is there whole");
}
