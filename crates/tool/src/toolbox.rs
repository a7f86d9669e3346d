//! Tools by name.

use crate::{Tool, ToolSpec};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Tools by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
}

/// The error for two tools with the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two tools named {0:?}; each name may be given once")]
pub struct DuplicateTool(pub String);

impl Toolbox {
    /// Creates a toolbox of these tools.
    ///
    /// # Errors
    /// When two of them have the same name.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, DuplicateTool> {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            let name = tool.spec().name().to_owned();
            if by_name.insert(name.clone(), tool).is_some() {
                return Err(DuplicateTool(name));
            }
        }
        Ok(Self { tools: by_name })
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// Returns the tool of a server, as `<server><tool>..</tool></server>` names it.
    #[must_use]
    pub fn find(&self, server: &str, tool: &str) -> Option<&Arc<dyn Tool>> {
        self.get(tool).filter(|found| found.spec().server.as_deref() == Some(server))
    }

    /// Iterates over the specifications of the tools, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|tool| tool.spec())
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
