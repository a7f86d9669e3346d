//! The object of a call.

use crate::hermes::python::python_to_json;
use foldback_core::Object;
use std::borrow::Cow;

/// A call that a model wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HermesCall {
    /// The tool.
    pub(crate) name: String,
    /// The arguments: the JSON as the model wrote it; a Python dict is converted to JSON; `{}` if there are none.
    pub(crate) arguments: String,
}

impl HermesCall {
    /// Reads the object; the error says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let json = match serde_json::from_str::<Object<'_>>(text) {
            Ok(_) => Cow::Borrowed(text),
            // The JSON error is more helpful for a model that did write JSON.
            Err(error) => match python_to_json(text) {
                Ok(json) => Cow::Owned(json),
                Err(reason) if text.contains('\'') => return Err(reason),
                Err(_) => return Err(error.to_string()),
            },
        };
        let object: Object<'_> = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        for key in ["name", "arguments", "parameters"] {
            if object.0.iter().filter(|(k, _)| k == key).count() > 1 {
                return Err(format!("the key {key:?} occurs twice"));
            }
        }
        let name = object.text("name").filter(|name| !name.is_empty());
        let name = name.ok_or("the key \"name\" with the name of a tool is missing")?.into_owned();
        let arguments = object.get("arguments").or_else(|| object.get("parameters"));
        let arguments = match arguments {
            None => "{}".to_owned(),
            // As chat APIs have them: an object in a string.
            Some(value) => {
                Object::text_of(value).map_or_else(|| value.get().into(), Cow::into_owned)
            }
        };
        Ok(Self { name, arguments })
    }
}
