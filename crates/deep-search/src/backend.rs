//! The port to whatever searches, and the tool that a run calls it by.

use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Something that finds passages of documents: a folder of files, a search engine, a library.
pub trait SearchBackend: Send + Sync {
    /// The passages that answer a query best, best first, at most `k`. Finding none is no failure.
    ///
    /// # Errors
    /// When it cannot search; whether another attempt may help is told by the kind.
    fn search<'a>(
        &'a self,
        query: &'a str,
        k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>>;
}

/// A passage that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Where it is. Two passages with one URL are one source.
    pub url: String,
    /// The title of its document.
    pub title: String,
    /// The passage, word for word.
    pub text: String,
    /// Where in the document the passage stands, in bytes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<u64>>,
}

/// The name of the tool.
pub(crate) const SEARCH: &str = "search";

/// A search as a tool: that way it is written down before and after, tried again, and bounded like any
/// other call, and a run that was killed finds the same passages.
pub(crate) struct SearchTool {
    backend: Arc<dyn SearchBackend>,
    spec: ToolSpec,
}

/// What the tool is called with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SearchArguments {
    pub(crate) query: String,
    pub(crate) k: usize,
}

impl SearchTool {
    pub(crate) fn new(backend: Arc<dyn SearchBackend>) -> Self {
        let definition = ToolDefinition {
            name: SEARCH.to_owned(),
            description: "The passages of documents that answer a query best.".to_owned(),
            parameters: concat!(
                r#"{"type": "object", "additionalProperties": false, "required": ["query", "k"], "#,
                r#""properties": {"query": {"type": "string"}, "k": {"type": "integer", "minimum": 1}}}"#
            )
            .to_owned(),
        };
        let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
        Self { backend, spec }
    }
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let SearchArguments { query, k } = serde_json::from_str(arguments)
                .map_err(|error| ToolError::arguments(error.to_string()))?;
            let mut found = self.backend.search(&query, k).await?;
            found.truncate(k);
            let found = serde_json::to_string(&found);
            Ok(ToolOutput::json(found.map_err(|error| ToolError::permanent(error.to_string()))?))
        }
        .boxed()
    }
}
