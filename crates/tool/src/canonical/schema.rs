//! Where in a JSON schema a value stands, and so whether its order says anything.

use serde_json::value::RawValue;

/// What a value is to the schema around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A schema, or a list of schemas.
    Schema,
    /// An object whose values are schemas, under names of the author's own.
    Schemas,
    /// An object whose values are sets, or (in older drafts) schemas.
    Dependencies,
    /// An array whose order says nothing.
    Set,
    /// Data: an example, an allowed value, or whatever is no part of a schema.
    Data,
}

impl Place {
    /// The place of the value of a key of an object that stands here.
    pub(super) fn of_key(self, key: &str, value: &RawValue) -> Self {
        match self {
            Self::Schema => keyword(key),
            Self::Schemas => Self::Schema,
            Self::Dependencies if value.get().starts_with('[') => Self::Set,
            Self::Dependencies => Self::Schema,
            Self::Set | Self::Data => Self::Data,
        }
    }

    /// The place of an element of an array that stands here.
    pub(super) fn of_element(self) -> Self {
        match self {
            Self::Schema => Self::Schema,
            _ => Self::Data,
        }
    }
}

/// The keywords of JSON Schema, drafts 4 to 2020-12.
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
