//! The tools of a memory as the protocol declares them, and their answers as it sends them.

use crate::uri;
use foldback::{Answer, MemoryTool};
use foldback_core::{Reference, TodoId};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource, Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// An answer links to so many blocks and stored parts at most; it names all of them.
const LINKS: usize = 10;

/// A tool with its schemas and all four hints. Its description ends with the mark, where there is one.
pub(crate) fn declared(tool: &MemoryTool, mark: &str) -> Tool {
    let description = match mark {
        "" => tool.description.to_owned(),
        mark => format!("{} {mark}", tool.description),
    };
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(!tool.writes)
        .destructive(false)
        .idempotent(!tool.writes)
        .open_world(false);
    Tool::new(tool.name, description, schema(&tool.parameters))
        .with_title(tool.title)
        .with_raw_output_schema(schema(tool.output))
        .with_annotations(hints)
}

/// A schema, which is an object.
fn schema(json: &str) -> Arc<JsonObject> {
    Arc::new(serde_json::from_str(json).unwrap_or_default())
}

/// An answer as a result: its text, the same structured, and links to what it shows. Short names are those
/// of the todo `own`.
pub(crate) fn result(answer: &Answer, own: Option<&TodoId>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(&*answer.text)];
    let named = answer.references.iter().filter_map(|name| match own {
        Some(own) => Reference::parse_in(own, name).ok(),
        None => name.parse().ok(),
    });
    content
        .extend(named.take(LINKS).map(|reference| ContentBlock::resource_link(link(&reference))));
    let mut result = CallToolResult::success(content);
    result.is_error = Some(answer.is_error);
    result.structured_content = serde_json::from_str::<Value>(&answer.structured()).ok();
    result
}

/// A block or a stored part as a resource. Nothing that was recorded stands in it.
pub(crate) fn link(reference: &Reference) -> Resource {
    Resource::new(uri::of(reference), reference.to_string()).with_mime_type("text/plain")
}
