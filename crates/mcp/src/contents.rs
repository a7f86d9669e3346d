//! References in arguments: a server is given the text that each names, which the model need not have read.

use foldback_core::{HandOver, PayloadRef};
use foldback_tool::{CallContext, ToolError, handed_bytes};
use serde_json::{Map, Value};

/// How many bytes of text one call passes to a server.
const MOST_BYTES: u64 = 16 << 20;

/// Replaces each text in the arguments that is only the name of a stored part (`store://2-k4qd`) with that
/// part. If nothing is stored under a name, it stays as it is: a server may have such names of its own.
pub(crate) async fn with_contents(
    arguments: Map<String, Value>,
    context: &CallContext,
) -> Result<Map<String, Value>, ToolError> {
    if !arguments.values().any(names_any) {
        return Ok(arguments);
    }
    let Ok(handing) = context.hand_over().await else { return Ok(arguments) };
    let work = move || {
        let (mut arguments, mut left) = (arguments, MOST_BYTES);
        arguments.values_mut().try_for_each(|value| fill(value, &*handing, &mut left))?;
        Ok(arguments)
    };
    let broke = |_| ToolError::permanent("the stored content could not be read; try another way");
    tokio::task::spawn_blocking(work).await.map_err(broke)?
}

fn names_any(value: &Value) -> bool {
    match value {
        Value::String(text) => PayloadRef::is_alone(text),
        Value::Array(items) => items.iter().any(names_any),
        Value::Object(members) => members.values().any(names_any),
        _ => false,
    }
}

fn fill(value: &mut Value, handing: &dyn HandOver, left: &mut u64) -> Result<(), ToolError> {
    match value {
        Value::String(text) if PayloadRef::is_alone(text) => {
            let bytes = handed_bytes(handing, text, *left)?;
            *left = left.saturating_sub(bytes.len() as u64);
            *text = String::from_utf8(bytes).map_err(|_| {
                ToolError::arguments(format!(
                    "{} is binary, and this tool accepts only text",
                    text.trim()
                ))
            })?;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, handing, left)),
        Value::Object(members) => {
            members.values_mut().try_for_each(|value| fill(value, handing, left))
        }
        _ => Ok(()),
    }
}
