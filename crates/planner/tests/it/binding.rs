//! References filled in.

use crate::steps::tool;
use foldback_planner::{
    Action, BindError, Catalog, Failure, Intent, Limits, PathSegment, Results, StepId, StepResult,
    Template, parse_one_plan,
};
use foldback_tool::{Data, FailureKind, Language, ToolSpec};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The arguments of a step, written as OnePlan writes them.
fn arguments(json: &str) -> Template {
    let text = format!(r#"{{"action_plan": {{"step9": {{"function": "f", "args": {json}}}}}}}"#);
    let one_plan = parse_one_plan(&text).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert!(!one_plan.findings.has_errors(), "{}", one_plan.findings);
    let Intent::Plan(mut plan) = one_plan.intent else { panic!("a plan") };
    let Action::Call { arguments, .. } = plan.steps.remove(0).action else { panic!("a call") };
    arguments
}

fn success(text: &str) -> StepResult {
    StepResult::Success { data: Data { text: text.to_owned(), structured: None } }
}

fn structured(json: &str) -> StepResult {
    let data = Data { text: "as a model reads it".to_owned(), structured: Some(json.to_owned()) };
    StepResult::Success { data }
}

/// Results of step 1, 2 and so on.
fn results(results: &[StepResult]) -> BTreeMap<StepId, StepResult> {
    (1..).map(StepId).zip(results.iter().cloned()).collect()
}

/// Bound arguments of an unknown function.
fn bind(arguments: &Template, results: &impl Results) -> Result<String, BindError> {
    Catalog::default().bind("f", arguments, results, Limits::default().bound_bytes)
}

/// Bound arguments of a tool.
fn bind_for(tool: ToolSpec, json: &str, given: &[StepResult]) -> Result<String, BindError> {
    let (name, most) = (tool.name().to_owned(), Limits::default().bound_bytes);
    let catalog: Catalog = [tool].into_iter().collect();
    catalog.bind(&name, &arguments(json), &results(given), most)
}

#[track_caller]
fn check(json: &str, given: &[StepResult], expected: &str) {
    let bound = bind(&arguments(json), &results(given));
    assert_eq!(bound.as_deref(), Ok(expected), "{json}");
    let as_json: Result<serde_json::Value, _> = serde_json::from_str(expected);
    assert!(as_json.is_ok(), "{expected}");
}

/// OP3: a whole value keeps its type and the exact text of its number; in a text it becomes text.
#[test]
fn op3_whole_values_keep_their_type() {
    for (value, whole, embedded) in [
        ("1.50", "1.50", "1.50"),
        ("12345678901234567890123", "12345678901234567890123", "12345678901234567890123"),
        ("-1e-7", "-1e-7", "-1e-7"),
        ("true", "true", "true"),
        ("null", "null", "null"),
        ("\"杭\\u5dde \\\"x\\\"\"", "\"杭\\u5dde \\\"x\\\"\"", "杭州 \\\"x\\\""),
        ("[1, \"a b\"]", "[1,\"a b\"]", "[1,\\\"a b\\\"]"),
        ("{\"z\": 1.0,\n \"a\": [ ]}", "{\"z\":1.0,\"a\":[]}", "{\\\"z\\\":1.0,\\\"a\\\":[]}"),
    ] {
        let given = [structured(value)];
        check(r#"{"a": "$$step1.result$$"}"#, &given, &format!("{{\"a\":{whole}}}"));
        let text = format!("{{\"a\":\"= {embedded};\"}}");
        check(r#"{"a": "= $$step1.result$$;"}"#, &given, &text);
    }
}

/// OP3: in a text answer, objects and arrays count as JSON, and everything else is text.
#[test]
fn op3_a_bare_text_stays_text() {
    for (text, whole) in [
        ("沈阳", "\"沈阳\""),
        ("007", "\"007\""),
        ("170", "\"170\""),
        ("true", "\"true\""),
        ("\"quoted\"", "\"\\\"quoted\\\"\""),
        ("{not json}", "\"{not json}\""),
        (" {\"a\": 1}\n", "{\"a\":1}"),
        ("[\"é\", \"👍\"]", "[\"é\",\"👍\"]"),
        ("", "\"\""),
    ] {
        check(r#"{"a": "$$step1.result$$"}"#, &[success(text)], &format!("{{\"a\":{whole}}}"));
    }
}

/// OP3, ET14: an argument that is a string by its schema gets a whole value as text; the body of
/// `<tool>{results[0].data.id}</tool>` is one of these.
#[test]
fn et14_an_argument_that_is_a_string_gets_text() {
    let schema = r##"{"type": "object", "properties": {"s": {"type": "string"},
        "n": {"type": "number"}, "either": {"type": ["string", "number"]}, "any": {},
        "ref": {"$ref": "#/$defs/s"}, "list": {"type": "array", "items": {"type": "string"}},
        "in": {"type": "object", "properties": {"城": {"type": "string"}}}},
        "$defs": {"s": {"type": "string"}}}"##;
    let bound = |json: &str, value: &str| {
        let json = json.replace('@', "\"$$step1.result$$\"");
        bind_for(tool("f", schema, None), &json, &[structured(value)]).expect("bound")
    };
    assert_eq!(bound(r#"{"s": @}"#, "1.50"), r#"{"s":"1.50"}"#);
    assert_eq!(bound(r#"{"s": @}"#, "[1, \"城\"]"), r#"{"s":"[1,\"城\"]"}"#);
    assert_eq!(bound(r#"{"s": @}"#, "\"城\""), r#"{"s":"城"}"#);
    for key in ["n", "either", "any", "other"] {
        assert_eq!(bound(&format!("{{\"{key}\": @}}"), "1.50"), format!("{{\"{key}\":1.50}}"));
    }
    // Wherever the schema says so.
    assert_eq!(
        bound(r#"{"ref": @, "list": [@], "in": {"城": @, "市": @}}"#, "1.50"),
        r#"{"ref":"1.50","list":["1.50"],"in":{"城":"1.50","市":1.50}}"#
    );
}

/// OP3: if a tool's whole answer becomes text, it is the tool's own, byte for byte, although it could
/// be read as JSON.
#[test]
fn op3_a_text_that_becomes_text_stays_as_it_is() {
    let schema = r#"{"type": "object", "properties": {"content": {"type": "string"}}}"#;
    let file = "{\n  \"城\": 1,\n  \"b\": [1, 2]\n}\n";
    let given = [success(file)];
    let bound = |json: &str| -> serde_json::Value {
        let bound = bind_for(tool("write", schema, None), json, &given).expect("bound");
        serde_json::from_str(&bound).expect("JSON")
    };
    assert_eq!(bound(r#"{"content": "$$step1.result$$"}"#)["content"], file);
    assert_eq!(bound(r#"{"m": "= $$step1.result$$;"}"#)["m"], format!("= {file};"));
    // If JSON is allowed it is JSON, and so is a part.
    assert_eq!(bound(r#"{"any": "$$step1.result$$"}"#)["any"]["城"], 1);
    assert_eq!(bound(r#"{"content": "$$step1.result.b$$"}"#)["content"], "[1,2]");
    let mut shell = tool("write", schema, None);
    shell.languages.insert("content".to_owned(), Language::Shell);
    let json = r#"{"content": "echo $$step1.result$$"}"#;
    let bound = bind_for(shell, json, &given).expect("bound");
    let bound: serde_json::Value = serde_json::from_str(&bound).expect("JSON");
    assert_eq!(bound["content"], format!("echo '{file}'"));
}

/// S10: a few references can expand to far more than may be sent: that is refused with the bound, as
/// soon as it is exceeded.
#[test]
fn s10_bound_arguments_are_bounded() {
    let items = vec![r#""$$step1.result$$""#; 4_000].join(",");
    let many = arguments(&format!(r#"{{"x": [{items}]}}"#));
    let results = results(&[success(&"很".repeat(30_000))]);
    let error = bind(&many, &results).expect_err("360 MB");
    assert_eq!(error, BindError::TooLarge { limit: 16 << 20 });
    assert_eq!(error.failure().kind, FailureKind::Quota);
    assert!(error.to_string().contains("the limit of 16777216 bytes"), "{error}");
    // The bound is exact, for whole values, for texts and for literal parts.
    for (json, bytes) in [
        (r#"{"a": "$$step1.result$$"}"#, 90_008),
        (r#"{"a": "= $$step1.result$$"}"#, 90_010),
        (r#"{"a": [1, "很"]}"#, 15),
    ] {
        let bind = |most| Catalog::default().bind("f", &arguments(json), &results, most);
        assert_eq!(bind(bytes).map(|bound| bound.len()), Ok(bytes), "{json}");
        assert_eq!(bind(bytes - 1), Err(BindError::TooLarge { limit: bytes - 1 }), "{json}");
    }
}

/// S10: a step's answer is parsed once for all references to it.
#[test]
fn s10_each_result_is_read_once() {
    struct Counted(BTreeMap<StepId, StepResult>, Cell<usize>);

    impl Results for Counted {
        fn result(&self, step: StepId) -> Option<&StepResult> {
            self.1.set(self.1.get() + 1);
            self.0.get(&step)
        }
    }

    let numbers = vec!["1234567"; 20_000].join(",");
    let results = results(&[success(&format!("{{\"数\": [{numbers}]}}")), success("[[1], 2]")]);
    // Reading 160 kB for each of the references would be 10^10 steps.
    let items = vec![r#""$$step1.result.数[19999]$$", "$$step2.result[0][0]$$""#; 20_000].join(",");
    let counted = Counted(results, Cell::new(0));
    let bound = bind(&arguments(&format!(r#"{{"x": [{items}]}}"#)), &counted).expect("bound");
    assert!(bound.starts_with(r#"{"x":[1234567,1,1234567,1,"#));
    assert_eq!(counted.1.get(), 2);
}

/// OP4: paths into objects and arrays; a key of digits is an index in an array.
#[test]
fn op4_paths_lead_into_results() {
    let given = [structured(
        r#"{"rates": {"Exchange Rate": [7.10, {"汇率": "x"}]}, "a.b": 1, "0": "zero", "": null,
            "n": [[1, 2], [3]], "twice": 1, "twice": 2}"#,
    )];
    for (path, expected) in [
        (r#".rates["Exchange Rate"][0]"#, "7.10"),
        (r#".rates["Exchange Rate"].1.汇率"#, "\"x\""),
        (r#"["a.b"]"#, "1"),
        (".0", "\"zero\""),
        ("['']", "null"),
        (".n[1]", "[3]"),
        (".n[0][1]", "2"),
        (".twice", "2"),
    ] {
        let reference = serde_json::to_string(&format!("$$step1.result{path}$$")).expect("text");
        check(&format!("{{\"a\": {reference}}}"), &given, &format!("{{\"a\":{expected}}}"));
    }
}

/// OP4: several references in one text, as in the plans of NESTFUL.
#[test]
fn op4_several_references_in_one_text() {
    let given = [structured(r#"{"localtime": "09:00"}"#), success("21:30")];
    check(
        r#"{"q": "$$step1.result.localtime$$ - $$step2.result$$", "deep": [{"x": "$$step2.result$$"}]}"#,
        &given,
        r#"{"q":"09:00 - 21:30","deep":[{"x":"21:30"}]}"#,
    );
}

/// B4, N4: LLMCompiler makes `quote: price is SECRET only` of this.
#[test]
fn b4_what_is_inserted_is_never_read_again() {
    let given = [success("SECRET"), success("price is $$step1.result$$ only")];
    check(
        r#"{"a": "quote: $$step2.result$$", "b": "$$step2.result$$"}"#,
        &given,
        r#"{"a":"quote: price is $$step1.result$$ only","b":"price is $$step1.result$$ only"}"#,
    );
    // Nor does a reference arise where two texts meet.
    let given = [success("$$step2.res"), success("SECRET")];
    check(r#"{"a": "$$step1.result$$ult$$"}"#, &given, r#"{"a":"$$step2.result$$"}"#);
}

/// B6: ReWOO replaces `#E1` inside `#E10`.
#[test]
fn b6_step1_is_not_found_in_step10() {
    let texts: Vec<StepResult> = (1..=12).map(|number| success(&format!("r{number}"))).collect();
    check(
        r#"{"a": "$$step1.result$$ $$step10.result$$ $$step11.result$$ $$step12.result$$"}"#,
        &texts,
        r#"{"a":"r1 r10 r11 r12"}"#,
    );
}

/// ET11, OP4, N4: a missing part is an error of its own kind that names what exists.
#[test]
fn et11_a_missing_part_names_the_step_the_path_and_the_keys() {
    let fail = |json: &str, given: StepResult| {
        let error = bind(&arguments(json), &results(&[given])).expect_err("no such part");
        let BindError::NoSuchPart { reference, .. } = &error else { panic!("{error:?}") };
        assert_eq!(reference.step, StepId(1));
        assert_eq!(error.failure().kind, FailureKind::MissingPart);
        error.to_string()
    };
    let given = || structured(r#"{"rates": {"美元": [7.1], "b c": 2}}"#);
    assert_eq!(
        fail(r#"{"a": "$$step1.result.rates.eur$$"}"#, given()),
        "`$$step1.result.rates.eur$$`: the result of step1.rates has no `.eur`; there is an object \
         with `美元`, `b c`"
    );
    assert_eq!(
        fail(r#"{"a": "$$step1.result.rates.美元[3]$$"}"#, given()),
        "`$$step1.result.rates.美元[3]$$`: the result of step1.rates.美元 has no `[3]`; there is an \
         array of 1"
    );
    assert_eq!(
        fail(r#"{"a": "$$step1.result.rates[\"b c\"].x$$"}"#, given()),
        "`$$step1.result.rates[\"b c\"].x$$`: the result of step1.rates[\"b c\"] has no `.x`; there \
         is `2`"
    );
    assert_eq!(
        fail(r#"{"a": "$$step1.result.city$$"}"#, success("沈阳")),
        "`$$step1.result.city$$`: the result of step1 has no `.city`; there is a text of 2 characters"
    );
    let error = bind(&arguments(r#"{"a": "$$step2.result[0]$$"}"#), &results(&[given()]));
    let error = error.expect_err("no result");
    assert!(matches!(&error, BindError::NoResult { reference }
        if reference.path == [PathSegment::Index(0)]));
    assert_eq!(error.failure().kind, FailureKind::Arguments);
}

/// OP16: after a failure that others continue from, the error is what they see.
#[test]
fn op16_a_failed_step_binds_an_error_object() {
    let failure = Failure { kind: FailureKind::Timeout, message: "超时 \"30 s\"".to_owned() };
    let given = [StepResult::Error { failure }, StepResult::Skipped { because: StepId(1) }];
    let error = r#"{"error":{"kind":"timeout","message":"超时 \"30 s\""}}"#;
    check(r#"{"a": "$$step1.result.rates$$"}"#, &given, &format!("{{\"a\":{error}}}"));
    check(
        r#"{"a": "$$step2.result$$"}"#,
        &given,
        r#"{"a":{"error":{"kind":"skipped","message":"step2 was skipped, because step1 failed"}}}"#,
    );
}

proptest! {
    /// OP3, ET6: whatever a tool answers is inserted unchanged, whole or between texts, and the
    /// arguments stay JSON.
    #[test]
    fn op3_any_text_comes_in_unchanged(text in "[\\PC\\x00-\\x20\"\\\\{}$\u{2028}]{0,24}", around in "[^$]{0,6}") {
        let template = Template::Object(vec![
            ("whole".to_owned(), arguments(r#"{"a": "$$step1.result$$"}"#).member("a").expect("a").clone()),
            ("mixed".to_owned(), {
                let quoted = serde_json::to_string(&format!("{around}$$step1.result$$.")).expect("text");
                arguments(&format!("{{\"a\": {quoted}}}")).member("a").expect("a").clone()
            }),
        ]);
        let quoted = serde_json::to_string(&text).expect("text");
        let bound = bind(&template, &results(&[structured(&quoted)])).expect("bound");
        let bound: serde_json::Value = serde_json::from_str(&bound).expect("JSON");
        prop_assert_eq!(bound["whole"].as_str(), Some(text.as_str()));
        let mixed = format!("{around}{text}.");
        prop_assert_eq!(bound["mixed"].as_str(), Some(mixed.as_str()));
    }
}
