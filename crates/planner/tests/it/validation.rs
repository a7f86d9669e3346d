//! What is reported before anything runs.

use crate::steps::{anchor, call, ids, mixed, number, object, plan, step, text, tool, whole};
use foldback_planner::{
    Action, Catalog, FindingKind, Findings, Form, Language, Limits, Plan, Progress, Schedule, Step,
    StepId, Template, ToolSpec, Validator,
};
use std::collections::BTreeMap;

/// Tools of a trip: what they take and what they answer.
fn catalog() -> Catalog {
    let city = r#"{"type": "object", "properties": {"city": {"type": "string"},
        "time": {"type": "string"}}, "required": ["city"], "additionalProperties": false}"#;
    let weather = r#"{"type": "object", "properties": {"weather": {"type": "string"},
        "temperature": {"type": "integer"}, "hours": {"type": "array", "items":
        {"type": "object", "properties": {"雨量": {"type": "number"}}}, "maxItems": 24}}}"#;
    let flight = r#"{"type": "object", "properties": {"to": {"type": "string", "minLength": 3},
        "seats": {"type": "integer", "minimum": 1}, "names": {"type": "array",
        "items": {"type": "string"}, "minItems": 1}}, "required": ["to"]}"#;
    let tools = [
        tool("search", "{}", None),
        tool("search_weather", city, Some(weather)),
        tool("search_city", r#"{"type": "object"}"#, Some(r#"{"type": "string"}"#)),
        tool("book_flight", flight, None),
        tool("订餐厅", r#"{"type": "object"}"#, None),
    ];
    tools.into_iter().collect()
}

fn check(steps: Vec<Step>) -> Findings {
    Validator::new(&catalog()).plan(&mut plan(steps))
}

fn kinds(findings: &Findings) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

fn only(findings: &Findings) -> String {
    assert_eq!(findings.len(), 1, "{findings}");
    findings.iter().map(ToString::to_string).collect()
}

/// OP6, N5: all errors of a plan are reported at once, in the order of its steps.
#[test]
fn op6_all_errors_are_reported_at_once() {
    let findings = check(vec![
        call(1, "serach_weather", object([]), &[]),
        call(2, "search_weather", object([("city", number("5")), ("zone", text("x"))]), &[]),
        step(2, &[]),
        step(3, &[3]),
        step(4, &[9]),
        step(5, &[6]),
        step(6, &[]),
        step(7, &[8]),
        step(8, &[7]),
        call(9, "search", object([("q", whole(1, &[])), ("r", whole(9, &[]))]), &[]),
        call(10, "search", object([("q", whole(11, &[]))]), &[]),
        anchor(11, &[]),
        call(12, "search", object([("q", whole(11, &[]))]), &[11]),
    ]);
    assert_eq!(
        findings.to_string(),
        "- these steps wait for each other and would never start: step7 -> step8 -> step7
- step1: there is no function `serach_weather`; did you mean `search_weather`?
- step2: this number stands twice; expected each number once
- step2: the arguments do not fit `search_weather`: argument `city`: 5 is not of type \"string\"
- step2: the arguments do not fit `search_weather`: the arguments: Additional properties are not \
allowed ('zone' was unexpected)
- step3: it waits for itself
- step4: it waits for step9, which comes later; expected a step with a lower number
- step5: it waits for step6, which comes later; expected a step with a lower number
- step9: it refers to its own result
- note: step9: it refers to the result of step1, so it waits for it; the dependence was added
- step10: it refers to the result of step11, which comes later; expected a step with a lower number
- note: step10: it refers to the result of step11, so it waits for it; the dependence was added
- step12: it refers to the result of step11; an anchor has no result; what follows from it belongs \
in the plan that is made then
"
    );
    assert!(findings.has_errors());
    assert_eq!(findings.notes().count(), 2);
}

/// OP6: the same plan as a program sees it.
#[test]
fn op6_findings_have_kinds_and_steps() {
    let findings = check(vec![step(1, &[7]), step(2, &[3]), step(3, &[2]), step(4, &[5])]);
    let found: Vec<_> = findings.iter().map(|f| (f.step.map(|step| step.0), f.kind)).collect();
    let expected = [
        (None, FindingKind::Cycle),
        (Some(1), FindingKind::UnknownStep),
        (Some(4), FindingKind::UnknownStep),
    ];
    assert_eq!(found, expected);
}

/// OP6, N5: a plan without errors has none, and a plan of one step is a plan.
#[test]
fn op6_a_good_plan_has_no_findings() {
    let weather = object([("city", text("杭州")), ("time", text("18:00"))]);
    assert!(check(vec![call(1, "search_weather", weather, &[]), anchor(2, &[1])]).is_empty());
    assert!(check(vec![call(1, "search", object([]), &[])]).is_empty());
    assert!(check(Vec::new()).is_empty());
}

/// OP6: a misspelt function is answered with the nearest one, in any script; one that is like none
/// with those that there are.
#[test]
fn op6_the_nearest_function_is_named() {
    let message = |name: &str| only(&check(vec![call(1, name, object([]), &[])]));
    assert!(message("订餐馆").ends_with("did you mean `订餐厅`?"));
    assert!(message("Search-Weather").ends_with("did you mean `search_weather`?"));
    assert!(message("weather").ends_with("did you mean `search_weather`?"));
    assert!(message("delete_everything").contains("there are `book_flight`, `search`"));
    // Names are compared up to 64 characters.
    let long = |length: usize| format!("{}weather", "search_".repeat(length / 7));
    let tools: Catalog = [tool(&long(56), "", None)].into_iter().collect();
    assert_eq!(tools.nearest(&long(49)), Some(long(56).as_str()));
    assert_eq!(tools.nearest(&long(63)), None);
    // Neither a long name nor one that is all punctuation takes long or fails.
    assert!(message(&"长".repeat(100_000)).chars().count() < 300);
    assert!(message("!!!").contains("there is no function `!!!`"));
}

/// OP5: a reference without a dependence adds it, and says so; a dependence without a reference
/// stays.
#[test]
fn op5_a_reference_adds_its_dependence() {
    let mut plan = plan(vec![
        step(1, &[]),
        step(2, &[]),
        call(3, "book_flight", object([("to", whole(2, &[]))]), &[1]),
    ]);
    let findings = Validator::new(&catalog()).plan(&mut plan);
    assert_eq!(kinds(&findings), [FindingKind::AddedDependence]);
    assert!(!findings.has_errors());
    assert_eq!(plan.steps[2].after, ids(&[1, 2]));
    assert_eq!(
        plan.to_string(),
        "step1 = search {}\nstep2 = search {}\n\
         step3 = book_flight {\"to\": \"$$step2.result$$\"} after step1, step2\n"
    );
    assert!(Validator::new(&catalog()).plan(&mut plan).is_empty());
}

/// OP6: what a reference brings is not known, so what depends on it is not reported; everything else
/// about the arguments is.
#[test]
fn op6_arguments_are_checked_around_references() {
    let book = |arguments| {
        let steps = vec![step(1, &[]), call(2, "book_flight", arguments, &[1])];
        let mut found: Vec<_> = check(steps).iter().map(ToString::to_string).collect();
        found.sort();
        found
    };
    assert!(book(object([("to", whole(1, &[])), ("seats", whole(1, &["n"]))])).is_empty());
    assert!(book(object([("to", mixed("", 1, &[]))])).is_empty());
    assert!(book(object([("to", whole(1, &[])), ("names", whole(1, &[]))])).is_empty());
    let names = Template::Array(vec![whole(1, &[]), number("7")]);
    let found = book(object([("to", text("杭")), ("names", names), ("seats", whole(1, &[]))]));
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("argument `names[1]`: 7 is not of type \"string\""), "{found:?}");
    assert!(found[1].contains("argument `to`: \"杭\" is shorter than 3 characters"), "{found:?}");
    let found = book(object([("seats", whole(1, &[]))]));
    assert!(found[0].ends_with("the arguments: \"to\" is a required property"), "{found:?}");
    // A text with a reference in it can only be a text.
    let found = book(object([("to", text("杭州东")), ("seats", mixed("about ", 1, &[]))]));
    assert!(found[0].contains("argument `seats`: a text with a reference in it"), "{found:?}");
}

/// OP6: a reference is known by where it stands, whatever the keys look like: digits are a place in an
/// array and a key in an object.
#[test]
fn op6_references_are_found_under_any_key() {
    let schema = r#"{"type": "object", "properties": {"map": {"type": "object",
        "additionalProperties": {"type": "integer"}}, "list": {"type": "array",
        "items": {"type": "integer"}}}}"#;
    let tools = [tool("search", "", None), tool("sum", schema, None)];
    let tools: Catalog = tools.into_iter().collect();
    let check = |arguments| {
        let steps = vec![step(1, &[]), call(2, "sum", arguments, &[1])];
        Validator::new(&tools).plan(&mut plan(steps))
    };
    for key in ["2024", "0", "01", "-1", "a/b", "~", "~1", "a~0b", "城 市", "", "a.b", "[0]"] {
        let of = |value| object([("map", object([(key, value)]))]);
        assert!(check(of(whole(1, &[]))).is_empty(), "{key}");
        assert_eq!(check(of(text("七"))).len(), 1, "{key}");
    }
    let wrong = check(object([("map", object([("2024", text("七")), ("2025", whole(1, &[]))]))]));
    assert!(only(&wrong).contains("argument `map.2024`: \"七\" is not of type"), "{wrong}");
    let list = Template::Array(vec![whole(1, &[]), text("七")]);
    let wrong = check(object([("list", list)]));
    assert!(only(&wrong).contains("argument `list[1]`: \"七\" is not of type"), "{wrong}");
}

/// OP6: a number that nothing can read is called that.
#[test]
fn op6_a_number_out_of_range_is_called_that() {
    let schema = r#"{"type": "object", "properties": {"num": {"type": "number"}}}"#;
    let tools: Catalog = [tool("go", schema, None)].into_iter().collect();
    let check = |json: &str| {
        let steps = vec![call(1, "go", object([("num", number(json))]), &[])];
        Validator::new(&tools).plan(&mut plan(steps))
    };
    for good in ["1e308", "-1.5", "123456789012345678901234567890"] {
        assert!(check(good).is_empty(), "{good}");
    }
    assert_eq!(
        only(&check("1e999")),
        "step1: the arguments do not fit `go`: the number `1e999` is out of range; expected one of \
         at most 1.7976931348623157e308"
    );
}

/// ET6: where no value could stand is reported with everything else: in a plan, in a step that comes
/// alone and in a plan that goes on.
#[test]
fn et6_places_that_take_no_value_are_reported() {
    let mut shell = tool("shell", r#"{"type": "object"}"#, None);
    shell.languages.insert("command".to_owned(), Language::Shell);
    let tools: Catalog = [tool("search", "", None), shell].into_iter().collect();
    let validator = Validator::new(&tools);
    let run = |id| call(id, "shell", object([("command", mixed("echo \"$", 1, &["城"]))]), &[1]);
    let message = "step2: `$$step1.result.城$$` in the argument `command`: it stands directly behind \
                   a `$`; expected it as an argument of a command";
    let first = plan(vec![step(1, &[])]);
    assert_eq!(only(&validator.plan(&mut plan(vec![step(1, &[]), run(2)]))), message);
    assert_eq!(only(&validator.step(&first, &mut run(2))), message);
    let mut schedule = Schedule::new(&first).unwrap();
    schedule.start(StepId(1)).unwrap();
    schedule.finish(StepId(1)).unwrap();
    let progress = Progress::new(&first.steps, &schedule, &BTreeMap::new());
    let merged = progress.merge(plan(vec![run(2)]), &validator);
    assert!(merged.findings.to_string().contains(message), "{}", merged.findings);
}

/// OP6: what a schema says under a condition, as a choice or about values is left to the run where a
/// reference may decide it.
#[test]
fn op6_conditions_and_choices_wait_for_the_value() {
    let schema = r#"{"type": "object",
        "properties": {"mode": {"enum": ["fast", "slow"]}, "at": {"anyOf": [{"type": "integer"},
            {"type": "null"}]}, "list": {"type": "array", "uniqueItems": true}},
        "if": {"anyOf": [{"properties": {"mode": {"const": "fast"}}, "required": ["mode"]},
            {"properties": {"kind": {"type": "string"}}, "required": ["kind"]}]},
        "then": {"required": ["at"]}}"#;
    let tools: Catalog = [tool("search", "", None), tool("go", schema, None)].into_iter().collect();
    let check = |arguments| {
        let steps = vec![step(1, &[]), call(2, "go", arguments, &[1])];
        Validator::new(&tools).plan(&mut plan(steps))
    };
    assert_eq!(check(object([("mode", text("fast"))])).len(), 1);
    assert!(check(object([("mode", whole(1, &[]))])).is_empty());
    assert!(check(object([("at", whole(1, &[]))])).is_empty());
    assert_eq!(check(object([("at", text("x"))])).len(), 1);
    // A text may be what the condition is about, or not.
    assert_eq!(check(object([("kind", text("x"))])).len(), 1);
    assert!(check(object([("kind", whole(1, &[]))])).is_empty());
    let twice = |item: fn() -> Template| object([("list", Template::Array(vec![item(), item()]))]);
    assert_eq!(check(twice(|| number("1"))).len(), 1);
    assert!(check(twice(|| whole(1, &[]))).is_empty());
}

/// OP6: a name that is nearly an argument's is answered with it, inside objects too.
#[test]
fn op6_the_nearest_argument_is_named() {
    let schema = r##"{"type": "object", "properties": {"where": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "properties": {"城市名": {}},
        "additionalProperties": false}}}"##;
    let tools: Catalog = [tool("go", schema, None)].into_iter().collect();
    let place = object([("where", object([("城市", text("杭州"))]))]);
    let findings = Validator::new(&tools).plan(&mut plan(vec![call(1, "go", place, &[])]));
    let message = only(&findings);
    assert!(message.contains("argument `where`: Additional properties"), "{message}");
    assert!(message.ends_with("instead of `城市`, did you mean `城市名`?"), "{message}");
}

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
        "note: step2: `$$step1.result.city.name$$`: the result is not said to have `city`; it has \
         `weather`, `temperature`, `hours`"
    );
    assert!(weather(&["weather", "text"]).ends_with("is string, it has no `text`"));
    assert!(weather(&["0"]).ends_with("the result is object, it has no `[0]`"));
    assert!(weather(&["hours", "24"]).contains("`hours` of the result has at most 24 items"));
    let rain = weather(&["hours", "1", "风"]);
    assert!(
        rain.contains("note: ") && rain.contains("`hours[1]` of the result is not said"),
        "{rain}"
    );
    assert!(refer("search_city", &["name"]).ends_with("the result is string, it has no `name`"));
    // Of a tool without an output schema nothing is known.
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

/// ET12: what a schema does not declare it does not rule out, unless it says so: a note, or where the
/// name is nearly a declared one, an error. What it says on conditions is not looked into.
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
    // Where a text is wanted, and nothing else, everything is bound as text.
    assert_eq!(book("to", &["temperature"]), "");
    assert_eq!(
        book("seats", &["weather"]),
        "step2: the arguments do not fit `book_flight`: argument `seats`: \
         `$$step1.result.weather$$` brings a value of type string, and \
         \"$$step1.result.weather$$\" is not of type \"integer\""
    );
    assert!(book("names", &["weather"]).contains("brings a value of type string"));
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

fn in_blocks(steps: Vec<Step>) -> Findings {
    let mut plan = Plan { form: Form::ExecuteTools, steps };
    let before = plan.clone();
    let findings = Validator::new(&catalog()).plan(&mut plan);
    assert_eq!(plan, before);
    findings
}

/// ET5: in `<execute_tools>` a reference to a sibling in a parallel block is an error, and adds no
/// dependence; one to anything that surely ended before is none.
#[test]
fn et5_a_reference_to_a_sibling_is_an_error() {
    let refer = |id, to, after: &[u32]| call(id, "search", object([("q", whole(to, &[]))]), after);
    let message = only(&in_blocks(vec![step(1, &[]), refer(2, 1, &[])]));
    assert_eq!(
        message,
        "the call at index 1: it refers to the result of the call at index 0, which may run at the \
         same time; put both in a <sequential>, or leave the reference out"
    );
    assert!(in_blocks(vec![step(1, &[]), refer(2, 1, &[1])]).is_empty());
    // Through others, across a parallel block.
    let steps = vec![step(1, &[]), step(2, &[1]), step(3, &[1]), refer(4, 1, &[2, 3])];
    assert!(in_blocks(steps).is_empty());
    let steps = vec![step(1, &[]), step(2, &[1]), refer(3, 2, &[1]), refer(4, 3, &[2])];
    let findings = in_blocks(steps);
    assert_eq!(kinds(&findings), [FindingKind::Unordered, FindingKind::Unordered]);
}

/// ET5: a reference to the call itself, to a later one and out of range.
#[test]
fn et5_references_forward_and_out_of_range_are_errors() {
    let refer = |id, to, after: &[u32]| call(id, "search", object([("q", whole(to, &[]))]), after);
    let findings = in_blocks(vec![refer(1, 2, &[]), refer(2, 2, &[1]), refer(3, 8, &[2])]);
    let expected =
        [FindingKind::ForwardDependence, FindingKind::SelfDependence, FindingKind::UnknownStep];
    assert_eq!(kinds(&findings), expected);
    let last = findings.iter().last().unwrap().to_string();
    assert!(
        last.contains("refers to the result of the call at index 7, which is not in"),
        "{last}"
    );
}

/// ET5: the check is exact however many calls and references there are.
#[test]
fn et5_many_references_are_checked() {
    // A chain beside a chain: even steps after even ones, odd after odd.
    let steps: Vec<Step> = (1..=400)
        .map(|id| {
            let after: &[u32] = if id > 2 { &[id - 2] } else { &[] };
            let to = if id > 200 { id - 199 } else { 0 };
            let arguments =
                if to == 0 { object([]) } else { object([("q", whole(to - id % 2, &[]))]) };
            call(id, "search", arguments, after)
        })
        .collect();
    let findings = in_blocks(steps);
    // Even steps refer to odd ones, odd steps (199 back, one less) to odd ones.
    let wrong: Vec<u32> = findings.iter().filter_map(|f| f.step).map(|step| step.0).collect();
    assert_eq!(wrong, (201..=400).filter(|id| id % 2 == 0).collect::<Vec<_>>());
}

/// OP6: a tool whose schema cannot be used is reported once, apart from the steps; one whose output
/// schema cannot be used is noted.
#[test]
fn op6_a_bad_tool_schema_is_its_own_finding() {
    let bad = |name, input, output| tool(name, input, output);
    let tools: Catalog = [
        bad("a", r#"{"type": "strnig"}"#, None),
        bad("b", "{", None),
        bad("c", "{}", Some("[]")),
        bad("d", r#"{"$ref": "https://example.com/schema.json"}"#, None),
    ]
    .into_iter()
    .collect();
    let steps =
        ["a", "b", "c", "d", "a"].iter().zip(1..).map(|(name, id)| call(id, name, object([]), &[]));
    let findings = Validator::new(&tools).plan(&mut plan(steps.collect()));
    let found: Vec<_> = findings.iter().map(|finding| (finding.step, finding.kind)).collect();
    let expected = [
        (None, FindingKind::ToolSchema),
        (None, FindingKind::ToolSchema),
        (None, FindingKind::ToolSchema),
        (None, FindingKind::OutputSchema),
    ];
    assert_eq!(found, expected, "{findings}");
    assert!(findings.to_string().contains("the schema of `b` cannot be used: it is not JSON"));
}

/// S10: plans over a bound are refused: steps, dependences, bytes and nesting of arguments.
#[test]
fn s10_plans_over_a_bound_are_refused() {
    let catalog = catalog();
    let limits =
        Limits { steps: 3, dependences: 1, argument_bytes: 20, depth: 3, ..Limits::default() };
    let check = |steps| {
        let findings = Validator::new(&catalog).within(limits).plan(&mut plan(steps));
        let text = findings.to_string();
        assert!(findings.iter().all(|finding| finding.kind == FindingKind::OverLimit), "{text}");
        text
    };
    assert_eq!(check(vec![step(1, &[]), step(2, &[1]), step(3, &[2])]), "");
    assert_eq!(
        check((1..=4).map(|id| step(id, &[])).collect()),
        "- the plan has 4 steps; at most 3 are allowed\n"
    );
    assert_eq!(
        check(vec![step(1, &[]), step(2, &[]), step(3, &[1, 2])]),
        "- step3 has 2 steps to wait for; at most 1 are allowed\n"
    );
    // Counted in bytes: seven characters of three bytes each.
    let long = call(1, "search", object([("", text("春晚分会场在哪"))]), &[]);
    assert_eq!(check(vec![long]), "- step1 has 21 bytes of arguments; at most 20 are allowed\n");
    // So is the task of an anchor.
    let mut late = anchor(2, &[1]);
    late.action = Action::Anchor { task: "看结果再决定".to_owned() };
    assert_eq!(check(vec![step(1, &[]), late.clone()]), "");
    late.action = Action::Anchor { task: "看结果再决定吧".to_owned() };
    let long = "- step2 has 21 bytes of arguments; at most 20 are allowed\n";
    assert_eq!(check(vec![step(1, &[]), late]), long);
    let nested = |depth| (1..depth).fold(object([]), |inner, _| object([("a", inner)]));
    assert_eq!(check(vec![call(1, "search", nested(3), &[])]), "");
    let deep = call(1, "search", nested(4), &[]);
    assert_eq!(check(vec![deep]), "- step1 has 4 levels of nesting; at most 3 are allowed\n");
}

/// OP8: a step of a plan that is still being written is checked by what came before it.
#[test]
fn op8_a_step_is_checked_as_it_comes() {
    let catalog = catalog();
    let validator = Validator::new(&catalog);
    let city = object([("city", text("杭州"))]);
    let so_far = plan(vec![call(1, "search_weather", city, &[])]);
    let mut good = call(3, "search", object([("q", whole(1, &["weather"]))]), &[2]);
    let findings = validator.step(&so_far, &mut good);
    assert_eq!(kinds(&findings), [FindingKind::AddedDependence]);
    assert_eq!(good.after, ids(&[1, 2]));
    let mut bad = call(3, "serach", object([("q", whole(1, &["wether"]))]), &[1, 3, 4]);
    let expected = [
        FindingKind::UnknownFunction,
        FindingKind::SelfDependence,
        FindingKind::ForwardDependence,
        FindingKind::ReferencePath,
    ];
    let findings = validator.step(&so_far, &mut bad);
    let mut found = kinds(&findings);
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// B12: steps are ordered by number (`step10` after `step2`), also in a plan that was put together by
/// hand; of two with one number neither wins silently.
#[test]
fn b12_steps_are_ordered_by_number() {
    let mut plan = plan(vec![step(10, &[2, 1, 2]), step(2, &[]), step(1, &[])]);
    assert!(Validator::new(&catalog()).plan(&mut plan).is_empty());
    assert_eq!(plan.steps.iter().map(|step| step.id.0).collect::<Vec<_>>(), [1, 2, 10]);
    assert_eq!(plan.step(StepId(10)).unwrap().after, ids(&[1, 2]));
    let findings = check(vec![step(2, &[]), step(1, &[]), step(2, &[1])]);
    assert_eq!(kinds(&findings), [FindingKind::DuplicateStep]);
    assert!(findings.has_errors());
}

/// Arguments that are no object are refused, unless a reference brings them.
#[test]
fn arguments_are_an_object() {
    let search = |arguments| check(vec![step(1, &[]), call(2, "search", arguments, &[1])]);
    assert!(only(&search(number("7"))).ends_with("they are a number; expected an object"));
    assert!(only(&search(Template::Array(vec![]))).contains("they are an array"));
}

/// A tool of which the catalog holds clones is compiled once for all of them.
#[test]
fn catalogs_are_shared() {
    let tools: Vec<ToolSpec> = catalog().iter().cloned().collect();
    let one: Catalog = tools.into_iter().collect();
    let other = one.clone();
    let bad = || plan(vec![call(1, "book_flight", object([]), &[])]);
    assert_eq!(Validator::new(&one).plan(&mut bad()), Validator::new(&other).plan(&mut bad()));
}

/// OP6: thousands of references beside thousands of mismatches are told apart, and the list of
/// mismatches is bounded.
#[test]
fn op6_many_mismatches_are_bounded() {
    let schema = r#"{"type": "object", "properties": {"数": {"type": "array",
        "items": {"type": "integer"}}}}"#;
    let tools: Catalog =
        [tool("search", "", None), tool("sum", schema, None)].into_iter().collect();
    let items = |wrong: usize| {
        let refers = (0..10_000).map(|_| whole(1, &["n"]));
        Template::Array(refers.chain((0..wrong).map(|_| text("七"))).collect())
    };
    let check = |wrong| {
        let steps = vec![step(1, &[]), call(2, "sum", object([("数", items(wrong))]), &[1])];
        Validator::new(&tools).plan(&mut plan(steps))
    };
    assert!(check(0).is_empty());
    let one = only(&check(1));
    assert!(one.contains("argument `数[10000]`: \"七\" is not of type"), "{one}");
    let findings = check(10_000);
    assert_eq!(findings.len(), 51);
    assert!(findings.iter().last().unwrap().message.ends_with(": and more"));
}
