//! Heads: numbers that are compared and set, and what a forgotten todo has in place of one.

#![expect(clippy::unwrap_used, reason = "a suite says so by stopping")]

use super::script::check;
use foldback_kv::{Batch, Error, Expect, Key, Kv};

pub(super) fn heads(kv: &dyn Kv) {
    check(
        kv,
        "expect 7 0->18446744073709551615
         commit
         head 7
         head 8
         expect 7 18446744073709551615->18446744073709551615
         put message 7/0 a check only
         commit
         head 7
         expect 7 18446744073709551615->0
         commit
         head 7
         expect 7 1->2
         commit
         head 7",
        "ok
         18446744073709551615
         0
         ok
         18446744073709551615
         ok
         0
         todo 7 has moved on: its head is 0, and the batch expected 1
         0",
    );
    let conflict =
        kv.commit(Batch { expect: Some(Expect { todo: 7, head: 3, next: 4 }), ..Batch::default() });
    assert!(matches!(conflict, Err(Error::Conflict { todo: 7, expected: 3, found: 0 })));
}

pub(super) fn listed_heads(kv: &dyn Kv) {
    let set = |todo, head, next| {
        let expect = Some(Expect { todo, head, next });
        kv.commit(Batch { expect, ..Batch::default() }).unwrap();
    };
    for (todo, head) in [(3, 30), (1, 10), (Key::TODO_END - 1, 50), (7, 70), (4, 40)] {
        set(todo, 0, head);
    }
    set(4, 40, 0);
    // An engine may visit each number of a range, so no range is wide.
    assert_eq!(kv.heads(0..100).unwrap(), [(1, 10), (3, 30), (7, 70)]);
    let end = Key::TODO_END;
    assert_eq!(kv.heads(end - 100..end).unwrap(), [(end - 1, 50)]);
    assert_eq!(kv.heads(2..7).unwrap(), [(3, 30)]);
    assert_eq!(kv.heads(3..8).unwrap(), [(3, 30), (7, 70)]);
    assert_eq!(kv.heads(5..5).unwrap(), []);
    assert_eq!(kv.heads(0..1).unwrap(), []);
}

/// A todo without a head that is not registered, although its number was issued, was forgotten. The
/// registry's own records have the number 0.
pub(super) fn forgotten(kv: &dyn Kv) {
    check(
        kv,
        "expect 0 0->2
         put todo 0/1 a
         put todo 0/2 b
         commit
         head 1
         expect 1 0->7
         commit
         delete todo 0/1..3
         expect 1 7->0
         commit
         head 0
         head 1
         head 2
         head 3
         expect 1 0->1
         put message 1/0 back
         commit
         expect 2 0->0
         put message 2/0 back
         commit
         expect 3 0->1
         commit
         expect 1 4611686018427387904->0
         delete message 1/0..9
         commit
         scan message 1/0..9
         scan message 2/0..9",
        "ok
         0
         ok
         ok
         2
         4611686018427387904
         4611686018427387904
         0
         todo 1 has moved on: its head is 4611686018427387904, and the batch expected 0
         todo 2 has moved on: its head is 4611686018427387904, and the batch expected 0
         ok
         ok
         -
         -",
    );
    assert_eq!(kv.heads(0..9).unwrap(), [(0, 2), (3, 1)]);
}
