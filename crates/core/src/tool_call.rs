//! A model's request to run a tool.

use crate::{Object, ToolCallId};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The name of this call; its result carries the same.
    pub id: ToolCallId,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: usually, but not always, a JSON object.
    pub arguments: String,
}

impl ToolCall {
    /// Creates a call.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: &str) -> Self {
        Self { id: ToolCallId::new(id), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    /// Returns the members of the arguments, in the order of the text, each value as its exact
    /// JSON. `None` if the arguments are not a JSON object.
    #[must_use]
    pub fn members(&self) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
        serde_json::from_str(&self.arguments).ok().map(Object::distinct)
    }
}
