//! The tools with which a model reaches what its view does not show.
//!
//! One value describes each tool. The schema for chat APIs, the help on a command line and the
//! check of what a model wrote all come from it.

mod answer;
mod argument;
mod block_text;
mod list_blocks;
mod load;
mod load_words;
mod not_searched;
mod other_part;
mod page;
mod passage;
mod payload_origin;
mod recall_source;
mod search_block;
mod search_elsewhere;

pub use answer::{ANSWER_SCHEMA, Answer, recall_note};
pub use argument::{Argument, ArgumentKind};
pub(crate) use load::SHORTEST_TOKENS;
pub use load::load_elsewhere;
pub(crate) use passage::passage_of;
pub use recall_source::{Grants, RecallSource};
pub use search_elsewhere::SearchElsewhere;

use crate::Error;
use argument::{Arguments, parse, schema};
use foldback_core::{ToolCall, ToolDefinition};

/// A tool: its name, its schema, its help, and what it does.
pub struct Tool {
    /// The name to call it by.
    pub name: &'static str,
    /// The name to show on a screen.
    pub title: &'static str,
    /// Its purpose and when to use it.
    pub description: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// Arguments as a model may write them.
    pub example: &'static str,
    run: fn(&RecallSource<'_>, &Arguments) -> Result<Answer, Error>,
}

impl Tool {
    /// Returns the tool as it is declared to a model.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: schema(self.arguments),
        }
    }

    /// Runs the tool on what a model wrote. A mistake of the model is answered with the next step.
    ///
    /// # Errors
    /// When the store fails.
    pub fn run(&self, recall: &RecallSource<'_>, arguments: &str) -> Result<Answer, Error> {
        match self.read(arguments) {
            Ok(arguments) => (self.run)(recall, &arguments),
            Err(answer) => Ok(*answer),
        }
    }

    /// Reads what a model wrote; otherwise returns the answer that says what is wrong with it.
    fn read(&self, arguments: &str) -> Result<Arguments, Box<Answer>> {
        parse(self.arguments, arguments).map_err(|wrong| {
            let (name, example) = (self.name, self.example);
            Box::new(Answer::error(name, &format!("{wrong} Call {name} with {example}.")))
        })
    }
}

/// Returns the three tools, in the order in which they are declared.
#[must_use]
pub fn tools() -> [&'static Tool; 3] {
    [&search_block::TOOL, &list_blocks::TOOL, &load::TOOL]
}

/// Returns the three tools as they are declared to a model.
#[must_use]
pub fn definitions() -> Vec<ToolDefinition> {
    tools().iter().map(|tool| tool.definition()).collect()
}

/// Returns whether a tool with this name is one of the three: by its own name, or by that of a client that puts its
/// server's name in front (`foldback_load`, `mcp__foldback__load`).
pub(crate) fn is_recall_tool(name: &str) -> bool {
    let is_ours = |rest: &str| {
        rest.is_empty() || rest.ends_with('_') && rest.trim_end_matches('_').ends_with("foldback")
    };
    tools().iter().any(|tool| name.strip_suffix(tool.name).is_some_and(is_ours))
}

/// Returns `load` alone, in its shortest form: it takes references, and words to search for.
pub(crate) fn shortest() -> Vec<ToolDefinition> {
    vec![load::shortest()]
}

/// Runs a call of one of the three tools. A mistake of the model, such as an unknown tool, is
/// answered, too.
///
/// # Errors
/// When the store fails.
pub fn run_tool(recall: &RecallSource<'_>, call: &ToolCall) -> Result<Answer, Error> {
    match tools().into_iter().find(|tool| tool.name == call.name) {
        Some(tool) => tool.run(recall, &call.arguments),
        None => {
            let names = tools().map(|tool| tool.name).join(", ");
            Ok(Answer::error("memory", &format!("There is no such tool; there are {names}.")))
        }
    }
}
