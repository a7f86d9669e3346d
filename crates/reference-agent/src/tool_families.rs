//! The tools that an agent is to have, by family and name.

use crate::ReferenceAgentError;
use foldback_tool::Tool;
use std::sync::Arc;

/// The tools that an agent is to have: those of some families (`file` for `file_read` and the others) and
/// those of some names.
#[derive(Clone, Debug)]
pub(crate) struct ToolFamilies {
    names: Vec<String>,
    /// Tools that somebody gave to the agent stay, whatever their names.
    keeps_given: bool,
}

/// The tools that a reference agent brings along, where they are permitted and there is something for them
/// to work with.
pub(crate) const BUILT_IN: [&str; 13] = [
    "ask_person",
    "delegate",
    "file_edit",
    "file_grep",
    "file_list",
    "file_read",
    "file_write",
    "memory_share",
    "research",
    "shell_run",
    "think",
    "todo_write",
    "web_fetch",
];

/// Looks whether tools can be chosen by these names of tools and families, from an agent that is given none.
/// A built-in tool counts whether it is permitted or not.
///
/// # Errors
/// When a name is that of no tool and no family; the error names the tools there are.
pub fn check_tool_families<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), ReferenceAgentError> {
    ToolFamilies::new(names, false).check(&[])
}

impl ToolFamilies {
    pub(crate) fn new<'n>(names: impl IntoIterator<Item = &'n str>, keeps_given: bool) -> Self {
        let names = names.into_iter().map(|name| name.trim().to_owned()).collect();
        Self { names, keeps_given }
    }

    /// Refuses names that mean nothing, beside these tools and the built-in ones.
    pub(crate) fn check(&self, tools: &[Arc<dyn Tool>]) -> Result<(), ReferenceAgentError> {
        let mut known: Vec<&str> = tools.iter().map(|tool| tool.spec().name()).collect();
        known.extend(BUILT_IN);
        known.sort_unstable();
        known.dedup();
        let is_known = |family: &&String| known.iter().any(|name| is_of(name, family));
        match self.names.iter().find(|family| !is_known(family)) {
            Some(unknown) => Err(ReferenceAgentError::ToolFamily {
                name: unknown.clone(),
                known: known.join(", "),
            }),
            None => Ok(()),
        }
    }

    /// Takes out the tools that were not chosen, and notes their names in `left_out`.
    pub(crate) fn choose(
        &self,
        tools: &mut Vec<Arc<dyn Tool>>,
        is_given: impl Fn(&str) -> bool,
        left_out: &mut Vec<String>,
    ) {
        let is_chosen = |name: &str| {
            self.names.iter().any(|family| is_of(name, family))
                || (self.keeps_given && is_given(name))
        };
        let others = tools.extract_if(.., |tool| !is_chosen(tool.spec().name()));
        left_out.extend(others.map(|tool| tool.spec().name().to_owned()));
    }
}

/// Whether a tool has this name, or is of this family.
fn is_of(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}
