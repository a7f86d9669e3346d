//! Contexts that show less than everything, fail, or record the requests that they get.

use super::script::full;
use foldback_core::{
    Budget, ContextError, ContextLayer, ContextManager, Prompt, ToolAnswer, ToolCall,
    ToolDefinition,
};
use std::sync::Mutex;

/// A context that shows everything, altered.
pub struct Altered {
    /// The context that shows everything.
    pub inner: Box<dyn ContextManager>,
    tools: Vec<ToolDefinition>,
    shown: fn(&mut Prompt),
    answer: fn(&ToolCall) -> Result<ToolAnswer, ContextError>,
    /// The budgets of the requested prompts.
    pub bounds: Mutex<Vec<Option<usize>>>,
}

impl Altered {
    fn new() -> Self {
        Self {
            inner: full(),
            tools: Vec::new(),
            shown: |_| {},
            answer: |call| Err(ContextError { message: call.name.clone(), source: None }),
            bounds: Mutex::default(),
        }
    }

    /// Records the budgets of its prompts.
    pub fn bounded() -> Self {
        Self::new()
    }

    /// Shows only the messages that `shown` leaves.
    pub fn showing(shown: fn(&mut Prompt)) -> Self {
        Self { shown, ..Self::new() }
    }

    /// Adds a tool `load` with this answer.
    pub fn loading(answer: fn(&ToolCall) -> Result<ToolAnswer, ContextError>) -> Self {
        let load = ToolDefinition {
            name: "load".to_owned(),
            description: "Loads what was said.".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
        };
        Self { tools: vec![load], answer, ..Self::new() }
    }
}

impl ContextLayer for Altered {
    fn inner(&self) -> &dyn ContextManager {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.inner.as_mut()
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        self.bounds.lock().unwrap().push(budget.tokens);
        let mut prompt = self.inner.prompt(budget);
        prompt.tools.clone_from(&self.tools);
        (self.shown)(&mut prompt);
        prompt
    }

    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        (self.answer)(call)
    }
}
