//! How an answer has to begin.

use super::special::quoted_name;
use super::{CALL_BEGIN, NAME_BEGIN};
use crate::tool_choice::Callable;
use foldback_core::ToolDefinition;

/// The beginning of an answer, for the model to go on from.
#[derive(Default)]
pub(super) struct Prefill {
    /// Nothing where words may come; the beginning of a call where one has to be made, up to what the
    /// names of the allowed tools share.
    pub(super) text: String,
    /// Whether it holds the model to the choice by itself. It does not where the tools are of several
    /// families, or none has to be called.
    pub(super) is_exact: bool,
}

impl Prefill {
    /// The beginning of an answer that may call some of all tools.
    pub(super) fn new(callable: &Callable<'_>, all: &[ToolDefinition]) -> Self {
        let are_all = callable.tools.len() == all.len();
        if !callable.required {
            return Self { text: String::new(), is_exact: are_all };
        }
        if are_all {
            return Self { text: CALL_BEGIN.to_owned(), is_exact: true };
        }
        let shared = shared_name(callable.tools.iter().map(|tool| quoted_name(&tool.name)));
        let begins = all.iter().filter(|tool| quoted_name(&tool.name).starts_with(&shared));
        let is_exact = begins.count() == callable.tools.len();
        Self { text: format!("{CALL_BEGIN}{NAME_BEGIN}{shared}"), is_exact }
    }
}

/// What the names have in common: of one, all of it and its quote; of several, their family, up to
/// its last `_`, because a model goes on better from the end of a word.
fn shared_name(mut names: impl Iterator<Item = String>) -> String {
    let Some(first) = names.next() else { return String::new() };
    let shared = |a: &str, b: &str| {
        let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
        same.map(|(c, _)| c.len_utf8()).sum::<usize>()
    };
    let length = names.map(|name| shared(&first, &name)).min();
    let Some(length) = length else { return first };
    let common = first.get(..length).unwrap_or_default();
    common.rfind('_').map_or(String::new(), |at| common.split_at(at + 1).0.to_owned())
}
