//! The specification of a tool.

use foldback_core::ToolDefinition;
use std::collections::BTreeMap;

/// The specification of a tool: what a model reads about it, and what a loop or a plan has to know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name, the description and the schema of the arguments, as a model reads them.
    pub definition: ToolDefinition,
    /// The server that it belongs to; `<server><tool>..</tool></server>` names it.
    pub server: Option<String>,
    /// The JSON schema of its answers, as text, if it is known.
    pub output: Option<String>,
    /// The argument that the body of `<tool>body</tool>` is for.
    pub primary: Option<String>,
    /// The languages of arguments that are code; values are inserted in the language's own form.
    pub languages: BTreeMap<String, Language>,
    /// The effect of running it on the world.
    pub effect: Effect,
    /// What may run beside it.
    pub concurrency: Concurrency,
    /// Whether it is given the whole context; such a tool never causes a new plan.
    pub global_context: bool,
    /// Whether it answers with data that somebody else wrote, such as a file or a page: a `status=fail`
    /// in it then says nothing about the call.
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

/// The effect of running a tool on the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// None: it may be run early, repeatedly, or without need.
    ReadOnly,
    /// The same whether it is run once or twice: it may be retried.
    Idempotent,
    /// A new one each time: it is never repeated automatically.
    #[default]
    Effectful,
}

/// What may run beside a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// Every other tool that is also `Parallel`.
    #[default]
    Parallel,
    /// Nothing.
    Exclusive,
}

impl ToolSpec {
    /// Creates a specification that holds only the definition.
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

    /// Returns the name to call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Sets the server that it belongs to.
    #[must_use]
    pub fn with_server(self, server: impl Into<String>) -> Self {
        Self { server: Some(server.into()), ..self }
    }

    /// Sets the JSON schema of its answers.
    #[must_use]
    pub fn with_output(self, output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..self }
    }

    /// Sets the argument that the body of a `<tool>` block is for.
    #[must_use]
    pub fn with_primary(self, primary: impl Into<String>) -> Self {
        Self { primary: Some(primary.into()), ..self }
    }

    /// Sets the language of an argument that is code.
    #[must_use]
    pub fn with_language(mut self, argument: &str, language: Language) -> Self {
        self.languages.insert(argument.to_owned(), language);
        self
    }

    /// Sets its effect on the world.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Sets what may run beside it.
    #[must_use]
    pub fn with_concurrency(self, concurrency: Concurrency) -> Self {
        Self { concurrency, ..self }
    }

    /// Sets whether it is given the whole context.
    #[must_use]
    pub fn with_global_context(self, global_context: bool) -> Self {
        Self { global_context, ..self }
    }

    /// Sets whether it answers with data that somebody else wrote.
    #[must_use]
    pub fn with_answers_data(self, answers_data: bool) -> Self {
        Self { answers_data, ..self }
    }
}
