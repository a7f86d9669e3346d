//! The interface to a search, and the tool by which a run calls it.

use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Something that finds passages of documents: a folder of files, a search engine, a library.
pub trait SearchBackend: Send + Sync {
    /// Returns the passages that answer a query best, best first, at most `k`. Finding none is not an error.
    ///
    /// # Errors
    /// When it cannot search; the kind of the error says whether another attempt may help.
    fn search<'a>(
        &'a self,
        query: &'a str,
        k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>>;

    /// Does the same for a call of a run: with its token of cancellation, its idempotency key and the rest.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    fn search_within<'a>(
        &'a self,
        query: &'a str,
        k: usize,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        self.search(query, k)
    }

    /// Returns what a search does to the world. One that has an effect is neither tried again nor repeated by
    /// a resumed run.
    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    /// Returns how long a search may take, if not as long as other calls of a run.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// A passage that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Its location. Two passages with the same URL are one source.
    pub url: String,
    /// The title of its document.
    pub title: String,
    /// The passage, word for word.
    pub text: String,
    /// The place of the passage in the document, in bytes, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<u64>>,
}

/// The name of the tool.
pub(crate) const SEARCH: &str = "search";

/// A search as a tool: it is thus recorded before and after, retried, and limited like any other call, and a
/// run that was killed finds the same passages.
pub(crate) struct SearchTool {
    backend: Arc<dyn SearchBackend>,
    spec: ToolSpec,
}

/// The arguments of the tool.
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
        let spec = ToolSpec::new(definition).with_effect(backend.effect());
        Self { backend, spec }
    }
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        self.backend.timeout()
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let SearchArguments { query, k } = serde_json::from_str(arguments)
                .map_err(|error| ToolError::arguments(error.to_string()))?;
            let mut found = self.backend.search_within(&query, k, context).await?;
            found.truncate(k);
            let found = serde_json::to_string(&found);
            Ok(ToolOutput::json(found.map_err(|error| ToolError::permanent(error.to_string()))?))
        }
        .boxed()
    }
}
