//! Blocks and stored parts as resources: templates, a list with a cursor, and their contents.

use crate::declared::link;
use crate::{any_todo, uri};
use foldback::{Answer, Error, ErrorKind, Memory};
use foldback_core::{Reference, TodoId};
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::json;

/// The tool that reads a resource.
pub(crate) const TOOL: &str = "load";

/// How many blocks are listed at once.
const PAGE: usize = 50;

/// Returns the templates of blocks and of stored parts.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let block = ResourceTemplate::new(uri::BLOCK, "block")
        .with_title("A block of a conversation")
        .with_description(
            "Messages that belong together, word for word, between marks; a long one comes in pages of \
             lines, as 81-160. The id is one that search_block or list_blocks shows.",
        )
        .with_mime_type("text/plain");
    let part = ResourceTemplate::new(uri::PAYLOAD, "stored part")
        .with_title("A large input or output of a tool")
        .with_description(
            "What a conversation names as store://<part>, between marks; a long one comes in pages of \
             lines, as 81-160.",
        )
        .with_mime_type("text/plain");
    vec![block, part]
}

/// Returns the block after which a cursor continues.
pub(crate) fn after(cursor: Option<&str>) -> Result<u32, ErrorData> {
    let Some(cursor) = cursor else { return Ok(0) };
    cursor.parse().map_err(|_| {
        let what =
            format!("{cursor:?} is not a cursor of this list; expected one that it returned");
        ErrorData::invalid_params(what, None)
    })
}

/// Lists a page of the closed blocks of a todo after the `after`-th. A todo that does not exist has
/// none.
///
/// # Errors
/// When the store fails.
pub(crate) fn list(
    memory: &Memory,
    todo: &TodoId,
    after: u32,
) -> Result<ListResourcesResult, Error> {
    let blocks = match memory.blocks(todo, after, PAGE + 1) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        blocks => blocks?,
    };
    let page = blocks.get(..PAGE).unwrap_or(&blocks);
    let resources = page.iter().map(|block| {
        let header = &block.header;
        let told = format!("{} of {}", header.block_type, header.create_time);
        link(&Reference::Block(header.block_id.clone())).with_description(told)
    });
    let mut listed = ListResourcesResult::with_all_items(resources.collect());
    if blocks.len() > PAGE {
        listed.next_cursor = page.last().map(|block| block.header.block_id.n().to_string());
    }
    Ok(listed)
}

/// What an address names.
#[derive(Clone)]
pub(crate) struct Address {
    reference: Reference,
    lines: Option<String>,
}

impl Address {
    pub(crate) fn parse(uri: &str) -> Result<Self, ErrorData> {
        let (reference, lines) = uri::read(uri).ok_or_else(|| {
            let (block, payload) = (uri::BLOCK, uri::PAYLOAD);
            let what = format!("{uri:?} is not a valid address; expected {block} or {payload}");
            ErrorData::resource_not_found(what, None)
        })?;
        Ok(Self { reference, lines })
    }

    /// Returns the arguments of the call that reads it.
    pub(crate) fn arguments(&self) -> String {
        let name = self.reference.to_string();
        match &self.lines {
            Some(lines) => json!({"ref": name, "lines": lines}),
            None => json!({"ref": name}),
        }
        .to_string()
    }

    /// Returns why `load` refused it: it leads nowhere, as seen from `todo` or, without one, for the owner of all todos;
    /// its lines make no sense; or what it names is damaged.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn refusal(
        &self,
        memory: &Memory,
        todo: Option<&TodoId>,
        why: String,
    ) -> Result<ErrorData, Error> {
        if self.lines.is_some() {
            let whole = Self { lines: None, ..self.clone() }.arguments();
            let whole = match todo {
                Some(todo) => memory.call_tool(todo, TOOL, &whole)?,
                None => any_todo::answer(memory, TOOL, &whole)?,
            };
            if !whole.is_error {
                return Ok(ErrorData::invalid_params(why, None));
            }
        }
        let todo = todo.unwrap_or_else(|| self.reference.todo());
        match memory.references().locate(todo, &self.reference) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(ErrorData::resource_not_found(why, None))
            }
            _ => Ok(ErrorData::internal_error(why, None)),
        }
    }
}

/// Returns the contents of an address.
pub(crate) fn contents(uri: &str, answer: &Answer) -> ReadResourceResult {
    ReadResourceResult::new(vec![ResourceContents::text(&*answer.text, uri)])
}
