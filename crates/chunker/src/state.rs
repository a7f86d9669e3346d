//! The state of a chunker between two messages.

use crate::phase::Task;
use crate::sketch::Sketch;
use crate::terms::hash;
use crate::window::{Speaker, Window};
use foldback_core::ToolCallId;
use serde::{Deserialize, Serialize};

/// The state of a chunker between two messages: a value to be stored with each of them. A chunker that is restored from
/// it resumes exactly as the one from which it was taken.
///
/// As MessagePack it takes 1 to 4 KB for conversations of people and for most tool use, and never
/// more than [`State::MAX_BYTES`], however long the messages or the conversation are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// How many messages were pushed.
    pub(crate) next: u64,
    /// The open tail.
    pub(crate) tail: Vec<Unit>,
    /// The first message before which a change of topic is not yet decided.
    pub(crate) undecided: u64,
    /// The first message after the latest hard cut.
    pub(crate) hard_cut: Option<u64>,
    pub(crate) open: OpenCalls,
    /// Whether the work goes to another todo or branch as soon as no call is open.
    pub(crate) switching: bool,
    /// The time of the newest message that carried one, in milliseconds.
    pub(crate) latest: Option<i64>,
    /// Hashes of the names of the speakers, up to three.
    pub(crate) speakers: Vec<u32>,
    pub(crate) task: Task,
    pub(crate) window: Window,
    /// A hash of the id of the model whose vectors went into the sketches; 0 for none that is known.
    #[serde(default)]
    model: u32,
}

impl State {
    /// The most bytes that a state takes as MessagePack.
    pub const MAX_BYTES: usize = 10 * 1024;

    /// Returns the state for continuing with vectors of the model with this id. It drops the vectors of another model,
    /// or of an unknown one: they cannot be compared.
    #[must_use]
    pub fn of_model(mut self, model_id: &str) -> Self {
        // 0 means none.
        let model = hash(model_id).max(1);
        if self.model != model {
            self.tail.iter_mut().for_each(|unit| unit.sketch = None);
            self.model = model;
        }
        self
    }
}

/// Messages that belong together in any case: one message that is not a tool's, the tool messages that follow it, and
/// the instructions that come while its calls wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    /// How many messages it holds.
    pub(crate) len: u32,
    /// Its relation to the unit before.
    pub(crate) joint: Joint,
    /// Its topic, as a sketch, and how many vectors went into it.
    pub(crate) sketch: Option<(Sketch, u32)>,
}

/// The relation of a unit to the message before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Joint {
    /// The other speaker again: what was asked before is answered.
    Answered,
    /// The next call: the unit before is closed.
    NextCall,
    /// The same speaker continues.
    GoesOn,
    /// It answers what was asked directly before.
    Answers,
    /// A reply in words to the results directly before.
    Reply,
    /// It follows an instruction, or nothing.
    Begins,
}

impl Joint {
    pub(crate) fn between(before: Option<Speaker>, speaker: Speaker) -> Self {
        use Speaker::{Assistant, Caller, Instruction, Tool, User};
        match (before, speaker) {
            (None | Some(Instruction), _) => Self::Begins,
            (Some(User), Assistant | Caller) => Self::Answers,
            (Some(Tool | Caller), Assistant) => Self::Reply,
            (Some(Tool | Caller), Caller) => Self::NextCall,
            (Some(Assistant | Tool | Caller), User) => Self::Answered,
            (Some(_), _) => Self::GoesOn,
        }
    }

    /// Returns how complete the messages before it are: 2 for a tool loop or an exchange that is finished, 1 if one
    /// speaker continues, 0 if something is left open.
    pub(crate) fn completes(self) -> u8 {
        match self {
            Self::Answered | Self::NextCall => 2,
            Self::GoesOn => 1,
            Self::Answers | Self::Reply | Self::Begins => 0,
        }
    }
}

/// The calls that wait for their results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCalls {
    ids: Vec<u32>,
    /// Calls beyond those whose ids are kept; any result may answer them.
    more: u32,
}

/// How many ids of open calls are kept. It bounds the state.
const OPEN_KEPT: usize = 256;

impl OpenCalls {
    pub(crate) fn set<'a>(&mut self, calls: impl IntoIterator<Item = &'a ToolCallId>) {
        self.ids.clear();
        self.more = 0;
        for id in calls {
            if self.ids.len() < OPEN_KEPT {
                self.ids.push(hash(id.as_str()));
            } else {
                self.more = self.more.saturating_add(1);
            }
        }
    }

    pub(crate) fn answer(&mut self, id: Option<&ToolCallId>) {
        let Some(id) = id.map(|id| hash(id.as_str())) else { return };
        match self.ids.iter().position(|open| *open == id) {
            Some(at) => drop(self.ids.remove(at)),
            None => self.more = self.more.saturating_sub(1),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.more == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_sketch(model: &str) -> State {
        let mut state = State { next: 1, ..State::default() }.of_model(model);
        let sketch = Sketch::of(&[0.6, 0.8]).map(|sketch| (sketch, 1));
        state.tail.push(Unit { len: 1, joint: Joint::Begins, sketch });
        state
    }

    #[test]
    fn sketches_of_another_model_are_let_go_of() {
        let state = with_sketch("a-256");
        let bytes = rmp_serde::to_vec(&state).unwrap();
        let stored: State = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(stored, state);
        assert_eq!(stored.clone().of_model("a-256"), state);
        let other = stored.of_model("b-256");
        assert_eq!((other.next, other.tail[0].len), (1, 1));
        assert!(other.tail[0].sketch.is_none());
        assert!(other.of_model("a-256").tail[0].sketch.is_none());
    }

    /// A state from before models were distinguished has one field fewer.
    #[test]
    fn a_state_without_a_model_is_read() {
        let bytes = rmp_serde::to_vec(&with_sketch("a-256")).unwrap();
        // An array of eleven elements whose last is a number of five bytes.
        assert_eq!(bytes[0], 0x90 | 11);
        let mut old = bytes[..bytes.len() - 5].to_vec();
        old[0] = 0x90 | 10;
        let read: State = rmp_serde::from_slice(&old).unwrap();
        assert_eq!((read.next, read.model), (1, 0));
        assert!(read.of_model("a-256").tail[0].sketch.is_none());
    }
}
