//! The tools that an agent is to have, by family and name.

use crate::ReferenceAgentError;
use foldback_tool::Tool;
use std::sync::Arc;

/// The tools that an agent is to have: those of some families (`file` for `file_read` and its siblings) and
/// those with some names.
#[derive(Clone, Debug)]
pub(crate) struct ToolFamilies {
    names: Vec<String>,
    /// Whether tools that were given to the agent stay, whatever their names.
    keeps_given: bool,
}

/// The built-in tools of a reference agent, which it has if they are permitted and have something to work
/// with.
pub const BUILT_IN: &[&str] = &[
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

/// Checks that these names of tools and families can select tools of an agent that is given no others. A
/// built-in tool counts whether it is permitted or not.
///
/// # Errors
/// When a name is neither that of a tool nor that of a family; the error names the tools that exist.
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

    /// Refuses names that match neither these tools nor the built-in ones.
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

    /// Removes the tools that were not chosen, and records their names in `left_out`.
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

/// Returns whether a tool has this name, or belongs to this family.
fn is_of(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}
