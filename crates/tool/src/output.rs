//! The answer of a tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The content of the answer.
    pub data: Data,
}

impl ToolOutput {
    /// Creates an answer of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { data: Data { text: text.into(), structured: None } }
    }

    /// Creates an answer of JSON text; a model reads it as it is, and references are resolved in it.
    #[must_use]
    pub fn json(json: impl Into<String>) -> Self {
        let json = json.into();
        Self { data: Data { text: json.clone(), structured: Some(json) } }
    }
}

/// The content of a tool's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The text as a model reads it.
    pub text: String,
    /// The same as JSON text, if the tool gave it separately; references are then resolved in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured: Option<String>,
}

impl Data {
    /// Reads the text that a tool answered by its output schema, if that is known: an answer that the
    /// schema calls a number, a boolean or null then counts as JSON, which bare text by itself never
    /// does.
    #[must_use]
    pub fn of_text(text: String, output: Option<&str>) -> Self {
        let bare = text.trim();
        let kind = match bare {
            "null" => "null",
            "true" | "false" => "boolean",
            _ if is_number(bare) => "number",
            _ => return Self { text, structured: None },
        };
        let is_declared = output.is_some_and(|schema| declares(schema, kind, bare));
        let structured = is_declared.then(|| bare.to_owned());
        Self { text, structured }
    }
}

/// Returns whether the `type` of a schema names this kind and does not allow a string.
fn declares(schema: &str, kind: &str, bare: &str) -> bool {
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return false };
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return false,
    };
    let is_whole = kind == "number" && !bare.contains(['.', 'e', 'E']);
    !types.contains(&"string")
        && (types.contains(&kind) || (is_whole && types.contains(&"integer")))
}

/// Returns whether a text is a JSON number.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok()
}
