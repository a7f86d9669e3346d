//! The engine on a server. Each test starts one of its own.

mod conformance;
mod figures;
mod full_disk;
mod notices;
mod opening;
mod outages;
mod proxy;
mod rights;
mod standby;
mod tenants;
mod tls;
mod writers;

use foldback_kv::{Batch, Error, Expect, Key, Kv, Mode, Server as Address, Space, open};
use foldback_testkit::postgres::Server;
use std::path::Path;
use std::sync::Arc;

fn writing(dir: &Path, address: &str) -> Arc<dyn Kv> {
    open(dir, Address::new(address), Mode::ReadWrite).unwrap()
}

/// Puts a database in the place of `test_0`, as a server does that was restored, or that an address leads to by mistake.
fn replace(server: &Server, other: &str) {
    for sql in [
        "ALTER DATABASE test_0 ALLOW_CONNECTIONS false",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'test_0'",
        "ALTER DATABASE test_0 RENAME TO replaced",
        &format!("ALTER DATABASE {other} RENAME TO test_0"),
    ] {
        server.sql("postgres", sql);
    }
}

/// Returns a batch that appends to a todo at its head.
fn batch(todo: u32, head: u64, value: &[u8]) -> Batch {
    let put = vec![(Key { space: Space::Message, todo, n: head }, value.to_vec())];
    Batch { expect: Some(Expect { todo, head, next: head + 1 }), put, delete: Vec::new() }
}

/// Appends to a todo, after whatever others append. Returns the number of the record.
fn append(kv: &dyn Kv, todo: u32, value: &[u8]) -> Result<u64, Error> {
    foldback_kv::retry(|| {
        let head = kv.head(todo)?;
        kv.commit(batch(todo, head, value)).map(|()| head)
    })
}

/// Returns the values of a todo, which has as many as its head says, without a gap.
fn values(kv: &dyn Kv, todo: u32) -> Vec<Vec<u8>> {
    let found = kv.scan(Space::Message, todo, 0..Key::N_END, usize::MAX).unwrap();
    assert!(found.iter().zip(0..).all(|((n, _), expected)| *n == expected), "a gap");
    assert_eq!(found.len() as u64, kv.head(todo).unwrap(), "the head and the records differ");
    found.into_iter().map(|(_, value)| value).collect()
}
