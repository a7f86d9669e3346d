//! The recall tools as a prompt declares them.

use crate::tools::{definitions, shortest};
use foldback_core::{Estimate, TokenCounter, ToolDefinition};
use std::sync::{Arc, OnceLock};

/// The declared recall tools, with their tokens once counted.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTools(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    definitions: Vec<ToolDefinition>,
    tokens: OnceLock<usize>,
    estimate: OnceLock<u64>,
}

impl DeclaredTools {
    /// Returns all of them.
    pub(crate) fn all() -> Self {
        Self::of(definitions())
    }

    /// Returns `load` alone, in its shortest form.
    pub(crate) fn shortest() -> Self {
        Self::of(shortest())
    }

    fn of(definitions: Vec<ToolDefinition>) -> Self {
        Self(Arc::new(Counted { definitions, tokens: OnceLock::new(), estimate: OnceLock::new() }))
    }

    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        &self.0.definitions
    }

    /// Returns their tokens, counted once: a view is used with one counter.
    pub(crate) fn tokens(&self, counter: &dyn TokenCounter) -> usize {
        *self.0.tokens.get_or_init(|| self.count(counter))
    }

    /// Returns their estimated tokens, whatever counter the view uses.
    pub(crate) fn estimate(&self) -> u64 {
        *self.0.estimate.get_or_init(|| self.count(&Estimate) as u64)
    }

    fn count(&self, counter: &dyn TokenCounter) -> usize {
        let definitions = self.definitions().iter();
        let texts = definitions.flat_map(|t| [&t.name, &t.description, &t.parameters]);
        texts.map(|text| counter.count(text)).sum()
    }
}
