//! Which worker serves a session, so that its prefix is in that worker's cache.

use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// How often a worker stands on the ring. With 256 places, the busiest of ten workers has about a
/// sixth more sessions than the mean.
const PLACES: u32 = 256;

/// Workers on a ring of hashes: a session belongs to the first worker behind its own hash.
///
/// The same session goes to the same worker, in every process. When a worker leaves, only its own
/// sessions move, and spread over the others; when one joins, it takes sessions from all, and no
/// other moves.
///
/// ```
/// use foldback_llm::Affinity;
///
/// let mut workers = Affinity::new(["gpu-1", "gpu-2", "gpu-3"]);
/// let idle = |_: &str| 0;
/// let home = workers.worker(Some("会话-7"), idle).map(str::to_owned);
/// workers.leave("another");
/// assert_eq!(workers.worker(Some("会话-7"), idle).map(str::to_owned), home);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Affinity {
    workers: BTreeSet<String>,
    ring: BTreeSet<(u64, String)>,
}

impl Affinity {
    /// A ring of these workers.
    #[must_use]
    pub fn new<'n>(workers: impl IntoIterator<Item = &'n str>) -> Self {
        let mut affinity = Self::default();
        for worker in workers {
            affinity.join(worker);
        }
        affinity
    }

    /// The workers, by name.
    pub fn workers(&self) -> impl Iterator<Item = &str> {
        self.workers.iter().map(String::as_str)
    }

    /// Adds a worker.
    pub fn join(&mut self, worker: &str) {
        if self.workers.insert(worker.to_owned()) {
            self.ring.extend(places(worker).map(|place| (place, worker.to_owned())));
        }
    }

    /// Takes a worker away.
    pub fn leave(&mut self, worker: &str) {
        if self.workers.remove(worker) {
            self.ring.retain(|(_, holder)| holder != worker);
        }
    }

    /// The worker for a request: that of its session, or, without one, the least loaded, of several
    /// the first by name. `None` without workers.
    #[must_use]
    pub fn worker(&self, session: Option<&str>, load: impl Fn(&str) -> usize) -> Option<&str> {
        let Some(session) = session else {
            return self.workers().min_by_key(|worker| load(worker));
        };
        let at = xxh3_64(session.as_bytes());
        let next = self.ring.range((at, String::new())..).next().or_else(|| self.ring.first());
        next.map(|(_, worker)| worker.as_str())
    }
}

/// Where a worker stands on the ring.
fn places(worker: &str) -> impl Iterator<Item = u64> {
    (0..PLACES).map(move |n| xxh3_64(format!("{worker}#{n}").as_bytes()))
}
