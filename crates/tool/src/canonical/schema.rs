//! The place of a value in a JSON schema, which decides whether its order has a meaning.

use serde_json::value::RawValue;

/// The role of a value in the schema around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A schema, or a list of schemas.
    Schema,
    /// An object whose values are schemas, under names that the author chose.
    Schemas,
    /// An object whose values are sets, or (in older drafts) schemas.
    Dependencies,
    /// An array whose order has no meaning.
    Set,
    /// Data: an example, an allowed value, or anything else that is not part of a schema.
    Data,
}

impl Place {
    /// Returns the place of a key's value in an object at this place.
    pub(super) fn of_key(self, key: &str, value: &RawValue) -> Self {
        match self {
            Self::Schema => keyword(key),
            Self::Schemas => Self::Schema,
            Self::Dependencies if value.get().starts_with('[') => Self::Set,
            Self::Dependencies => Self::Schema,
            Self::Set | Self::Data => Self::Data,
        }
    }

    /// Returns the place of an element of an array at this place.
    pub(super) fn of_element(self) -> Self {
        match self {
            Self::Schema => Self::Schema,
            _ => Self::Data,
        }
    }
}

/// Returns the place of a keyword's value, for the keywords of JSON Schema drafts 4 to 2020-12.
fn keyword(key: &str) -> Place {
    match key {
        "required" | "type" => Place::Set,
        "dependentRequired" | "dependencies" => Place::Dependencies,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
            Place::Schemas
        }
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else" => Place::Schema,
        _ => Place::Data,
    }
}
