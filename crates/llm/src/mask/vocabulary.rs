//! The tokens of a model.

use super::{CallGrammar, GrammarState};
use std::collections::BTreeSet;

/// The tokens of a model, as a tree of their bytes, so that all that begin alike are tried at once.
///
/// ```
/// use foldback_llm::{CallGrammar, ToolChoice, Vocabulary};
///
/// let vocabulary = Vocabulary::new([(1, "hello".as_bytes()), (2, b"<tool_call>")], 0);
/// let grammar = CallGrammar::new(&ToolChoice::ReplyOnly, &[]);
/// let allowed = vocabulary.allowed(&grammar, &grammar.start());
/// assert_eq!(allowed.into_iter().collect::<Vec<_>>(), [0, 1], "words, or the end: no call");
/// ```
///
/// A control token (the beginning of a turn, padding) is no text, whatever its name looks like: those
/// of the model are taken out with [`without`](Self::without).
#[derive(Clone, Debug)]
pub struct Vocabulary {
    nodes: Vec<Node>,
    end: u32,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(u8, usize)>,
    tokens: Vec<u32>,
}

/// A token that may come next.
#[derive(Clone, Debug)]
pub(super) struct Next<'g> {
    pub(super) token: u32,
    /// The state behind it.
    pub(super) state: GrammarState,
    /// The tool that is being called before it, or else the first whose name it ends.
    pub(super) name: Option<&'g str>,
}

impl Vocabulary {
    /// A vocabulary of tokens with their bytes, and the token that ends an answer: that one may stand
    /// at an end alone, whatever bytes it is given.
    #[must_use]
    pub fn new<'b>(tokens: impl IntoIterator<Item = (u32, &'b [u8])>, end: u32) -> Self {
        let mut vocabulary = Self { nodes: vec![Node::default()], end };
        for (id, bytes) in tokens.into_iter().filter(|(id, _)| *id != end) {
            let node = bytes.iter().fold(0, |node, byte| vocabulary.child(node, *byte));
            // One without bytes says nothing, and would be said for ever.
            if let (Some(node), false) = (vocabulary.nodes.get_mut(node), bytes.is_empty()) {
                node.tokens.push(id);
            }
        }
        vocabulary
    }

    /// The same without tokens that are never text, such as `<|im_start|>`; the end of an answer
    /// stays.
    #[must_use]
    pub fn without(mut self, control: impl IntoIterator<Item = u32>) -> Self {
        let control: BTreeSet<u32> = control.into_iter().collect();
        for node in &mut self.nodes {
            node.tokens.retain(|token| !control.contains(token));
        }
        self
    }

    /// The tokens that may come next.
    #[must_use]
    pub fn allowed(&self, grammar: &CallGrammar, state: &GrammarState) -> BTreeSet<u32> {
        self.next(grammar, state).map(|next| next.token).collect()
    }

    /// The tokens that may come behind a beginning of an answer; `None` where that itself may not be.
    #[must_use]
    pub fn allowed_after(&self, grammar: &CallGrammar, beginning: &[u8]) -> Option<BTreeSet<u32>> {
        Some(self.allowed(grammar, &grammar.after(beginning)?))
    }

    /// The tokens that may come next.
    pub(super) fn next<'g>(
        &'g self,
        grammar: &'g CallGrammar,
        state: &GrammarState,
    ) -> impl Iterator<Item = Next<'g>> + 'g {
        let begin = Next { token: self.end, state: state.clone(), name: grammar.name(state) };
        let end = grammar.may_end(state).then(|| begin.clone());
        let mut open = vec![(0, begin)];
        let inside = std::iter::from_fn(move || {
            let (at, here) = open.pop()?;
            let node = self.nodes.get(at)?;
            for (byte, child) in &node.children {
                open.extend(grammar.step(here.state.clone(), *byte).map(|state| {
                    let name = here.name.or_else(|| grammar.name(&state));
                    (*child, Next { token: self.end, state, name })
                }));
            }
            Some(node.tokens.iter().map(move |token| Next { token: *token, ..here.clone() }))
        });
        end.into_iter().chain(inside.flatten())
    }

    fn child(&mut self, node: usize, byte: u8) -> usize {
        let new = self.nodes.len();
        let Some(parent) = self.nodes.get_mut(node) else { return node };
        match parent.children.binary_search_by_key(&byte, |(byte, _)| *byte) {
            Ok(at) => parent.children.get(at).map_or(node, |(_, child)| *child),
            Err(at) => {
                parent.children.insert(at, (byte, new));
                self.nodes.push(Node::default());
                new
            }
        }
    }
}
