//! Schedules of threads whose commits wait for each other: the queue alone, with locks whose order a scheduler chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shuttle::rand::{Rng as _, thread_rng};

use self::queue::{Group, Turn, Unanswered, Weight};

/// What the queue uses in the place of the standard locks.
mod sync {
    pub(crate) use shuttle::sync::Mutex;
    use shuttle::sync::MutexGuard;
    use std::sync::LockResult;
    use std::time::Duration;

    /// A condition variable whose timed waits end at once, or never.
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    pub(crate) struct Waited(bool);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn wait<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
        ) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub(crate) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, Waited)> {
            if super::one_in(6) {
                return Ok((guard, Waited(true)));
            }
            Ok((self.0.wait(guard).unwrap(), Waited(false)))
        }
    }

    impl Waited {
        pub(crate) fn timed_out(&self) -> bool {
            self.0
        }
    }
}

#[path = "../../src/group.rs"]
mod queue;

const THREADS: u32 = 4;
const EACH: u32 = 2;

struct Item(u32);

impl Weight for Item {
    fn bytes(&self) -> usize {
        // Three of them are more than what is done at once.
        if self.0.is_multiple_of(3) { 3 << 20 } else { 1 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The item is in the log.
    Done(u32),
    /// The item was looked at, and is not in the log.
    Refused(u32),
    /// The leader could not begin.
    NotBegun(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Answered(Answer),
    Missed(Unanswered),
    Panicked,
}

struct World {
    group: Group<Item, Answer>,
    is_led: AtomicBool,
    log: shuttle::sync::Mutex<Vec<u32>>,
}

fn one_in(many: u32) -> bool {
    thread_rng().gen_range(0..many) == 0
}

impl World {
    fn submit(&self, n: u32) -> Outcome {
        let patience = (n % 2 == 1).then_some(Duration::from_secs(60));
        let submitted = catch_unwind(AssertUnwindSafe(|| {
            self.group.submit(Item(n), patience, |turn| {
                assert!(!self.is_led.swap(true, Ordering::SeqCst), "two lead at once");
                let led = catch_unwind(AssertUnwindSafe(|| self.lead(n, turn)));
                self.is_led.store(false, Ordering::SeqCst);
                led.unwrap_or_else(|panic| resume_unwind(panic))
            })
        }));
        match submitted {
            Ok(answer) => answer.map_or_else(Outcome::Missed, Outcome::Answered),
            Err(panic) if panic.is::<Stopped>() => Outcome::Panicked,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Writes items that are not multiples of 4. Some leaders fail before they begin, and some stop before or after
    /// they wrote.
    fn lead(&self, own: u32, turn: &mut Turn<'_, Item, Answer>) -> Answer {
        if one_in(8) {
            return Answer::NotBegun(own);
        }
        let taken = turn.take();
        assert_eq!(taken[0].0, own, "a leader does its own");
        assert!(taken.iter().map(Weight::bytes).sum::<usize>() <= 4 << 20 || taken.len() == 1);
        let stops = one_in(8);
        if stops && one_in(2) {
            resume_unwind(Box::new(Stopped));
        }
        let write = |Item(n): &Item| {
            if n.is_multiple_of(4) {
                return Answer::Refused(*n);
            }
            self.log.lock().unwrap().push(*n);
            Answer::Done(*n)
        };
        let answers = taken.iter().map(write).collect();
        if stops {
            resume_unwind(Box::new(Stopped));
        }
        turn.answer(answers).unwrap()
    }
}

/// The panic of a leader that stops, which prints nothing.
struct Stopped;

/// R6: in each of 10,000 schedules each item gets one answer, which is its own; an item that was answered as done is
/// done, once; any other is not, unless its leader stopped; and no thread waits forever, which the scheduler would
/// notice.
#[test]
fn r6_threads_that_commit_at_once_each_have_their_answer() {
    static REACHED: std::sync::Mutex<BTreeSet<&str>> = std::sync::Mutex::new(BTreeSet::new());
    let schedule = || {
        let world = Arc::new(World {
            group: Group::new(),
            is_led: AtomicBool::new(false),
            log: shuttle::sync::Mutex::new(Vec::new()),
        });
        let threads = (0..THREADS).map(|thread| {
            let world = world.clone();
            let items = thread * EACH..(thread + 1) * EACH;
            shuttle::thread::spawn(move || items.map(|n| (n, world.submit(n))).collect::<Vec<_>>())
        });
        let threads = threads.collect::<Vec<_>>();
        let outcomes: BTreeMap<u32, Outcome> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let log = world.log.lock().unwrap().clone();
        let done = log.iter().copied().collect::<BTreeSet<u32>>();
        assert_eq!(done.len(), log.len(), "nothing is done twice: {log:?}");
        for (n, outcome) in &outcomes {
            let (what, may_be_done, must_be_done) = match *outcome {
                Outcome::Answered(Answer::Done(of)) if of == *n => ("done", true, true),
                Outcome::Answered(Answer::Refused(of)) if of == *n => ("refused", false, false),
                Outcome::Answered(Answer::NotBegun(of)) if of == *n => ("not begun", false, false),
                Outcome::Answered(other) => panic!("{n} was answered {other:?}"),
                Outcome::Missed(Unanswered::Late) => ("late", false, false),
                Outcome::Missed(Unanswered::Abandoned) => ("abandoned", true, false),
                Outcome::Panicked => ("panicked", true, false),
            };
            let is_done = done.contains(n);
            assert!(if is_done { may_be_done } else { !must_be_done }, "{n}: {outcome:?}, {log:?}");
            REACHED.lock().unwrap().insert(what);
        }
        if log.len() > 1 && outcomes.values().all(|outcome| *outcome != Outcome::Panicked) {
            REACHED.lock().unwrap().insert("several");
        }
        // Nobody is left, and the next one leads.
        assert!(!matches!(world.submit(THREADS * EACH), Outcome::Missed(_)));
    };
    shuttle::check_random(schedule, 10_000);
    let all = ["abandoned", "done", "late", "not begun", "panicked", "refused", "several"];
    assert_eq!(*REACHED.lock().unwrap(), BTreeSet::from(all));
}
