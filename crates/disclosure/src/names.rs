//! The names that the model uses.

use foldback_core::TodoId;
use serde::{Deserialize, Serialize};

/// The names that the model of this view uses. By default `load` has its own name, and a stored part of the
/// view's own todo is named by its number; a program between the model and the memory may have given `load`
/// another name, and reach several todos.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The name of `load`, if it differs.
    pub load: Option<String>,
    /// The todo with which the names of its stored parts begin, if that has to be stated.
    pub todo: Option<TodoId>,
}

impl Names {
    /// Returns the name of `load`.
    pub(crate) fn load(&self) -> &str {
        self.load.as_deref().unwrap_or("load")
    }
}
