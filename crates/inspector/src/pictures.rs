//! What a session's page draws, made by the caller and kept for a while.

use foldback::Memory;
use foldback::core::TodoId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Draws sessions: replays what is recorded, and returns what a page shows of that.
pub trait Drawing: Send + Sync {
    /// Returns the figures and the picture of a session. `by_gateway` is whether it passed through the gateway, which
    /// folds at other times than a session of its own.
    ///
    /// # Errors
    /// When it cannot be drawn, with the reason in a sentence.
    fn draw(&self, memory: &Memory, todo: &TodoId, by_gateway: bool) -> Result<Drawn, String>;

    /// Returns the scripts that draw it, which define `begin()` and read the constants `INDEX` and `pictureAt`.
    fn scripts(&self) -> String;

    /// Returns the style of what they draw.
    fn style(&self) -> String;
}

/// A drawn session, as JSON.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The page's index: its version, the policies that are compared, and the figures.
    pub index: String,
    /// The picture; `None` if there are only figures.
    pub picture: Option<String>,
}

/// How many drawn sessions are kept.
const KEPT: usize = 4;

/// How many may wait for their turn: each holds a thread that other answers need as well.
const WAITING: usize = 8;

/// Why a session is not drawn.
#[derive(Debug)]
pub(crate) enum Undrawn {
    /// Too many wait already.
    Busy,
    /// It cannot be drawn, for this reason.
    Failed(String),
}

/// Which session it is and how far it has come: the number of its todo, which no later one of the same name has, and how
/// many messages it has.
pub(crate) type State = (u32, u64);

/// The sessions that were drawn last. One is drawn at a time: that takes a core for seconds.
pub(crate) struct Pictures {
    drawing: Arc<dyn Drawing>,
    /// With the state that each was in.
    kept: Mutex<Vec<(TodoId, State, Arc<Drawn>)>>,
    turn: Mutex<()>,
    /// How many wait for their turn.
    waiting: AtomicUsize,
}

impl Pictures {
    pub(crate) fn new(drawing: Arc<dyn Drawing>) -> Self {
        Self {
            drawing,
            kept: Mutex::default(),
            turn: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The session in the state that `now` returns.
    ///
    /// # Errors
    /// When it cannot be drawn, or its state cannot be read.
    pub(crate) fn of(
        &self,
        memory: &Memory,
        todo: &TodoId,
        now: impl Fn() -> Result<State, String>,
        by_gateway: bool,
    ) -> Result<Arc<Drawn>, Undrawn> {
        let now = || now().map_err(Undrawn::Failed);
        if let Some(drawn) = self.kept(todo, now()?) {
            return Ok(drawn);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Undrawn::Busy);
        }
        let turn = self.turn.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        // It may have grown since, and another may have drawn it.
        let state = now()?;
        if let Some(drawn) = self.kept(todo, state) {
            return Ok(drawn);
        }
        let drawn = self.drawing.draw(memory, todo, by_gateway).map_err(Undrawn::Failed)?;
        drop(turn);
        let drawn = Arc::new(drawn);
        let mut kept = self.kept.lock();
        kept.retain(|(known, ..)| known != todo);
        kept.insert(0, (todo.clone(), state, Arc::clone(&drawn)));
        kept.truncate(KEPT);
        Ok(drawn)
    }

    fn kept(&self, todo: &TodoId, state: State) -> Option<Arc<Drawn>> {
        let kept = self.kept.lock();
        let found = kept.iter().find(|(known, drawn, _)| known == todo && *drawn == state);
        found.map(|(_, _, drawn)| Arc::clone(drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::Options;
    use std::sync::atomic::AtomicU64;

    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Drawing for Counting {
        fn draw(&self, _: &Memory, todo: &TodoId, _: bool) -> Result<Drawn, String> {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Drawn { index: format!("\"{todo} {n}\""), picture: None })
        }
        fn scripts(&self) -> String {
            String::new()
        }
        fn style(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_session_is_drawn_again_only_when_it_has_grown() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let pictures = Pictures::new(Arc::new(Counting::default()));
        let of = |id: &str, state| {
            let id = TodoId::new(id).unwrap();
            pictures.of(&memory, &id, || Ok(state), false).unwrap().index.clone()
        };
        let draw = |id: &str, len| of(id, (1, len));
        assert_eq!([draw("a", 1), draw("a", 1), draw("a", 2)], ["\"a 0\"", "\"a 0\"", "\"a 1\""]);
        for id in ["b", "c", "d", "e"] {
            draw(id, 1);
        }
        assert_eq!([draw("e", 1), draw("a", 2)], ["\"e 5\"", "\"a 6\""]);
        // Another session may have the name and the length of one that was forgotten.
        assert_eq!([of("a", (9, 2)), of("a", (9, 2))], ["\"a 7\"", "\"a 7\""]);
    }
}
