//! What a tool answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What it brought.
    pub data: Data,
}

impl ToolOutput {
    /// An answer in words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { data: Data { text: text.into(), structured: None } }
    }

    /// An answer that is JSON text; a model reads it as it is, and references are resolved in it.
    #[must_use]
    pub fn json(json: impl Into<String>) -> Self {
        let json = json.into();
        Self { data: Data { text: json.clone(), structured: Some(json) } }
    }
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// As a model reads it.
    pub text: String,
    /// The same as JSON text, where the tool gave it apart; references are resolved in it then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured: Option<String>,
}

impl Data {
    /// What a tool answered as text, read by its output schema where that is known: an answer that
    /// the schema calls a number, a truth value or null counts as JSON then, which a bare text never
    /// does by itself.
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

/// Whether the `type` of a schema names a kind, and no string could be meant.
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

/// Whether a text is a number of JSON.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok()
}
