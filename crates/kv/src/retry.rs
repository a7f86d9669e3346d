//! Optimistic writes, repeated until one succeeds.

use crate::Error;

/// An error that may say that another writer came first.
pub trait Contended {
    /// Returns whether another writer came first, so that what was read is out of date and nothing was written.
    fn is_conflict(&self) -> bool;
}

impl Contended for Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// After this many conflicts in a row, other writers are not the cause: each conflict is progress for one
/// of them, and eight processes that write one todo without a pause lose only a handful of times.
const MOST_ATTEMPTS: usize = 1_000;

/// Repeats `attempt` until no other writer comes first. An attempt reads the state of the todo, builds
/// its [`Batch`](crate::Batch) on that, and commits; a conflict leaves nothing behind, and the next
/// attempt reads again.
///
/// # Errors
/// Any error of an attempt except a conflict, and the conflict itself when a thousand attempts have met one.
pub fn retry<T, E: Contended>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..MOST_ATTEMPTS {
        match attempt() {
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Expect};

    const LATE: Error = Error::Conflict { todo: 7, expected: 0, found: 1 };

    #[test]
    fn a_write_is_repeated_until_it_comes_first() {
        let kv = crate::memory();
        let move_on = |head| {
            let expect = Some(Expect { todo: 7, head, next: head + 1 });
            kv.commit(Batch { expect, ..Batch::default() })
        };
        let mut heads = Vec::new();
        retry(|| {
            let head = kv.head(7)?;
            heads.push(head);
            // Another writer comes first twice.
            if heads.len() < 3 {
                move_on(head)?;
            }
            move_on(head)
        })
        .unwrap();
        assert_eq!((heads, kv.head(7).unwrap()), (vec![0, 1, 2], 3));
    }

    #[test]
    fn other_errors_are_not_repeated_and_conflicts_not_for_ever() {
        let mut attempts = 0;
        let full = retry(|| {
            attempts += 1;
            Err::<(), _>(if attempts < 3 { LATE } else { Error::Full { path: "store".into() } })
        });
        assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
        assert_eq!(attempts, 3);
        let mut attempts = 0;
        let late = retry(|| {
            attempts += 1;
            Err::<(), _>(LATE)
        });
        assert!(matches!(late, Err(Error::Conflict { .. })), "{late:?}");
        assert_eq!(attempts, MOST_ATTEMPTS);
    }
}
