//! The tools of a memory as the protocol declares them, and their answers as it sends them.

use crate::scope::Scope;
use crate::uri;
use foldback::{Answer, MemoryTool};
use foldback_core::{Reference, TodoId};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource, Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// How many blocks and stored parts an answer links to at most; its text names all of them.
const LINKS: usize = 10;

/// Declares a tool with its schemas and all four hints. Its description ends with the mark, if there
/// is one.
pub(crate) fn declared(tool: &MemoryTool, scope: &Scope) -> Tool {
    let description = match scope.mark.as_str() {
        "" => tool.description.to_owned(),
        mark => format!("{} {mark}", tool.description),
    };
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(!tool.writes)
        .destructive(false)
        .idempotent(!tool.writes)
        .open_world(false);
    let declared = Tool::new(tool.name, description, schema(&tool.parameters))
        .with_title(tool.title)
        .with_annotations(hints);
    match scope.is_session() {
        true => declared,
        false => declared.with_raw_output_schema(schema(tool.output)),
    }
}

/// Parses a schema, which is an object.
fn schema(json: &str) -> Arc<JsonObject> {
    Arc::new(serde_json::from_str(json).unwrap_or_default())
}

/// Returns an answer as a result that is text alone.
pub(crate) fn text(answer: &Answer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(&*answer.text)]);
    result.is_error = Some(answer.is_error);
    result
}

/// Returns an answer as a result: its text, its structured form, and links to what it shows. Short names
/// are those of the todo `own`.
pub(crate) fn result(answer: &Answer, own: Option<&TodoId>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(&*answer.text)];
    let named = answer.references.iter().filter_map(|name| match own {
        Some(own) => Reference::parse_in(own, name).ok(),
        None => name.parse().ok(),
    });
    content
        .extend(named.take(LINKS).map(|reference| ContentBlock::resource_link(link(&reference))));
    let mut result = text(answer);
    result.content = content;
    result.structured_content = serde_json::from_str::<Value>(&answer.structured()).ok();
    result
}

/// Returns a block or a stored part as a resource. It contains nothing that was recorded.
pub(crate) fn link(reference: &Reference) -> Resource {
    Resource::new(uri::of(reference), reference.to_string()).with_mime_type("text/plain")
}
