//! The figures in `docs/scaling.md`:
//! `cargo test -p foldback-kv --features postgres --release --test it postgres::figures -- --ignored --nocapture`.

use super::{batch, values, writing};
use foldback_kv::{Key, Kv, Space};
use foldback_testkit::postgres::Server;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the median time of what is done, in microseconds.
fn median(count: u64, mut what: impl FnMut(u64)) -> u128 {
    let mut times: Vec<Duration> = (0..count)
        .map(|n| {
            let begin = Instant::now();
            what(n);
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2].as_micros()
}

#[test]
#[ignore = "measures for half a minute on a quiet machine"]
fn figures_of_a_server_on_loopback() {
    let Some(server) = Server::start("figures_of_a_server_on_loopback") else { return };
    let server = server.syncing();
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let own = server.own_commit(5);
    println!("the server's own commit of one insertion: {} us", own.as_micros());
    let kv = writing(dir.path(), &address);
    let kv: &dyn Kv = kv.as_ref();
    kv.commit(batch(1, 0, &[7; 420])).unwrap();
    let append = median(2_000, |n| kv.commit(batch(1, n + 1, &[7; 420])).unwrap());
    println!("an append of 420 bytes: {append} us");
    println!("the server's own commit again: {} us", server.own_commit(5).as_micros());
    println!("the counter: {} us", median(2_000, |_| assert!(kv.changed().unwrap() > 0)));
    println!("a head: {} us", median(2_000, |_| assert!(kv.head(1).unwrap() > 0)));
    let key = |n| Key { space: Space::Message, todo: 1, n };
    println!("a record: {} us", median(2_000, |n| drop(kv.get(key(n)).unwrap())));
    let scan = median(50, |_| drop(kv.scan(Space::Message, 1, 0..1_000, 1_000).unwrap()));
    println!("1,000 records: {scan} us");
    for threads in [1_u32, 4, 8, 16] {
        let begin = Instant::now();
        thread::scope(|scope| {
            for at in 0..threads {
                scope.spawn(move || {
                    let todo = 100 * threads + at;
                    (0..400).for_each(|n| kv.commit(batch(todo, n, &[7; 420])).unwrap());
                });
            }
        });
        let a_second = f64::from(threads * 400) / begin.elapsed().as_secs_f64();
        println!("{threads} threads, each with a todo of its own: {a_second:.0} commits a second");
    }
    assert_eq!(values(kv, 1).len(), 2_001);
}
