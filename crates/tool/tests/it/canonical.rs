//! Deterministic serialisation.

use foldback_core::ToolDefinition;
use foldback_tool::{canonical_json, canonical_schema, canonical_tools};
use proptest::prelude::*;
use serde_json::Value;

/// MC2: keys are sorted, numbers keep their digits, data keep their order.
#[test]
fn mc2_data_have_one_form() {
    let cases = [
        (r#"{"b":1,"a":{"d":[3,1,2],"c":null}}"#, r#"{"a":{"c":null,"d":[3,1,2]},"b":1}"#),
        (
            r#"[1.0, 1, 1e400, -0, 0.10, 12345678901234567890123]"#,
            "[1.0,1,1e400,-0,0.10,12345678901234567890123]",
        ),
        (r#" { "\u0062" : "\u4e2d\/" , "a" : "\ud83d\ude42" } "#, r#"{"a":"🙂","b":"中/"}"#),
        (r#"{"x":"\ud83d","y":"�"}"#, r#"{"x":"\ud83d","y":"�"}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"城市":1,"z":2,"Z":3,"é":4}"#, r#"{"Z":3,"z":2,"é":4,"城市":1}"#),
        (r#"{"required":["b","a"]}"#, r#"{"required":["b","a"]}"#),
        ("\"\\n\\u0000\"", "\"\\n\\u0000\""),
    ];
    for (json, expected) in cases {
        assert_eq!(canonical_json(json).unwrap(), expected);
    }
}

/// MC2: only what JSON Schema reads as a set is sorted.
#[test]
fn mc2_sets_of_a_schema_are_sorted_and_order_is_kept() {
    let schema = r#"{
        "type": ["string", "null", "object"],
        "required": ["b", "a"],
        "enum": ["z", {"required": ["y", "x"], "b": 1, "a": 2}],
        "default": {"required": ["y", "x"]},
        "properties": {
            "required": {"type": "array", "enum": [["d", "c"]]},
            "type": {"oneOf": [{"required": ["q", "p"]}, {"type": "string"}]},
            "items": {"prefixItems": [{"type": ["b", "a"]}, {"const": ["b", "a"]}]}
        },
        "dependentRequired": {"k": ["n", "m"]},
        "dependencies": {"k": ["n", "m"], "j": {"required": ["f", "e"]}},
        "$defs": {"enum": {"required": ["h", "g"]}}
    }"#;
    let expected = concat!(
        r#"{"$defs":{"enum":{"required":["g","h"]}},"#,
        r#""default":{"required":["y","x"]},"#,
        r#""dependencies":{"j":{"required":["e","f"]},"k":["m","n"]},"#,
        r#""dependentRequired":{"k":["m","n"]},"#,
        r#""enum":["z",{"a":2,"b":1,"required":["y","x"]}],"#,
        r#""properties":{"#,
        r#""items":{"prefixItems":[{"type":["a","b"]},{"const":["b","a"]}]},"#,
        r#""required":{"enum":[["d","c"]],"type":"array"},"#,
        r#""type":{"oneOf":[{"required":["p","q"]},{"type":"string"}]}},"#,
        r#""required":["a","b"],"type":["null","object","string"]}"#,
    );
    assert_eq!(canonical_schema(schema).unwrap(), expected);
}

#[test]
fn mc2_what_is_no_json_is_named() {
    let error = canonical_json(r#"{"a": 1"#).unwrap_err().to_string();
    assert!(error.starts_with("this is not JSON: EOF"), "{error}");
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(canonical_json(&deep).unwrap_err().to_string(), "values are nested deeper than 128");
    let very = "[".repeat(1_000_000);
    assert!(canonical_json(&very).is_err());
    let tool = ToolDefinition {
        name: "t".to_owned(),
        description: String::new(),
        parameters: "not JSON".to_owned(),
    };
    assert_eq!(canonical_tools(std::slice::from_ref(&tool)), [tool]);
}

/// A schema with its parts in some order.
fn schema(keys: &[&str], required: &[&str]) -> String {
    let properties: Vec<_> =
        keys.iter().map(|key| format!(r#""{key}":{{"type":"string","enum":["b","a"]}}"#)).collect();
    let required: Vec<_> = required.iter().map(|key| format!("{key:?}")).collect();
    format!(
        r#"{{"type":"object","required":[{}],"properties":{{{}}}}}"#,
        required.join(", "),
        properties.join(", ")
    )
}

const KEYS: [&str; 5] = ["order_id", "原因", "zip", "a", "Ä"];

proptest! {
    /// MC2: a list of tools that a server gives in any order, with schemas whose parts are in any
    /// order, gives the same bytes.
    #[test]
    fn mc2_shuffled_tools_give_the_same_bytes(
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
        keys in Just(KEYS.to_vec()).prop_shuffle(),
        required in Just(KEYS.to_vec()).prop_shuffle(),
    ) {
        let names = ["shell_发起退款", "browser_查询订单", "a", "b", "B", "file_read", "file_write", "zz"];
        let tool = |at: usize, keys: &[&str], required: &[&str]| ToolDefinition {
            name: names[at].to_owned(),
            description: format!("tool {at}"),
            parameters: schema(keys, required),
        };
        let plain: Vec<_> = (0..8).map(|at| tool(at, &KEYS, &KEYS)).collect();
        let shuffled: Vec<_> = order.iter().map(|at| tool(*at, &keys, &required)).collect();
        let expected = canonical_tools(&plain);
        prop_assert_eq!(&canonical_tools(&shuffled), &expected);
        prop_assert_eq!(&canonical_tools(&expected), &expected);
        prop_assert!(expected.is_sorted_by_key(|tool| &tool.name));
    }

    /// MC2: the canonical form means the same as the original text.
    #[test]
    fn mc2_the_form_keeps_the_value(json in value()) {
        let canonical = canonical_json(&json.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&canonical).unwrap(), json);
        prop_assert_eq!(canonical_json(&canonical).unwrap(), canonical);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}|[\u{0}-\u{20}\"\\\\中文🙂]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-c中文]{0,3}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// MC2: keys with half of a surrogate pair are equal once decoded, and none of them is lost.
#[test]
fn mc2_half_a_surrogate_pair_in_a_key_is_kept() {
    let odd = r#"{"\ud800": 1, "\ud801": 2}"#;
    let json = format!(r#"{{"b": {odd}, "a": [ 1 ]}}"#);
    assert_eq!(canonical_json(&json).unwrap(), format!(r#"{{"a":[1],"b":{odd}}}"#));
}
