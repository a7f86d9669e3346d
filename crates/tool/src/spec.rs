//! What is known of a tool.

use foldback_core::ToolDefinition;
use std::collections::BTreeMap;

/// What is known of a tool: what a model is told, and what a loop or a plan has to know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name, the description and the schema of the arguments, as a model is told.
    pub definition: ToolDefinition,
    /// The server it belongs to; `<server><tool>..</tool></server>` names it.
    pub server: Option<String>,
    /// The JSON schema of what it answers, as text, where that is known.
    pub output: Option<String>,
    /// The argument that the body of `<tool>body</tool>` is for.
    pub primary: Option<String>,
    /// The languages of arguments that are code; values are inserted in the language's own form.
    pub languages: BTreeMap<String, Language>,
    /// What running it does to the world.
    pub effect: Effect,
    /// What may run beside it.
    pub concurrency: Concurrency,
    /// Whether it is given the whole context; such a tool never asks for a new plan.
    pub global_context: bool,
    /// Whether what it answers is data that somebody else wrote, a file or a page: then a `status=fail`
    /// in it says nothing about the call.
    pub answers_data: bool,
}

/// A language that an argument is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python source.
    Python,
    /// A POSIX shell command.
    Shell,
    /// SQL.
    Sql,
    /// JSON.
    Json,
    /// Inserted as it is, on purpose.
    Raw,
}

/// What running a tool does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it may be run early, again, or for nothing.
    ReadOnly,
    /// The same once or twice: it may be tried again.
    Idempotent,
    /// Something each time: it is never repeated by itself.
    #[default]
    Effectful,
}

/// What may run beside a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// Anything that says the same.
    #[default]
    Parallel,
    /// Nothing.
    Exclusive,
}

impl ToolSpec {
    /// A tool of which nothing else is known.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            definition,
            server: None,
            output: None,
            primary: None,
            languages: BTreeMap::new(),
            effect: Effect::default(),
            concurrency: Concurrency::default(),
            global_context: false,
            answers_data: false,
        }
    }

    /// The name to call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}
