//! Output schemas: the paths and types that they declare.

use super::{catalog, check, kinds};
use crate::steps::{call, mixed, object, plan, text, tool, whole};
use foldback_planner::{Catalog, FindingKind, Template, Validator};
use foldback_tool::Language;

/// ET12: a path into a known result is checked before anything runs.
#[test]
fn et12_paths_are_checked_against_the_output_schema() {
    let refer = |function, path: &[&str]| {
        let city = object([("city", text("杭州"))]);
        let refer = object([("q", whole(1, path))]);
        let steps = vec![call(1, function, city, &[]), call(2, "search", refer, &[1])];
        check(steps).iter().map(ToString::to_string).collect::<String>()
    };
    let weather = |path| refer("search_weather", path);
    for good in [&[][..], &["weather"], &["hours"], &["hours", "23"], &["hours", "0", "雨量"]] {
        assert_eq!(weather(good), "");
    }
    assert_eq!(
        weather(&["wether"]),
        "step2: `$$step1.result.wether$$`: the result has no `wether`; did you mean `weather`?"
    );
    assert_eq!(
        weather(&["city", "name"]),
        "note: step2: `$$step1.result.city.name$$`: the result does not declare `city`; it has \
         `weather`, `temperature`, `hours`"
    );
    assert!(weather(&["weather", "text"]).ends_with("is string, so it has no `text`"));
    assert!(weather(&["0"]).ends_with("the result is object, so it has no `[0]`"));
    assert!(weather(&["hours", "24"]).contains("`hours` of the result has at most 24 items"));
    let rain = weather(&["hours", "1", "风"]);
    assert!(
        rain.contains("note: ") && rain.contains("`hours[1]` of the result does not declare"),
        "{rain}"
    );
    assert!(refer("search_city", &["name"]).ends_with("the result is string, so it has no `name`"));
    // Nothing is known about a tool without an output schema.
    assert_eq!(refer("search", &["anything", "7"]), "");
}

/// ET12: whatever the schema allows is allowed: choices, references, open objects, tuples, and a
/// schema that refers to itself.
#[test]
fn et12_open_schemas_allow_what_they_allow() {
    let refer = |schema: &str, path: &[&str]| {
        let tools = [tool("a", "", Some(schema)), tool("b", "", None)];
        let tools: Catalog = tools.into_iter().collect();
        let second = object([("q", whole(1, path))]);
        let steps = vec![call(1, "a", object([]), &[]), call(2, "b", second, &[1])];
        let findings = Validator::new(&tools).plan(&mut plan(steps));
        !findings.has_errors()
    };
    let tree = r##"{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties":
        {"left": {"$ref": "#/$defs/node"}}, "additionalProperties": false}}}"##;
    assert!(refer(tree, &["left", "left", "left"]));
    assert!(!refer(tree, &["left", "left", "right"]));
    assert!(refer(r##"{"$ref": "#"}"##, &["a"]));
    let choice = r#"{"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}},
        "additionalProperties": false}]}"#;
    assert!(refer(choice, &["a", "b", "0"]));
    assert!(!refer(choice, &["b"]));
    let both = r#"{"allOf": [{"properties": {"city": {}}}, {"properties": {"zone": {}}}]}"#;
    assert!(refer(both, &["city"]) && refer(both, &["zone"]) && refer(both, &["c"]));
    assert!(!refer(both, &["Zone"]));
    for open in [
        "true",
        "{}",
        r#"{"type": "object"}"#,
        r#"{"properties": {"a": {}}, "additionalProperties": true}"#,
        r#"{"properties": {"a": {}}, "patternProperties": {"^b": {}}}"#,
        r#"{"properties": {"a": {}}, "additionalProperties": {"type": "object"}}"#,
    ] {
        assert!(refer(open, &["b", "c"]), "{open}");
    }
    let tuple = r#"{"type": "array", "prefixItems": [{"type": "object"}], "items": false}"#;
    assert!(refer(tuple, &["0", "x"]) && !refer(tuple, &["1"]));
    assert!(!refer(r#"{"items": {"type": "string"}}"#, &["3", "x"]));
    assert!(!refer("false", &["a"]));
}

/// ET12: what a schema does not declare it does not rule out, unless it says so: a note or, if the name
/// is close to a declared one, an error. Conditional parts of it are not examined.
#[test]
fn et12_undeclared_parts_are_noted() {
    let refer = |schema: &str, key: &str| {
        let tools = [tool("a", "", Some(schema)), tool("b", "", None)];
        let tools: Catalog = tools.into_iter().collect();
        let second = object([("q", whole(1, &[key]))]);
        let steps = vec![call(1, "a", object([]), &[]), call(2, "b", second, &[1])];
        kinds(&Validator::new(&tools).plan(&mut plan(steps)))
    };
    let open = r#"{"properties": {"temperature": {}, "天气": {}}}"#;
    for (key, expected) in [
        ("temperature", &[][..]),
        ("天气", &[]),
        ("wind", &[FindingKind::UndeclaredPart]),
        ("风", &[FindingKind::UndeclaredPart]),
        ("temprature", &[FindingKind::ReferencePath]),
        ("Temperature", &[FindingKind::ReferencePath]),
    ] {
        assert_eq!(refer(open, key), expected, "{key}");
    }
    let closed = r#"{"properties": {"temperature": {}}, "additionalProperties": false,
        "then": {"properties": {"wind": {}}}}"#;
    assert_eq!(refer(closed, "wind"), [FindingKind::ReferencePath]);
    for conditional in [
        r#""if": {"required": ["x"]}, "then": {"properties": {"wind": {}}}"#,
        r#""if": {"required": ["x"]}, "else": {"properties": {"wind": {}}}"#,
        r#""dependentSchemas": {"x": {"properties": {"wind": {}}}}"#,
        r##""$dynamicRef": "#more", "$defs": {"more": {"$dynamicAnchor": "more"}}"##,
    ] {
        let schema = format!(r#"{{"properties": {{"temperature": {{}}}}, {conditional}}}"#);
        assert_eq!(refer(&schema, "wind"), [], "{conditional}");
        assert_eq!(refer(&schema, "temprature"), [], "{conditional}");
        let inside = format!(r#"{{"allOf": [{{"properties": {{"x": {{}}}}}}], {conditional}}}"#);
        assert_eq!(refer(&inside, "wind"), [], "{conditional}");
    }
}

/// ET12: the type of a known part is compared with the argument's.
#[test]
fn et12_types_of_known_parts_are_compared() {
    let book = |key, path: &[&str]| {
        let city = object([("city", text("杭州"))]);
        let mut members = vec![("to".to_owned(), text("杭州东"))];
        members.retain(|(name, _)| name != key);
        members.push((String::from(key), whole(1, path)));
        let steps = vec![
            call(1, "search_weather", city, &[]),
            call(2, "book_flight", Template::Object(members), &[1]),
        ];
        check(steps).iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(book("to", &["weather"]), "");
    assert_eq!(book("seats", &["temperature"]), "");
    // A number may turn out to be whole.
    assert_eq!(book("seats", &["hours", "0", "雨量"]), "");
    // If only a text is allowed, everything is bound as text.
    assert_eq!(book("to", &["temperature"]), "");
    assert_eq!(
        book("seats", &["weather"]),
        "step2: the arguments do not fit `book_flight`: argument `seats`: \
         `$$step1.result.weather$$` has a value of type string, and \
         \"$$step1.result.weather$$\" is not of type \"integer\""
    );
    assert!(book("names", &["weather"]).contains("has a value of type string"));
}

/// ET12, ET15: a value that is inserted into code becomes code, whatever its type.
#[test]
fn et12_an_argument_in_a_language_takes_any_type() {
    let schema = r#"{"type": "object", "properties": {"code": {"type": "string"}}}"#;
    let mut python = tool("python", schema, None);
    python.languages.insert("code".to_owned(), Language::Python);
    let tools: Catalog = catalog().iter().cloned().chain([python]).collect();
    let city = object([("city", text("杭州"))]);
    let code = object([("code", mixed("x = ", 1, &["temperature"]))]);
    let steps = vec![call(1, "search_weather", city, &[]), call(2, "python", code, &[1])];
    assert!(Validator::new(&tools).plan(&mut plan(steps)).is_empty());
}
