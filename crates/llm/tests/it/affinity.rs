//! Sessions stay where their prefixes are.

use foldback_llm::Affinity;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn idle(_: &str) -> usize {
    0
}

fn homes(workers: &Affinity, sessions: &[String]) -> Vec<String> {
    let home = |session: &String| workers.worker(Some(session), idle).unwrap().to_owned();
    sessions.iter().map(home).collect()
}

fn sessions(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("会话-{n}")).collect()
}

proptest! {
    /// MC4: when a worker leaves, only its own sessions move; when it comes back, they return. The
    /// order in which workers joined says nothing.
    #[test]
    fn mc4_the_loss_of_a_worker_moves_only_its_sessions(
        names in prop::collection::btree_set("[a-z]{1,4}|节点[0-9]", 2..8),
        lost in any::<prop::sample::Index>(),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let lost = names[lost.index(names.len())];
        let sessions = sessions(300);
        let mut workers = Affinity::new(names.iter().copied());
        let before = homes(&workers, &sessions);
        prop_assert_eq!(&homes(&Affinity::new(names.iter().rev().copied()), &sessions), &before);
        workers.leave(lost);
        for (before, after) in before.iter().zip(homes(&workers, &sessions)) {
            prop_assert!(after != lost);
            prop_assert!(*before == lost || *before == after);
        }
        workers.join(lost);
        prop_assert_eq!(homes(&workers, &sessions), before);
    }
}

/// MC4: a request without a session goes where the least is to do.
#[test]
fn mc4_without_a_session_the_least_loaded_serves() {
    let workers = Affinity::new(["a", "b", "c"]);
    let loads = BTreeMap::from([("a", 5), ("b", 2), ("c", 2)]);
    assert_eq!(workers.worker(None, |worker| loads[worker]), Some("b"));
    let none = Affinity::default();
    assert_eq!((none.worker(None, idle), none.worker(Some("s"), idle)), (None, None));
    let twice = Affinity::new(["a", "a"]);
    assert_eq!(twice.workers().collect::<Vec<_>>(), ["a"]);
}

/// MC4: of ten workers, the busiest has at most a third more sessions than the mean.
#[test]
fn mc4_sessions_are_spread() {
    let names: Vec<String> = (0..10).map(|n| format!("http://worker-{n}:8000")).collect();
    let workers = Affinity::new(names.iter().map(String::as_str));
    let mut counts = BTreeMap::<String, usize>::new();
    for home in homes(&workers, &sessions(20_000)) {
        *counts.entry(home).or_default() += 1;
    }
    assert_eq!(counts.len(), 10);
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(*most < 2_667 && *least > 1_333, "{counts:?}");
}
