//! The scenarios.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a suite says so by stopping")]

use super::heads::{forgotten, heads, listed_heads};
use super::script::check;
use foldback_kv::{Batch, Delete, Error, Expect, FORGOTTEN_HEAD, Key, Kv, MAX_VALUE_BYTES, Space};
use std::sync::Arc;

/// Runs the suite on an engine. `open` returns an empty store each time it is called.
///
/// ```
/// foldback_testkit::engine::conforms(foldback_kv::memory);
/// ```
///
/// # Panics
/// When the engine breaks a promise of [`Kv`]; the scenario is named on stderr.
pub fn conforms(open: impl Fn() -> Arc<dyn Kv>) {
    for (name, scenario) in SCENARIOS {
        eprintln!("{name}");
        scenario(&*open());
    }
}

type Scenario = fn(&dyn Kv);

/// Every scenario, by name.
const SCENARIOS: [(&str, Scenario); 18] = [
    ("an empty store answers", empty),
    ("records come back in order", order),
    ("deletions come before puts", replace),
    ("a batch is whole or nothing", whole),
    ("heads are compared and set", heads),
    ("heads are listed", listed_heads),
    ("a forgotten todo takes no writes", forgotten),
    ("todos and spaces are apart", apart),
    ("ranges have every shape", ranges),
    ("several records come at once", several),
    ("several ranges come at once", several_ranges),
    ("limits of numbers are checked", limits),
    ("values are any bytes of any size", values),
    ("the change counter moves", changes),
    ("compacting keeps what is there", compacts),
    ("a sound store has no findings", sound),
    ("eight threads lose nothing", threads),
    ("readers see whole batches", snapshots),
];

fn empty(kv: &dyn Kv) {
    check(
        kv,
        "get message 7/0
         scan message 7/0..100
         last message 7
         head 7
         commit
         delete message 7/0..100
         commit",
        "-
         -
         -
         0
         ok
         ok",
    );
}

fn order(kv: &dyn Kv) {
    check(
        kv,
        "put message 7/300 third
         put message 7/2 first
         put message 7/255 第二
         put message 7/4294967295 最后
         commit
         scan message 7/0..4294967296
         scan message 7/3..300
         scan message 7/0..4294967296 limit 2
         scan message 7/0..4294967296 limit 0
         last message 7
         put message 7/2 overwritten
         put message 7/2 twice
         commit
         get message 7/2",
        "ok
         2=first 255=第二 300=third 4294967295=最后
         255=第二
         2=first 255=第二
         -
         4294967295=最后
         ok
         twice",
    );
}

fn replace(kv: &dyn Kv) {
    check(
        kv,
        "put block 1/1 a
         put block 1/2 b
         put block 1/3 c
         commit
         put block 1/2 new
         delete block 1/1..3
         commit
         scan block 1/0..9
         delete block 1/0..4294967296
         commit
         scan block 1/0..9",
        "ok
         ok
         2=new 3=c
         ok
         -",
    );
}

fn whole(kv: &dyn Kv) {
    check(
        kv,
        "put message 7/0 kept
         expect 7 0->1
         commit
         put message 7/1 lost
         put name 9/9 lost
         delete message 7/0..1
         expect 7 0->5
         commit
         put message 7/2 lost
         put message 7/4294967296 no
         commit
         scan message 7/0..10
         get name 9/9
         head 7",
        "ok
         todo 7 has moved on: its head is 1, and the batch expected 0
         the key message 7/4294967296 is out of range: the todo must be below 2147483648, the number below 4294967296
         0=kept
         -
         1",
    );
}

fn apart(kv: &dyn Kv) {
    let most = Key::TODO_END - 1;
    for (i, space) in Space::ALL.into_iter().enumerate() {
        for todo in [0, 1, 255, 256, most] {
            let value = format!("{i} {todo}").into_bytes();
            let put = vec![(Key { space, todo, n: 5 }, value)];
            kv.commit(Batch { put, ..Batch::default() }).unwrap();
        }
    }
    // One todo of one space is removed; its neighbours stay.
    let delete = vec![Delete::todo(Space::Block, 255)];
    kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    for (i, space) in Space::ALL.into_iter().enumerate() {
        for todo in [0, 1, 255, 256, most] {
            let value = format!("{i} {todo}").into_bytes();
            let expected =
                if (space, todo) == (Space::Block, 255) { None } else { Some((5, value)) };
            assert_eq!(kv.last(space, todo).unwrap(), expected, "{space} {todo}");
            let scanned = kv.scan(space, todo, 0..Key::N_END, 10).unwrap();
            assert_eq!(scanned, expected.into_iter().collect::<Vec<_>>(), "{space} {todo}");
        }
    }
}

fn ranges(kv: &dyn Kv) {
    check(
        kv,
        "put file 1/0 a
         put file 1/4294967295 z
         put file 2/0 other
         commit
         scan file 1/0..18446744073709551615
         scan file 1/4294967295..4294967296
         scan file 1/4294967296..18446744073709551615
         scan file 1/5..5
         scan file 1/9..2
         delete file 1/9..2
         delete file 1/1..4294967295
         commit
         scan file 1/0..4294967296
         delete file 1/1..18446744073709551615
         commit
         scan file 1/0..4294967296
         scan file 2/0..1",
        "ok
         0=a 4294967295=z
         4294967295=z
         -
         -
         -
         ok
         0=a 4294967295=z
         ok
         0=a
         0=other",
    );
}

fn several(kv: &dyn Kv) {
    let key = |space, todo, n| Key { space, todo, n };
    let put = vec![
        (key(Space::Message, 5, 0), "第一".as_bytes().to_vec()),
        (key(Space::Message, 5, 7), Vec::new()),
        (key(Space::Message, 5, Key::N_END - 1), b"last".to_vec()),
        (key(Space::Message, 6, 3), b"another todo".to_vec()),
        (key(Space::Vector, 5, 3), b"another kind".to_vec()),
    ];
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    let each = |numbers: &[u64]| kv.get_each(Space::Message, 5, numbers).unwrap();
    assert_eq!(each(&[]), []);
    assert_eq!(each(&[3, 4]), [None, None]);
    let asked = [Key::N_END - 1, 3, 0, 7, 0];
    let one_by_one = asked.map(|n| kv.get(key(Space::Message, 5, n)).unwrap());
    assert_eq!(each(&asked), one_by_one);
    assert_eq!(one_by_one.iter().flatten().count(), 4);
    let out = kv.get_each(Space::Message, 5, &[0, Key::N_END]);
    assert!(matches!(out, Err(Error::KeyOutOfRange { .. })), "{out:?}");
    let out = kv.get_each(Space::Message, Key::TODO_END, &[0]);
    assert!(matches!(out, Err(Error::KeyOutOfRange { .. })), "{out:?}");
}

/// A head and several ranges.
fn several_ranges(kv: &dyn Kv) {
    let key = |space, n| Key { space, todo: 7, n };
    let message = |n| (key(Space::Message, n), format!("第{n}").into_bytes());
    let mut put: Vec<_> = (0..6).map(message).collect();
    put.extend([(key(Space::Block, 1), vec![1]), (key(Space::Index, 0), Vec::new())]);
    put.push((Key { space: Space::Message, todo: 8, n: 2 }, b"another todo".to_vec()));
    let expect = Some(Expect { todo: 7, head: 0, next: 6 });
    kv.commit(Batch { put, expect, ..Batch::default() }).unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "a backward range is a case")]
    let ranges = [
        (Space::Message, 2..Key::N_END),
        (Space::Message, 0..2),
        (Space::Index, 0..1),
        (Space::Vector, 0..9),
        (Space::Block, 0..u64::MAX),
        (Space::Message, 4..1),
    ];
    for limit in [0, 1, 3, usize::MAX] {
        let scans = kv.scan_each(7, &ranges, limit).unwrap();
        let alone = ranges.clone().map(|(space, range)| kv.scan(space, 7, range, limit).unwrap());
        assert_eq!((scans.head, scans.found), (6, alone.to_vec()), "limit {limit}");
    }
    assert_eq!(kv.scan_each(7, &[], 1).unwrap().found, <[Vec<(u64, Vec<u8>)>; 0]>::default());
    assert_eq!(kv.scan_each(9, &ranges, 9).unwrap().found, vec![Vec::new(); ranges.len()]);
    let out = kv.scan_each(Key::TODO_END, &ranges, 1);
    assert!(matches!(out, Err(Error::KeyOutOfRange { .. })), "{out:?}");
}

fn limits(kv: &dyn Kv) {
    let out = |answer: Result<(), Error>| {
        assert!(matches!(answer, Err(Error::KeyOutOfRange { .. })), "{answer:?}");
    };
    let todo = Key::TODO_END;
    let space = Space::Message;
    out(kv.get(Key { space, todo, n: 0 }).map(drop));
    out(kv.get(Key { space, todo: 0, n: Key::N_END }).map(drop));
    out(kv.scan(space, todo, 0..1, 1).map(drop));
    out(kv.scan(space, u32::MAX, 0..0, 1).map(drop));
    out(kv.last(space, todo).map(drop));
    out(kv.head(todo).map(drop));
    out(kv.commit(Batch { expect: Some(Expect { todo, head: 0, next: 1 }), ..Batch::default() }));
    out(kv.commit(Batch { delete: vec![Delete::todo(space, todo)], ..Batch::default() }));
    let put = vec![(Key { space, todo: 0, n: 0 }, vec![0; MAX_VALUE_BYTES + 1])];
    let large = kv.commit(Batch { put, ..Batch::default() });
    assert!(matches!(large, Err(Error::ValueTooLarge { .. })), "{large:?}");
}

fn values(kv: &dyn Kv) {
    let sizes = [0, 1, 8, 9, 4_000, 4_096, 70_000, 3_000_000];
    let value = |size: usize| (0..size).map(|i| (i * 7 + i / 251) as u8).collect::<Vec<u8>>();
    let key = |i: usize| Key { space: Space::PayloadBytes, todo: 3, n: i as u64 };
    let put = sizes.iter().enumerate().map(|(i, size)| (key(i), value(*size))).collect();
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    for (i, size) in sizes.into_iter().enumerate() {
        assert!(kv.get(key(i)).unwrap() == Some(value(size)), "a value of {size} bytes");
    }
}

fn changes(kv: &dyn Kv) {
    let mut seen = vec![kv.changed().unwrap()];
    assert_eq!(kv.changed().unwrap(), seen[0], "nothing was committed");
    for n in 0..5 {
        let put = vec![(Key { space: Space::Meta, todo: 0, n }, Vec::new())];
        kv.commit(Batch { put, ..Batch::default() }).unwrap();
        let now = kv.changed().unwrap();
        assert!(!seen.contains(&now), "it moved to where it was before");
        seen.push(now);
    }
    let mut seen = vec![kv.changed_in(9).unwrap()];
    assert_eq!(kv.changed_in(9).unwrap(), seen[0], "nothing was committed");
    let key = |todo| Key { space: Space::Message, todo, n: 0 };
    let commits = [
        (0, 1, vec![(key(9), vec![1])]),
        (1, 2, Vec::new()),
        // The head may stay as it is.
        (2, 2, vec![(key(9), vec![2])]),
        (2, 2, vec![(key(9), vec![2])]),
        // What is written may be another todo's.
        (2, 3, vec![(key(8), vec![3])]),
        (3, FORGOTTEN_HEAD, Vec::new()),
    ];
    for (head, next, put) in commits {
        let expect = Some(Expect { todo: 9, head, next });
        kv.commit(Batch { expect, put, ..Batch::default() }).unwrap();
        let now = kv.changed_in(9).unwrap();
        assert!(!seen.contains(&now), "a commit to the todo did not move it");
        seen.push(now);
    }
}

fn compacts(kv: &dyn Kv) {
    for n in 0..50 {
        let put = vec![(Key { space: Space::Message, todo: 1, n }, vec![n as u8; 5_000])];
        kv.commit(Batch {
            expect: Some(Expect { todo: 1, head: n, next: n + 1 }),
            put,
            delete: Vec::new(),
        })
        .unwrap();
    }
    let delete = vec![Delete { space: Space::Message, todo: 1, range: 10..40 }];
    kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    for _ in 0..2 {
        kv.compact().unwrap();
        let kept = kv.scan(Space::Message, 1, 0..100, 100).unwrap();
        let numbers: Vec<u64> = kept.iter().map(|(n, _)| *n).collect();
        assert_eq!(numbers, (0..10).chain(40..50).collect::<Vec<u64>>());
        assert!(kept.iter().all(|(n, value)| *value == vec![*n as u8; 5_000]));
        assert_eq!(kv.head(1).unwrap(), 50);
    }
    check(kv, "put message 1/50 after\ncommit\nget message 1/50", "ok\nafter");
}

fn sound(kv: &dyn Kv) {
    check(kv, "put message 1/0 a\nput vector 1/0 b\nexpect 1 0->1\ncommit", "ok");
    assert_eq!(kv.check().unwrap(), []);
}

/// Takes the head, writes the next record, and tries again if another came first.
fn append(kv: &dyn Kv, todo: u32, value: &[u8]) {
    loop {
        let head = kv.head(todo).unwrap();
        let put = vec![(Key { space: Space::Message, todo, n: head }, value.to_vec())];
        let expect = Some(Expect { todo, head, next: head + 1 });
        match kv.commit(Batch { expect, put, delete: Vec::new() }) {
            Ok(()) => return,
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn threads(kv: &dyn Kv) {
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            scope.spawn(move || (0..10_u8).for_each(|i| append(kv, 1, &[thread, i])));
        }
    });
    let all = kv.scan(Space::Message, 1, 0..1000, 1000).unwrap();
    assert_eq!(all.len(), 80);
    assert_eq!(kv.head(1).unwrap(), 80);
    for thread in 0..8_u8 {
        let own: Vec<u8> =
            all.iter().filter(|(_, value)| value[0] == thread).map(|(_, value)| value[1]).collect();
        assert_eq!(own, (0..10).collect::<Vec<u8>>(), "thread {thread}, in its order");
    }
}

fn snapshots(kv: &dyn Kv) {
    let put = |round: u64| {
        let both = |n| (Key { space: Space::Session, todo: 1, n }, round.to_le_bytes().to_vec());
        Batch { put: (0..20).map(both).collect(), ..Batch::default() }
    };
    kv.commit(put(0)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || (1..40).for_each(|round| kv.commit(put(round)).unwrap()));
        while !writer.is_finished() {
            let seen = kv.scan(Space::Session, 1, 0..100, 100).unwrap();
            assert_eq!(seen.len(), 20);
            assert!(seen.iter().all(|(_, value)| *value == seen[0].1), "a torn batch");
        }
    });
    let seen = kv.scan(Space::Session, 1, 0..100, 100).unwrap();
    assert!(seen.iter().all(|(_, value)| *value == 39_u64.to_le_bytes()));
}
