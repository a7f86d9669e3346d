//! How an answer must begin.

use super::special::quoted_name;
use super::{CALL_BEGIN, NAME_BEGIN};
use crate::tool_choice::Callable;
use foldback_core::ToolDefinition;

/// The beginning of an answer, for the model to continue.
#[derive(Default)]
pub(super) struct Prefill {
    /// Empty if text may come; the beginning of a call if one is required, up to the common prefix of
    /// the allowed tools' names.
    pub(super) text: String,
    /// Whether it enforces the choice by itself. It does not if the tools are of several families, or
    /// no call is required.
    pub(super) is_exact: bool,
}

impl Prefill {
    /// Creates the beginning of an answer that may call some of all tools.
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

/// Returns what the names have in common: of one name, all of it and its quote; of several, their
/// family, up to its last `_`, because a model continues better from the end of a word.
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
