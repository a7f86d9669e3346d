//! Commits of several threads at once, made durable together.
//!
//! A thread that finds nobody at work leads: it takes what others have brought meanwhile along with its own, does all of it
//! at once, and gives each its answer. A thread that comes while another leads waits. When the leader is done, the first that
//! still waits leads next. So a lone thread waits for nobody, and each of many pays its share of one sync.
//!
//! Nothing here knows what is done: a leader gets items, and gives back one answer for each. `super::sync` has the locks, so
//! that a test can put others in their place and try out schedules.

use super::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::{Duration, Instant};

/// The most items that are done at once.
pub(crate) const MOST_ITEMS: usize = 128;
/// The most bytes that are done at once, unless one item has more. SQLite's log is copied after about as many.
const MOST_BYTES: usize = 4 << 20;

/// How large an item is.
pub(crate) trait Weight {
    /// About how many bytes.
    fn bytes(&self) -> usize;
}

/// Threads that have items `T` to be done, each of which has an answer `A`.
pub(crate) struct Group<T, A> {
    queue: Mutex<Queue<T, A>>,
}

struct Queue<T, A> {
    waiting: VecDeque<(T, Arc<Seat<T, A>>)>,
    /// Nobody waits where nobody leads.
    is_led: bool,
}

/// Where a thread waits.
struct Seat<T, A> {
    call: Mutex<Call<T, A>>,
    called: Condvar,
}

/// What a waiting thread is to do.
enum Call<T, A> {
    Wait,
    Lead(T),
    Return(Result<A, Unanswered>),
}

/// Why an item has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It waited for as long as it was to wait, and was not begun.
    Late,
    /// Its leader took it and did not come to an end with it. What became of it is not known.
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

    /// Has an item done, by this thread or by another that leads. Where this one leads, `lead` gives the item's answer; it may
    /// fail before it [takes](Turn::take) anything, which concerns nobody else.
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

    /// The item back, where this thread leads, and otherwise where it waits.
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

    /// The item back, where this thread leads now, and otherwise its answer.
    fn wait(
        &self,
        seat: &Arc<Seat<T, A>>,
        patience: Option<Duration>,
    ) -> Result<T, Result<A, Unanswered>> {
        // Time without an end for what is too far off.
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
                // Somebody has begun with it, or calls for this thread.
                end = None;
                call = unpoisoned(seat.call.lock());
            }
        }
    }

    /// Whether nobody had begun with what waits there, and nobody will.
    fn leave(&self, seat: &Arc<Seat<T, A>>) -> bool {
        let mut queue = unpoisoned(self.queue.lock());
        let at = queue.waiting.iter().position(|(_, other)| Arc::ptr_eq(other, seat));
        at.and_then(|at| queue.waiting.remove(at)).is_some()
    }

    /// Lets the first that waits lead.
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
    /// The leader's own item, and behind it what others wait for, in the order in which they came. Each of these needs an
    /// [answer](Self::answer).
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

    /// Gives the others what was taken for them, in its order: `answers` has the leader's own first, which comes back.
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

/// Nothing is left half done under a lock.
fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
