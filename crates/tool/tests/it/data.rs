//! The content of a tool's answer.

use foldback_tool::Data;

/// OP3, ET12: an output schema says what a bare scalar is.
#[test]
fn et12_an_output_schema_types_a_bare_scalar() {
    for (text, schema, expected) in [
        ("170", r#"{"type": "integer"}"#, Some("170")),
        (" 1.50\n", r#"{"type": "number"}"#, Some("1.50")),
        ("1.50", r#"{"type": "integer"}"#, None),
        ("true", r#"{"type": ["boolean", "null"]}"#, Some("true")),
        ("null", r#"{"type": ["boolean", "null"]}"#, Some("null")),
        ("170", r#"{"type": "string"}"#, None),
        ("170", r#"{"type": ["integer", "string"]}"#, None),
        ("007", r#"{"type": "integer"}"#, None),
        ("170", "{}", None),
        ("170", "no schema", None),
    ] {
        let data = Data::of_text(text.to_owned(), Some(schema));
        assert_eq!(data.structured.as_deref(), expected, "{text} {schema}");
        assert_eq!(data.text, text);
    }
    assert_eq!(Data::of_text("170".to_owned(), None).structured, None);
}
