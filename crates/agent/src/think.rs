//! `think`: the model states in a fixed form whether it knows enough.

use crate::own_tool::{read, spec};
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput};
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Look at what you know before you go on: is it enough for the request, what is missing, and what would \
     you do to find it? Changes nothing. Use it where the next step is not clear.";

const PARAMETERS: &str = r#"{
    "type": "object",
    "required": ["is_sufficient"],
    "additionalProperties": false,
    "properties": {
        "is_sufficient": {"type": "boolean", "description": "Whether what is known answers the request."},
        "knowledge_gap": {"type": "string", "description": "What is missing or uncertain."},
        "follow_up": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What to do or ask to find it, one thing each."
        }
    }
}"#;

/// A reflection on what is known.
#[derive(Deserialize)]
struct Reflection {
    is_sufficient: bool,
    #[serde(default)]
    knowledge_gap: String,
    #[serde(default)]
    follow_up: Vec<String>,
}

/// Creates the tool by which a model reflects on what it knows: whether that is sufficient, what is missing,
/// and what to do about it. It changes nothing; the reflection stays in the conversation as a call.
#[must_use]
pub fn think() -> Arc<dyn Tool> {
    let spec = spec("think", DESCRIPTION, PARAMETERS).with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, |arguments, _| async move {
        reflected(&read(&arguments)?).map(ToolOutput::text)
    }))
}

/// Returns what follows from a reflection.
fn reflected(reflection: &Reflection) -> Result<String, ToolError> {
    let gap = reflection.knowledge_gap.trim();
    let follow_up: Vec<&str> = reflection.follow_up.iter().map(|one| one.trim()).collect();
    let follow_up: Vec<&str> = follow_up.into_iter().filter(|one| !one.is_empty()).collect();
    match (reflection.is_sufficient, follow_up.as_slice()) {
        (true, []) if gap.is_empty() => Ok("Enough is known: answer the request.".to_owned()),
        (true, _) => {
            Ok("Enough is known: answer the request, and say what is not certain.".to_owned())
        }
        (false, []) if gap.is_empty() => Err(ToolError::arguments(
            "is_sufficient is false, but nothing is named as missing: give knowledge_gap, follow_up or \
             both, or answer the request",
        )),
        (false, []) => {
            Ok("Something is missing, and there is nothing to do about it: answer with \
             what is known, and say what is missing."
                .to_owned())
        }
        (false, [one]) => Ok(format!("Next: {one}")),
        (false, several) => {
            Ok(format!("Next, together where they do not need each other: {}", several.join("; ")))
        }
    }
}
