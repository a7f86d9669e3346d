//! What a store knows and no text in it can know, so that what is recalled cannot forge its marks.

use crate::Error;
use foldback_kv::{Batch, Error as KvError, Expect, Key, Kv, Mode, Space};

/// From this the marks of each todo are made.
pub(crate) type Secret = [u8; 32];

/// Records of the whole store have the number of no todo.
const SECRET: Key = Key { space: Space::Meta, todo: 0, n: 4 };

/// No todo has this number; its head counts the secrets that were made, so that of two processes that
/// open a store at once one makes it.
const MAKER: u32 = Key::TODO_END - 1;

/// The store's secret. A store without one, or with a damaged one, gets one when it is opened for
/// writing; read only, it has a random one as long as the process lives. Nothing that is recorded
/// depends on it.
pub(crate) fn secret_of(kv: &dyn Kv, mode: Mode) -> Result<Secret, Error> {
    loop {
        let head = match kv.head(MAKER) {
            Err(KvError::CorruptHead { .. }) => None,
            head => Some(head?),
        };
        let stored = match kv.get(SECRET) {
            Err(KvError::Corrupt { .. }) => None,
            stored => stored?.and_then(|bytes| Secret::try_from(bytes).ok()),
        };
        if let Some(secret) = stored {
            return Ok(secret);
        }
        let mut secret = Secret::default();
        getrandom::fill(&mut secret).map_err(Error::Random)?;
        let Some(head) = head.filter(|_| mode == Mode::ReadWrite) else { return Ok(secret) };
        let expect = Some(Expect { todo: MAKER, head, next: head + 1 });
        let put = vec![(SECRET, secret.to_vec())];
        match kv.commit(Batch { expect, put, ..Batch::default() }) {
            Ok(()) => return Ok(secret),
            // Another process has made one meanwhile.
            Err(KvError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5: a store has one secret for all who open it, and no two stores have the same.
    #[test]
    fn s5_a_store_keeps_its_secret() {
        let (kv, other) = (foldback_kv::memory(), foldback_kv::memory());
        let of = |mode| secret_of(kv.as_ref(), mode).unwrap();
        let passing = of(Mode::ReadOnly);
        assert_ne!(of(Mode::ReadOnly), passing, "a store that is only read gets none");
        let own = of(Mode::ReadWrite);
        assert_eq!((of(Mode::ReadWrite), of(Mode::ReadOnly)), (own, own));
        assert_ne!(secret_of(other.as_ref(), Mode::ReadWrite).unwrap(), own);
        let cut = vec![(SECRET, vec![1; 9])];
        kv.commit(Batch { put: cut, ..Batch::default() }).unwrap();
        let new = of(Mode::ReadWrite);
        assert_ne!(new, own);
        assert_eq!(of(Mode::ReadWrite), new, "a damaged one is made anew, once");
    }

    /// S5: of processes that open a new store at once, all have the same secret.
    #[test]
    fn s5_whoever_comes_second_takes_the_first_ones_secret() {
        let kv = foldback_kv::memory();
        let secrets: Vec<Secret> = std::thread::scope(|scope| {
            let open = || secret_of(kv.as_ref(), Mode::ReadWrite).unwrap();
            let opening: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            opening.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
    }
}
