//! Makes commits of several threads durable together.
//!
//! A thread that finds no other at work leads: it takes the items that others have submitted meanwhile along with its
//! own, does all of them at once, and gives each its answer. A thread that arrives while another leads waits. When the
//! leader is done, the first thread that still waits leads next. So a lone thread waits for nobody, and each of many
//! pays its share of one sync.
//!
//! Nothing here depends on what is done: a leader gets items, and returns one answer for each. `super::sync` has the
//! locks, so that a test can replace them and try out schedules.

use super::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::{Duration, Instant};

/// The most items that are done at once.
pub(crate) const MOST_ITEMS: usize = 128;
/// The most bytes that are done at once, unless a single item has more. SQLite's log is copied after about this many.
const MOST_BYTES: usize = 4 << 20;

/// The size of an item.
pub(crate) trait Weight {
    /// Returns the approximate size in bytes.
    fn bytes(&self) -> usize;
}

/// Threads that submit items `T`, each of which gets an answer `A`.
pub(crate) struct Group<T, A> {
    queue: Mutex<Queue<T, A>>,
}

struct Queue<T, A> {
    waiting: VecDeque<(T, Arc<Seat<T, A>>)>,
    /// If no thread leads, none waits.
    is_led: bool,
}

/// The place of a waiting thread.
struct Seat<T, A> {
    call: Mutex<Call<T, A>>,
    called: Condvar,
}

/// What a waiting thread must do.
enum Call<T, A> {
    Wait,
    Lead(T),
    Return(Result<A, Unanswered>),
}

/// Why an item has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Its patience ran out before it was begun.
    Late,
    /// Its leader took it and did not finish it. The outcome is unknown.
    Abandoned,
}

/// A leader's turn.
pub(crate) struct Turn<'a, T, A> {
    group: &'a Group<T, A>,
    own: Option<T>,
    others: Vec<Arc<Seat<T, A>>>,
}

impl<T: Weight, A> Group<T, A> {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue { waiting: VecDeque::new(), is_led: false }) }
    }

    /// Has an item done, by this thread or by another one that leads. If this thread leads, `lead` returns the item's
    /// answer; it may fail before it [takes](Turn::take) anything, which does not affect the others.
    pub(crate) fn submit(
        &self,
        item: T,
        patience: Option<Duration>,
        lead: impl FnOnce(&mut Turn<'_, T, A>) -> A,
    ) -> Result<A, Unanswered> {
        let own = match self.come(item) {
            Ok(own) => own,
            Err(seat) => match self.wait(&seat, patience) {
                Ok(own) => own,
                Err(answer) => return answer,
            },
        };
        let mut turn = Turn { group: self, own: Some(own), others: Vec::new() };
        let led = panic::catch_unwind(AssertUnwindSafe(|| lead(&mut turn)));
        turn.others.drain(..).for_each(|seat| seat.call(Call::Return(Err(Unanswered::Abandoned))));
        self.hand_on();
        led.map_err(|panic| panic::resume_unwind(panic))
    }

    /// Returns the item if this thread leads, and otherwise the place where it waits.
    fn come(&self, item: T) -> Result<T, Arc<Seat<T, A>>> {
        let mut queue = unpoisoned(self.queue.lock());
        if !queue.is_led {
            queue.is_led = true;
            return Ok(item);
        }
        let seat = Arc::new(Seat { call: Mutex::new(Call::Wait), called: Condvar::new() });
        queue.waiting.push_back((item, seat.clone()));
        Err(seat)
    }

    /// Returns the item if this thread leads now, and otherwise its answer.
    fn wait(
        &self,
        seat: &Arc<Seat<T, A>>,
        patience: Option<Duration>,
    ) -> Result<T, Result<A, Unanswered>> {
        // A deadline that is too far off counts as none.
        let mut end = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut call = unpoisoned(seat.call.lock());
        loop {
            match std::mem::replace(&mut *call, Call::Wait) {
                Call::Wait => {}
                Call::Lead(own) => return Ok(own),
                Call::Return(answer) => return Err(answer),
            }
            let Some(until) = end else {
                call = unpoisoned(seat.called.wait(call));
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            let (woken, waited) = unpoisoned(seat.called.wait_timeout(call, left));
            call = woken;
            if waited.timed_out() && matches!(*call, Call::Wait) {
                // The queue's lock is never taken under a seat's.
                drop(call);
                if self.leave(seat) {
                    return Err(Err(Unanswered::Late));
                }
                // Another thread has begun it, or calls for this thread.
                end = None;
                call = unpoisoned(seat.call.lock());
            }
        }
    }

    /// Withdraws a waiting item. Returns whether nobody had begun it, so that nobody will.
    fn leave(&self, seat: &Arc<Seat<T, A>>) -> bool {
        let mut queue = unpoisoned(self.queue.lock());
        let at = queue.waiting.iter().position(|(_, other)| Arc::ptr_eq(other, seat));
        at.and_then(|at| queue.waiting.remove(at)).is_some()
    }

    /// Lets the first waiting thread lead.
    fn hand_on(&self) {
        let next = {
            let mut queue = unpoisoned(self.queue.lock());
            let next = queue.waiting.pop_front();
            queue.is_led = next.is_some();
            next
        };
        if let Some((item, seat)) = next {
            seat.call(Call::Lead(item));
        }
    }
}

impl<T: Weight, A> Turn<'_, T, A> {
    /// Returns the leader's own item, followed by those of the waiting threads in the order of their arrival. Each of
    /// these needs an [answer](Self::answer).
    pub(crate) fn take(&mut self) -> Vec<T> {
        let mut taken: Vec<T> = self.own.take().into_iter().collect();
        let mut bytes = taken.iter().map(T::bytes).sum::<usize>();
        let mut queue = unpoisoned(self.group.queue.lock());
        while taken.len() < MOST_ITEMS {
            let Some((next, _)) = queue.waiting.front() else { break };
            bytes = bytes.saturating_add(next.bytes());
            if bytes > MOST_BYTES {
                break;
            }
            let Some((item, seat)) = queue.waiting.pop_front() else { break };
            taken.push(item);
            self.others.push(seat);
        }
        taken
    }

    /// Gives the others their answers, in the order in which the items were taken. `answers` begins with the leader's
    /// own, which is returned.
    pub(crate) fn answer(&mut self, answers: Vec<A>) -> Option<A> {
        let mut answers = answers.into_iter();
        let own = answers.next();
        for seat in self.others.drain(..) {
            seat.call(Call::Return(answers.next().ok_or(Unanswered::Abandoned)));
        }
        own
    }
}

impl<T, A> Seat<T, A> {
    fn call(&self, call: Call<T, A>) {
        *unpoisoned(self.call.lock()) = call;
        self.called.notify_one();
    }
}

/// Ignores poisoning: nothing is left half done under a lock.
fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
