//! What the model calls things by.

use foldback_core::TodoId;
use serde::{Deserialize, Serialize};

/// The names that the model of this view uses. By default `load` is what it is, and a stored part of the
/// view's own todo goes by its number; a program between the model and the memory may have given `load` another
/// name, and reach several todos.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The name of `load`, where it is another.
    pub load: Option<String>,
    /// The todo that the names of its stored parts begin with, where that has to be said.
    pub todo: Option<TodoId>,
}

impl Names {
    /// The name of `load`.
    pub(crate) fn load(&self) -> &str {
        self.load.as_deref().unwrap_or("load")
    }
}
