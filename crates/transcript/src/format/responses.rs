//! Reads items of OpenAI's Responses API.

use super::{Context, Format, codex};
use crate::conversion::Conversion;
use crate::record::ROOM;
use crate::scan::{check_depth, json_error};
use crate::{Error, Limits, Place};
use foldback_core::Message;
use serde_json::value::RawValue;

/// Reads a JSON list of items that belong together: what a model thought, said and called in one answer becomes
/// one message, and any other item becomes one of its own. Items that are not messages (tool definitions, a
/// compaction) are left out.
///
/// # Errors
/// When it is not a list of objects, or one is too large.
///
/// ```
/// let items = r#"[
///     {"type": "reasoning", "summary": []},
///     {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
/// ]"#;
/// let messages = foldback_transcript::responses::read_items(items)?;
/// assert_eq!(messages.len(), 1);
/// assert_eq!(messages[0].tool_calls()[0].name, "read");
/// # Ok::<(), foldback_transcript::Error>(())
/// ```
pub fn read_items(json: &str) -> Result<Vec<Message>, Error> {
    let (place, limits) =
        (Place { file: "a list of items".to_owned(), line: 1 }, Limits::default());
    let context = Context { place: &place, limits: &limits, meta: None };
    let items: Vec<&RawValue> =
        serde_json::from_str(json).map_err(|error| json_error(&error, json, &place))?;
    check_depth(json, &place, &limits.without_depth(ROOM))?;
    let drafts = codex::drafts(&items);
    let drafts = drafts.map_err(|n| context.shape(1, format!("item {n} is not an object")))?;
    let mut conversion = Conversion::new(Format::ResponsesBody, None);
    for draft in drafts {
        conversion.push(draft, context)?;
    }
    Ok(conversion.finish().messages)
}
