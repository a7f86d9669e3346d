//! What is known of a tool.

use foldback_core::ToolDefinition;
use std::collections::BTreeMap;

/// What is known of a tool: what a model is told, and what a loop or a plan has to know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

    /// The same, of this server.
    #[must_use]
    pub fn with_server(self, server: impl Into<String>) -> Self {
        Self { server: Some(server.into()), ..self }
    }

    /// The same, with answers of this JSON schema.
    #[must_use]
    pub fn with_output(self, output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..self }
    }

    /// The same, with this argument for the body of a `<tool>` block.
    #[must_use]
    pub fn with_primary(self, primary: impl Into<String>) -> Self {
        Self { primary: Some(primary.into()), ..self }
    }

    /// The same, with code of this language in an argument.
    #[must_use]
    pub fn with_language(mut self, argument: &str, language: Language) -> Self {
        self.languages.insert(argument.to_owned(), language);
        self
    }

    /// The same, with this effect on the world.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// The same, beside these calls.
    #[must_use]
    pub fn with_concurrency(self, concurrency: Concurrency) -> Self {
        Self { concurrency, ..self }
    }

    /// The same, given the whole context, or not.
    #[must_use]
    pub fn with_global_context(self, global_context: bool) -> Self {
        Self { global_context, ..self }
    }

    /// The same, answering data that somebody else wrote, or not.
    #[must_use]
    pub fn with_answers_data(self, answers_data: bool) -> Self {
        Self { answers_data, ..self }
    }
}
