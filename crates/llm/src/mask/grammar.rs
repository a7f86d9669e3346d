//! What a model may write under a choice of tools, in the format of Hermes.

use super::json::{JsonObject, JsonStep};
use super::trie::{NameTrie, Step};
use crate::ToolChoice;
use crate::hermes::{CALL_BEGIN, CALL_END, NAME_BEGIN};
use foldback_core::ToolDefinition;
use std::collections::BTreeSet;

/// The texts that a model may answer with: words, and calls of allowed tools with a JSON object of
/// arguments. It is followed byte by byte, so that wherever tokens begin and end, in the middle of a
/// character too, no masked name is ever written.
///
/// ```
/// use foldback_core::ToolDefinition;
/// use foldback_llm::{CallGrammar, Mask};
///
/// let tool = |name: &str| ToolDefinition {
///     name: name.to_owned(),
///     description: String::new(),
///     parameters: "{}".to_owned(),
/// };
/// let tools = [tool("browser_查询订单"), tool("shell_修改地址"), tool("shell_发起退款")];
/// let mask = Mask::required().name("browser_查询订单").name("shell_发起退款");
/// let grammar = CallGrammar::new(&mask.choice(&tools).unwrap(), &tools);
/// let chosen = grammar.after(r#"<tool_call>{"name": "shell_"#.as_bytes()).unwrap();
/// assert!(grammar.advance(&chosen, "发起退款".as_bytes()).is_some());
/// assert!(grammar.advance(&chosen, "修改地址".as_bytes()).is_none());
/// ```
#[derive(Clone, Debug)]
pub struct CallGrammar {
    names: Vec<String>,
    trie: NameTrie,
    required: bool,
}

/// How far an answer has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrammarState(Place);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Before everything, where a call has to come: white space, and so much of its beginning.
    Begin(usize),
    /// In words, the last of which are so much of the beginning of a call.
    Words(usize),
    /// Behind so much of what stands before a name.
    Head(usize),
    /// In a name, at this node of the tree.
    Name(usize),
    /// Behind so much of what stands between this name and its arguments.
    Middle(usize, usize),
    /// In the arguments of this name.
    Arguments(usize, JsonObject),
    /// Behind so much of what ends a call of this name.
    Tail(usize, usize),
}

/// What stands between a name's last quote and the arguments.
const MIDDLE: &[u8] = b", \"arguments\": ";

impl CallGrammar {
    /// What a model may write under a choice among these tools.
    #[must_use]
    pub fn new(choice: &ToolChoice, tools: &[ToolDefinition]) -> Self {
        let all = || tools.iter().map(|tool| tool.name.clone()).collect();
        let (names, required): (BTreeSet<String>, bool) = match choice {
            ToolChoice::Auto => (all(), false),
            ToolChoice::Required => (all(), true),
            ToolChoice::ReplyOnly => (BTreeSet::new(), false),
            ToolChoice::Allowed(some) => (some.names.iter().cloned().collect(), some.required),
        };
        let names: Vec<_> = names.into_iter().collect();
        Self { trie: NameTrie::new(&names), names, required }
    }

    /// The allowed names, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Nothing written yet, not even what is [prefilled](crate::hermes_prefill).
    #[must_use]
    pub fn start(&self) -> GrammarState {
        GrammarState(if self.required { Place::Begin(0) } else { Place::Words(0) })
    }

    /// The state behind a beginning of an answer; `None` where it is not allowed.
    #[must_use]
    pub fn after(&self, beginning: &[u8]) -> Option<GrammarState> {
        self.advance(&self.start(), beginning)
    }

    /// The state behind more of the answer; `None` where that is not allowed.
    #[must_use]
    pub fn advance(&self, state: &GrammarState, more: &[u8]) -> Option<GrammarState> {
        more.iter().try_fold(state.clone(), |state, byte| self.step(state, *byte))
    }

    /// Whether the answer may end here.
    #[must_use]
    pub fn may_end(&self, state: &GrammarState) -> bool {
        matches!(state.0, Place::Words(_))
    }

    /// The name of the call that is being written, once it is written to its end.
    #[must_use]
    pub fn name(&self, state: &GrammarState) -> Option<&str> {
        let (Place::Middle(name, _) | Place::Arguments(name, _) | Place::Tail(name, _)) = state.0
        else {
            return None;
        };
        self.names.get(name).map(String::as_str)
    }

    /// The nodes of the tree of names on the way to one.
    pub(super) fn path(&self, name: &str) -> BTreeSet<usize> {
        self.trie.path(name)
    }

    /// The state one byte on.
    pub(super) fn step(&self, state: GrammarState, byte: u8) -> Option<GrammarState> {
        let place = match state.0 {
            Place::Begin(0) if byte.is_ascii_whitespace() => Place::Begin(0),
            Place::Begin(at) => {
                follow(CALL_BEGIN.as_bytes(), at, byte, Place::Begin, Place::Head(0))?
            }
            Place::Words(at) => self.words(at, byte)?,
            // Models are trained with a line break here, or without.
            Place::Head(0) if byte == b'\n' => Place::Head(0),
            Place::Head(at) => {
                follow(NAME_BEGIN.as_bytes(), at, byte, Place::Head, Place::Name(NameTrie::ROOT))?
            }
            Place::Name(node) => match self.trie.step(node, byte)? {
                Step::Inside(next) => Place::Name(next),
                Step::Ended(name) => Place::Middle(name, 0),
            },
            Place::Middle(name, at) => {
                let arguments = Place::Arguments(name, JsonObject::new());
                follow(MIDDLE, at, byte, |at| Place::Middle(name, at), arguments)?
            }
            Place::Arguments(name, json) => match json.step(byte)? {
                JsonStep::Inside(json) => Place::Arguments(name, json),
                JsonStep::Ended => Place::Tail(name, 0),
            },
            // Behind the brace of the call there may be a line break.
            Place::Tail(name, 0) => (byte == b'}').then_some(Place::Tail(name, 1))?,
            Place::Tail(name, 1) if byte == b'\n' => Place::Tail(name, 1),
            Place::Tail(name, at) => {
                let tail = |at| Place::Tail(name, at + 1);
                follow(CALL_END.as_bytes(), at - 1, byte, tail, Place::Words(0))?
            }
        };
        Some(GrammarState(place))
    }

    /// Words may be anything but the beginning of a call that could name nothing.
    fn words(&self, at: usize, byte: u8) -> Option<Place> {
        let begin = CALL_BEGIN.as_bytes();
        if begin.get(at) != Some(&byte) {
            // Its first character stands nowhere else in it.
            return Some(Place::Words(usize::from(begin.first() == Some(&byte))));
        }
        if at + 1 < begin.len() {
            return Some(Place::Words(at + 1));
        }
        (!self.names.is_empty()).then_some(Place::Head(0))
    }
}

impl GrammarState {
    /// The node of the tree of names, while a name is written.
    pub(super) fn node(&self) -> Option<usize> {
        if let Place::Name(node) = self.0 { Some(node) } else { None }
    }
}

/// The next byte of a text that has to stand here.
fn follow(
    text: &[u8],
    at: usize,
    byte: u8,
    inside: impl Fn(usize) -> Place,
    behind: Place,
) -> Option<Place> {
    match text.get(at) {
        Some(expected) if *expected == byte && at + 1 < text.len() => Some(inside(at + 1)),
        Some(expected) if *expected == byte => Some(behind),
        _ => None,
    }
}
