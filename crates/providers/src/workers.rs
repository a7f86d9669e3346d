//! Several servers of one model, and the assignment of sessions to them, so that a session's prefix is
//! in its server's cache.

use crate::door::Door;
use foldback_llm::{ModelError, ModelErrorKind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// How many places a worker has on the ring. With 256 places, the busiest of ten workers has about
/// a sixth more sessions than the mean.
const PLACES: u32 = 256;

/// How long a failed worker is skipped, if there are others.
const ABSENCE: Duration = Duration::from_secs(30);

/// The servers.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    ring: Ring,
}

struct Worker {
    door: Door,
    /// How many requests it is working on.
    load: Arc<AtomicUsize>,
    absent_until: Mutex<Option<Instant>>,
}

/// A worker that is working on a request, until this is dropped.
pub(crate) struct Busy {
    at: usize,
    load: Arc<AtomicUsize>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Creates workers from addresses and their connections.
    pub(crate) fn new(doors: Vec<(String, Door)>) -> Self {
        let ring = Ring::new(doors.iter().map(|(address, _)| address.as_str()));
        let worker =
            |(_, door)| Worker { door, load: Arc::default(), absent_until: Mutex::default() };
        Self { workers: doors.into_iter().map(worker).collect(), ring }
    }

    /// Chooses the worker for a request of a session, or of none. If all are absent, it is asked anyway.
    pub(crate) fn choose(&self, session: Option<&str>) -> Option<(&Door, Busy)> {
        let load = |at: usize| self.workers.get(at).map_or(0, |worker| worker.load());
        let is_there = |at: usize| self.workers.get(at).is_some_and(Worker::is_there);
        let at = self.ring.worker(session, is_there, load);
        let at = at.or_else(|| self.ring.worker(session, |_| true, load))?;
        let worker = self.workers.get(at)?;
        worker.load.fetch_add(1, Ordering::Relaxed);
        Some((&worker.door, Busy { at, load: Arc::clone(&worker.load) }))
    }

    /// Records how a worker failed: one that cannot be reached, or is failing, is skipped for a while.
    pub(crate) fn failed(&self, busy: &Busy, error: &ModelError) {
        if let (Some(worker), ModelErrorKind::Unavailable) = (self.workers.get(busy.at), error.kind)
        {
            *worker.absent_until.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Instant::now() + ABSENCE);
        }
    }
}

impl Worker {
    fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    fn is_there(&self) -> bool {
        let until = *self.absent_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| until <= Instant::now())
    }
}

/// Workers on a ring of hashes: a session belongs to the first worker after its own hash.
///
/// The same session goes to the same worker, in every process. When a worker is absent, only its own
/// sessions move, and spread over the others; when it is back, they return.
struct Ring {
    count: usize,
    places: Vec<(u64, usize)>,
}

impl Ring {
    fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut ring = Self { count: 0, places: Vec::new() };
        for (at, name) in names.enumerate() {
            ring.count = at + 1;
            ring.places
                .extend((0..PLACES).map(|n| (xxh3_64(format!("{name}#{n}").as_bytes()), at)));
        }
        ring.places.sort_unstable();
        ring
    }

    /// Returns the worker for a request, of those that are available: that of its session, or,
    /// without one, the least loaded; of several, the first.
    fn worker(
        &self,
        session: Option<&str>,
        is_there: impl Fn(usize) -> bool,
        load: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let Some(session) = session else {
            return (0..self.count).filter(|at| is_there(*at)).min_by_key(|at| load(*at));
        };
        let hash = xxh3_64(session.as_bytes());
        let from = self.places.partition_point(|(place, _)| *place < hash);
        let (before, behind) = self.places.split_at(from);
        behind.iter().chain(before).map(|(_, at)| *at).find(|at| is_there(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn idle(_: usize) -> usize {
        0
    }

    /// Returns the workers that sessions belong to, if one of them is absent.
    fn homes(names: &[&str], sessions: &[String], absent: Option<&str>) -> Vec<String> {
        let ring = Ring::new(names.iter().copied());
        let home = |session: &String| {
            let at = ring.worker(Some(session), |at| Some(names[at]) != absent, idle).unwrap();
            names[at].to_owned()
        };
        sessions.iter().map(home).collect()
    }

    fn sessions(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("会话-{n}")).collect()
    }

    proptest! {
        /// MC4: when a worker leaves, only its own sessions move; when it comes back, they return. The
        /// order in which workers are named does not matter.
        #[test]
        fn mc4_the_loss_of_a_worker_moves_only_its_sessions(
            names in prop::collection::btree_set("[a-z]{1,4}|节点[0-9]", 2..8),
            lost in any::<prop::sample::Index>(),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let backwards: Vec<&str> = names.iter().rev().copied().collect();
            let lost = names[lost.index(names.len())];
            let sessions = sessions(300);
            let before = homes(&names, &sessions, None);
            prop_assert_eq!(&homes(&backwards, &sessions, None), &before);
            for (before, after) in before.iter().zip(homes(&names, &sessions, Some(lost))) {
                prop_assert!(after != lost);
                prop_assert!(*before == lost || *before == after);
            }
        }
    }

    /// MC4: a request without a session goes to the least loaded worker.
    #[test]
    fn mc4_without_a_session_the_least_loaded_serves() {
        let ring = Ring::new(["a", "b", "c"].into_iter());
        assert_eq!(ring.worker(None, |_| true, |at| [5, 2, 2][at]), Some(1));
        assert_eq!(ring.worker(None, |at| at != 1, |at| [5, 2, 2][at]), Some(2));
        let none = Ring::new([].into_iter());
        assert_eq!(
            (none.worker(None, |_| true, idle), none.worker(Some("s"), |_| true, idle)),
            (None, None)
        );
    }

    /// MC4: of ten workers, the busiest has at most a third more sessions than the mean.
    #[test]
    fn mc4_sessions_are_spread() {
        let names: Vec<String> = (0..10).map(|n| format!("http://worker-{n}:8000")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut counts = BTreeMap::<String, usize>::new();
        for home in homes(&names, &sessions(20_000), None) {
            *counts.entry(home).or_default() += 1;
        }
        assert_eq!(counts.len(), 10);
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert!(*most < 2_667 && *least > 1_333, "{counts:?}");
    }
}
