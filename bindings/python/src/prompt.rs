//! What a model is sent, and what a memory tool answers.

use crate::message_format::MessageFormat;
use pyo3::prelude::*;

/// The request to send to a model now.
#[pyclass(frozen, get_all, module = "foldback._foldback")]
pub(crate) struct Prompt {
    /// The body of the request, as JSON, without a model's name.
    body: String,
    /// The messages as they are recorded, as JSON, one each.
    messages: Vec<String>,
    /// The tools that go with them: name, description, schema of the arguments as JSON.
    tools: Vec<(String, String, String)>,
    /// The estimated tokens of messages and tools.
    tokens: usize,
    /// How many messages at the end change from call to call.
    volatile: usize,
    /// How often the part that does not change from call to call has moved.
    moves: u64,
    /// What did not fit into the budget, in sentences.
    unfit: Vec<String>,
}

impl Prompt {
    pub(crate) fn new(prompt: foldback::core::Prompt, moves: u64, format: MessageFormat) -> Self {
        let body = format.body(prompt.messages.iter().map(AsRef::as_ref), &prompt.tools);
        let tools = prompt.tools.into_iter();
        Self {
            body,
            messages: prompt.messages.iter().map(|message| message.json().to_owned()).collect(),
            tools: tools.map(|tool| (tool.name, tool.description, tool.parameters)).collect(),
            tokens: prompt.tokens,
            volatile: prompt.volatile,
            moves,
            unfit: prompt.unfit,
        }
    }
}

/// What a memory tool answers.
#[pyclass(frozen, get_all, module = "foldback._foldback")]
pub(crate) struct Answer {
    /// What the model reads.
    text: String,
    /// Whether the call failed.
    is_error: bool,
    /// The blocks and stored parts that it shows, in their order.
    references: Vec<String>,
    /// The arguments of the call that goes on where this answer ends, as JSON.
    next: Option<String>,
}

impl From<foldback::Answer> for Answer {
    fn from(answer: foldback::Answer) -> Self {
        let foldback::Answer { text, is_error, references, next, .. } = answer;
        Self { text, is_error, references, next }
    }
}
