//! Preferring one tool, and excluding none.

use super::vocabulary::Next;
use super::{CallGrammar, GrammarState, Vocabulary};
use crate::AllowedTools;
use std::collections::{BTreeMap, BTreeSet};

/// A preference while a name is being chosen: what is added to the scores (logits) of tokens that
/// lead to the preferred tool.
#[derive(Clone, Debug)]
pub struct Preference {
    name: String,
    path: BTreeSet<usize>,
    bias: f32,
}

impl Preference {
    /// A preference for the tool that the choice prefers; `None` where it prefers none.
    #[must_use]
    pub fn new(allowed: &AllowedTools, grammar: &CallGrammar, bias: f32) -> Option<Self> {
        let name = allowed.preferred.clone()?;
        let path = grammar.path(&name);
        Some(Self { name, path, bias })
    }

    /// Every token that may come next, with what is added to its score: the preference where it
    /// leads to the preferred name, nothing for the others. The tokens are those of
    /// [`Vocabulary::allowed`].
    #[must_use]
    pub fn biases(
        &self,
        vocabulary: &Vocabulary,
        grammar: &CallGrammar,
        state: &GrammarState,
    ) -> BTreeMap<u32, f32> {
        let is_chosen = grammar.name(state).is_some();
        let bias = |next: &Next<'_>| {
            let leads = match next.name {
                Some(name) => name == self.name,
                None => next.state.node().is_some_and(|node| self.path.contains(&node)),
            };
            if leads && !is_chosen { self.bias } else { 0.0 }
        };
        vocabulary.next(grammar, state).map(|next| (next.token, bias(&next))).collect()
    }
}

/// The preference in words, for a model whose decoding is out of reach: for the end of a request,
/// where it changes no cached prefix. `None` where nothing is preferred.
#[must_use]
pub fn preference_hint(allowed: &AllowedTools) -> Option<String> {
    let preferred = allowed.preferred.as_ref()?;
    let others: Vec<_> = allowed
        .names
        .iter()
        .filter(|name| *name != preferred)
        .map(|name| format!("`{name}`"))
        .collect();
    Some(match others.as_slice() {
        [] => format!("Use `{preferred}`."),
        others => {
            let others = others.join(", ");
            format!("Prefer `{preferred}` where it serves; these may be called as well: {others}.")
        }
    })
}
