//! OnePlan JSON, read and written.

use foldback_planner::{
    Action, Catalog, FailurePolicy, Finding, FindingKind, Intent, OnePlan, OnePlanEvent,
    OnePlanReader, ParseError, PathSegment, Plan, Reference, Step, StepId, Template, Validator,
    parse_one_plan, write_one_plan,
};
use proptest::prelude::*;

const CITY_AND_FLIGHT: &str = r#"```json
{
  "action_plan": {
    "step1": { "function": "search_city", "args": {"query": "春晚分会场"} },
    "step2": { 
      "function": "book_flight", 
      "args": {"to": "$$step1.result$$"}, 
      "dependence": [1] // 明确依赖第一步结果
    }
  }
}
```"#;

const WEATHER: &str = r#"{
  "action_plan": {
    "step1": {
      "function": "search_weather",
      "args": {"city": "杭州", "time": "18:00"},
      "dependence": []
    },
    "step2": {
      "function": "anchor_function",
      "args": {
        "task": "根据step1结果：若晴朗则调用restaurant_booking，若下雨则调用food_delivery"
      },
      "dependence": [1] // 明确依赖第一步的天气数据
    }
  }
}"#;

fn read(text: &str) -> OnePlan {
    parse_one_plan(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn plan(text: &str) -> Plan {
    let one_plan = read(text);
    assert!(!one_plan.findings.has_errors(), "{}", one_plan.findings);
    let Intent::Plan(plan) = one_plan.intent else { panic!("no plan: {text}") };
    plan
}

/// The findings of a plan with one step of this object.
fn findings_of_step(object: &str) -> Vec<(FindingKind, String)> {
    let text = format!("{{\"action_plan\": {{\"step2\": {object}}}}}");
    let findings = read(&text).findings;
    findings.iter().map(|finding| (finding.kind, finding.message.clone())).collect()
}

fn call(function: &str, arguments: Template) -> Action {
    Action::Call { function: function.to_owned(), arguments }
}

fn object(members: &[(&str, Template)]) -> Template {
    Template::Object(
        members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    )
}

fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

/// OP1, OP3: a dependence whose reference is a whole argument, with a comment after it.
#[test]
fn op1_city_and_flight_reads_unchanged() {
    let one_plan = read(CITY_AND_FLIGHT);
    assert!(one_plan.findings.is_empty(), "{}", one_plan.findings);
    let Intent::Plan(plan) = one_plan.intent else { panic!("a plan") };
    let step1 = Step {
        id: StepId(1),
        action: call("search_city", object(&[("query", text("春晚分会场"))])),
        after: vec![],
        on_failure: FailurePolicy::SkipDependents,
    };
    let reference = Reference { step: StepId(1), path: vec![] };
    let step2 = Step {
        id: StepId(2),
        action: call("book_flight", object(&[("to", Template::Whole(reference))])),
        after: vec![StepId(1)],
        on_failure: FailurePolicy::SkipDependents,
    };
    assert_eq!(plan.steps, [step1, step2]);
}

/// OP1, OP9: an anchor calls no tool.
#[test]
fn op1_weather_reads_unchanged_with_its_anchor() {
    let one_plan = read(WEATHER);
    assert!(one_plan.findings.is_empty(), "{}", one_plan.findings);
    let Intent::Plan(plan) = one_plan.intent else { panic!("a plan") };
    let task = "根据step1结果：若晴朗则调用restaurant_booking，若下雨则调用food_delivery";
    assert_eq!(plan.steps[1].action, Action::Anchor { task: task.to_owned() });
    assert_eq!(plan.steps[1].after, [StepId(1)]);
}

/// OP1: comments of both kinds, trailing commas, text and fences around, braces and other JSON in the
/// text.
#[test]
fn op1_what_stands_around_the_json_is_passed_over() {
    let bare = r#"{"action_plan": {"step1": {"function": "f", "args": {"u": "http://x/*y*/"}}}}"#;
    let expected = plan(bare);
    for text in [
        format!("我先查询{{城市}}，然后：\n```json\n{bare}\n```\n完成。"),
        format!("Use {{\"city\": \"x\"}} and {{{{ }} and {{\"a {bare}"),
        format!("{{\"broken\": }} {bare} {{\"after\": 1}}"),
        "\u{feff} /* one */ {/* two */ \"action_plan\": // three\n {\"step1\":{\"function\":\"f\",\
         \"args\":{\"u\":\"http://x/*y*/\",},},},}"
            .to_owned(),
        format!("{{\"outer\": [1, 2]}} {bare}"),
    ] {
        assert_eq!(plan(&text), expected, "{text}");
    }
}

/// OP1: a long comment before the first key is skipped like a short one.
#[test]
fn op1_comments_before_the_first_key_may_be_long() {
    let plan_behind = |text: String| {
        let text = format!("{text}\"action_plan\": {{\"step1\": {{\"function\": \"f\"}}}}}}");
        assert_eq!(plan(&text).steps.len(), 1);
    };
    plan_behind(format!("{{ // {}\n", "注释".repeat(300)));
    plan_behind(format!("{{ /* {} */", "注释 {".repeat(2_000)));
    plan_behind(format!("{{\n{}", "    // 一步一步来\n".repeat(500)));
    // A brace before it that is text costs a second look, and no plan.
    let comment = "注释 {".repeat(200);
    plan_behind(format!("{{ /* {comment} */ x }} {{ /* {comment} */ "));
    plan_behind(format!("A set {{ // {comment} \n{{ // {comment}\n"));
}

/// OP1: what breaks an object without a plan may begin one with a plan.
#[test]
fn op1_a_plan_may_stand_where_another_object_breaks() {
    let inner = r#"{"action_plan": {"step1": {"function": "搜"}}}"#;
    for text in [
        format!("{{\"thought\": \"x\" {inner}"),
        format!("{{\"thought\": 1{inner}}}"),
        format!("{{\"thought\": \"x\", {inner}"),
    ] {
        assert_eq!(plan(&text).steps.len(), 1, "{text}");
    }
}

/// OP2, B12: the order is by number; a number may be given loosely, which is noted.
#[test]
fn op2_steps_are_ordered_by_number() {
    let step = r#"{"function": "f", "args": {}}"#;
    let text =
        format!(r#"{{"action_plan": {{"step10": {step}, "step2": {step}, "step1": {step}}}}}"#);
    let numbers: Vec<u32> = plan(&text).steps.iter().map(|step| step.id.0).collect();
    assert_eq!(numbers, [1, 2, 10]);
    let text = format!(r#"{{"action_plan": {{"Step_2": {step}, "1": {step}, "step03": {step}}}}}"#);
    let one_plan = read(&text);
    assert_eq!(one_plan.findings.notes().count(), 3);
    assert!(!one_plan.findings.has_errors());
}

/// OP2: the order of keys and the exact text of numbers are kept.
#[test]
fn op2_arguments_keep_order_and_numbers() {
    let text = r#"{"action_plan": {"step1": {"function": "f", "args":
        {"z": 1.50, "a": 12345678901234567890123, "m": [1e-7, null, true], "键": {"β": -0}}}}}"#;
    let literal = |text: &str| Template::Literal(text.to_owned());
    let expected = object(&[
        ("z", literal("1.50")),
        ("a", literal("12345678901234567890123")),
        ("m", Template::Array(vec![literal("1e-7"), literal("null"), literal("true")])),
        ("键", object(&[("β", literal("-0"))])),
    ]);
    assert_eq!(plan(text).steps[0].action, call("f", expected));
}

/// OP2: the ways to write a dependence.
#[test]
fn op2_dependences_are_read_leniently_and_noted() {
    for (dependence, after, notes) in [
        ("[1, 3]", &[1, 3][..], 0),
        ("[3, 1]", &[1, 3], 0),
        ("[]", &[], 0),
        ("null", &[], 0),
        ("1", &[1], 1),
        ("\"step1\"", &[1], 2),
        ("[\"1\", \"step3\"]", &[1, 3], 2),
        ("[1, 1]", &[1], 1),
    ] {
        let text = format!(
            r#"{{"action_plan": {{"step2": {{"function": "f", "dependence": {dependence}}}}}}}"#
        );
        let one_plan = read(&text);
        assert_eq!(one_plan.findings.len(), notes, "{dependence}: {}", one_plan.findings);
        let Intent::Plan(plan) = one_plan.intent else { panic!("a plan") };
        let numbers: Vec<u32> = plan.steps[0].after.iter().map(|step| step.0).collect();
        assert_eq!(numbers, after, "{dependence}");
    }
    for dependence in ["[0]", "[-1]", "[1.5]", "[\"first\"]", "[[1]]", "true", "{\"1\": 1}"] {
        let found =
            findings_of_step(&format!(r#"{{"function": "f", "dependence": {dependence}}}"#));
        let errors: Vec<_> = found.iter().filter(|(kind, _)| kind.is_error()).collect();
        assert_eq!(errors.len(), 1, "{dependence}: {found:?}");
        assert!(errors[0].1.contains("expected step numbers of 1 or more"), "{found:?}");
    }
}

/// OP5: a reference without a dependence adds it, and says so.
#[test]
fn op5_a_reference_adds_the_dependence_and_is_reported() {
    let found = findings_of_step(
        r#"{"function": "f", "args": {"a": "$$step1.result$$ $$step1.result.x$$"}}"#,
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, FindingKind::AddedDependence);
    let plan = plan(
        r#"{"action_plan": {"step3": {"function": "f", "args": {"a": "$$step1.result$$"},
            "dependence": [2]}}}"#,
    );
    assert_eq!(plan.steps[0].after, [StepId(1), StepId(2)]);
}

/// OP6, B12: duplicate keys are errors, at their places; none wins silently.
#[test]
fn op6_keys_that_stand_twice_are_errors() {
    let text = r#"{"action_plan": {
  "step1": {"function": "f", "args": {"查": 1, "查": 2}},
  "step1": {"function": "g", "args": {}},
  "step2": {"function": "f", "function": "g"}
}}"#;
    let findings = read(text).findings;
    let found: Vec<_> = findings
        .errors()
        .map(|finding| {
            let at = finding.at.expect("a place");
            (finding.kind, finding.step.map(|step| step.0), at.line, at.column)
        })
        .collect();
    assert_eq!(
        found,
        [
            (FindingKind::DuplicateKey, Some(1), 2, 47),
            (FindingKind::DuplicateStep, Some(1), 3, 3),
            (FindingKind::DuplicateKey, Some(2), 4, 30),
        ],
        "{findings}"
    );
    let at = findings.errors().next().and_then(|finding| finding.at).expect("a place");
    assert!(text[at.offset..].starts_with("\"查\": 2"));
}

/// OP6: everything that is wrong with the shape of steps is reported at once.
#[test]
fn op6_all_errors_of_shape_are_reported_at_once() {
    let text = r#"{"action_plan": {
        "step1": "f",
        "step2": {"args": {}},
        "step3": {"function": 7},
        "step4": {"function": "f", "args": [1]},
        "first": {"function": "f"},
        "step0": {"function": "f"},
        "step5": {"function": "f", "args": {"q": "$$step1.results$$"}},
        "step6": {"function": "anchor_function", "args": {"why": "x"}},
        "step7": {"function": "f", "on_failure": "ignore"},
        "step8": {"function": "f"}
    }}"#;
    let findings = read(text).findings;
    assert_eq!(findings.errors().count(), 9, "{findings}");
}

/// OP6: unknown keys are ignored and noted, not silently.
#[test]
fn op6_unknown_keys_are_noted() {
    let text = r#"{"thought": "想", "action_plan": {"step1":
        {"function": "f", "depends_on": [], "why": "x", "parameters": {"a": 1}}}}"#;
    let one_plan = read(text);
    let messages: Vec<&str> =
        one_plan.findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "step1: the key `depends_on` was read as `dependence`",
            "step1: the key `why` was ignored",
            "step1: the key `parameters` was read as `args`",
            "the key `thought` beside `action_plan` was ignored",
        ]
    );
    assert!(!one_plan.findings.has_errors());
}

/// OP16: a step may say what its failure means.
#[test]
fn op16_a_step_says_what_its_failure_means() {
    let text = r#"{"action_plan": {
        "step1": {"function": "f", "on_failure": "continue_with_error"},
        "step2": {"function": "f", "on_failure": "fail_fast"},
        "step3": {"function": "f", "on_failure": "skip_dependents"}}}"#;
    let policies: Vec<FailurePolicy> =
        plan(text).steps.iter().map(|step| step.on_failure).collect();
    assert_eq!(
        policies,
        [FailurePolicy::ContinueWithError, FailurePolicy::FailFast, FailurePolicy::SkipDependents]
    );
}

/// OP19: an open-ended task is declared.
#[test]
fn op19_a_planner_may_decline_to_plan() {
    for (text, reason) in [
        ("{\"mode\":\"react\",\"reason\":\"每一步都不可预知\"}", "每一步都不可预知"),
        ("```json\n{\"reason\": \"open\", \"mode\": \"react\"}\n```", "open"),
        ("{\"mode\": \"react\"}", ""),
    ] {
        let one_plan = read(text);
        assert_eq!(one_plan.intent, Intent::React { reason: reason.to_owned() });
        assert!(one_plan.findings.is_empty());
    }
    for text in
        ["{\"mode\": \"ReAct\", \"reason\": \"未知\"}", "{\"mode\":\"REACT\",\"reason\":\"未知\"}"]
    {
        let one_plan = read(text);
        assert_eq!(one_plan.intent, Intent::React { reason: "未知".to_owned() });
        let kinds: Vec<_> = one_plan.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Leniency], "{text}");
    }
    let both = r#"{"mode": "React", "action_plan": {"step1": {"function": "f"}}}"#;
    assert!(read(both).findings.has_errors());
    let both = r#"{"mode": "react", "action_plan": {"step1": {"function": "f"}}}"#;
    assert!(read(both).findings.has_errors());
}

/// OP6: two plans in one text are an error, not a choice.
#[test]
fn op6_a_second_plan_is_an_error() {
    let one = r#"{"action_plan": {"step1": {"function": "f"}}}"#;
    let react = r#"{"mode": "react"}"#;
    for text in [format!("{one} or {one}"), format!("{one} {react}"), format!("{react} {one}")] {
        let one_plan = read(&text);
        let messages: Vec<&str> =
            one_plan.findings.errors().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, ["there is a second plan in the text; expected one"], "{text}");
    }
}

/// OP14's cause: no plan, not JSON, too deep; each is a typed error with its place.
#[test]
fn what_is_no_plan_is_a_typed_error() {
    let check = |text: &str, expected: &str| {
        let error = parse_one_plan(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    };
    let no_plan = "there is no plan in the text; expected \
                   one JSON object with `action_plan`, or with `mode`";
    check("", no_plan);
    check("I cannot do that. {really}", no_plan);
    check("{\"plan\": []}", no_plan);
    check(
        "{\"action_plan\": {\"step1\": {\"function\": 'f'}}}",
        "line 1, column 40: found `'`, expected JSON",
    );
    check(
        "{\"action_plan\":\n {\"step1\": {\"function\": \"f\" \"args\": {}}}}",
        "line 2, column 29: found the string \"args\", expected `,` or `}`",
    );
    check(
        "{\"action_plan\": {\"step1\": {\"function\": \"f\", \"args\": {\"a\": True}}}}",
        "line 1, column 59: found `True`, expected a JSON value: a string in double quotes, a \
         number, true, false, null, an object or an array",
    );
    check(
        "{\"action_plan\": {\"step1\": {\"function\": \"f\", \"args\": {\"path\": \"C:\\windows\"}}}}",
        "line 1, column 66: found `w`, expected one of \" \\ / b f n r t u after a \\",
    );
    let deep = format!("{{\"action_plan\": {}", "[".repeat(100_000));
    assert!(matches!(parse_one_plan(&deep), Err(ParseError::TooDeep { most: 128, .. })));
    let nothing = read("{\"action_plan\": {}}").findings;
    let kinds: Vec<FindingKind> = nothing.errors().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::EmptyPlan]);
    assert!(read("{\"action_plan\": [{\"function\": \"f\"}]}").findings.has_errors());
}

/// OP8: a truncated text gives the steps that closed, an error with the place, and no part of a step.
#[test]
fn op8_a_truncated_plan_is_an_error_and_gives_no_partial_step() {
    let first = WEATHER.find(",\n    \"step2\"").expect("the end of the first step");
    let second = WEATHER.rmatch_indices('}').nth(2).expect("the end of the second step").0 + 1;
    for (at, _) in WEATHER.char_indices().skip(1) {
        let mut reader = OnePlanReader::new();
        let events = reader.push(&WEATHER[..at]);
        let steps = events.iter().filter(|event| matches!(event, OnePlanEvent::Step(_))).count();
        assert_eq!(steps, usize::from(at >= first) + usize::from(at >= second), "at {at}");
        match reader.finish() {
            Err(ParseError::Truncated { at: end, .. }) => assert_eq!(end.offset, at),
            Err(ParseError::NoPlan { .. }) => assert!(at < 18, "at {at}"),
            other => panic!("{other:?} at {at}"),
        }
    }
    let error =
        parse_one_plan("{\"action_plan\": {\"step1\": {\"function\": \"查").expect_err("truncated");
    let ParseError::Truncated { at, open } = &error else { panic!("{error}") };
    assert_eq!((at.line, at.column), (1, 42));
    assert!(open.contains("`function` (line 1, column 28)"), "{open}");
}

/// OP8: a step is emitted at the brace that closes it.
#[test]
fn op8_a_step_comes_out_as_soon_as_its_object_closes() {
    let mut reader = OnePlanReader::new();
    let mut came_out = Vec::new();
    let mut at = 0;
    for c in CITY_AND_FLIGHT.chars() {
        let mut buffer = [0; 4];
        at += c.len_utf8();
        for event in reader.push(c.encode_utf8(&mut buffer)) {
            let OnePlanEvent::Step(step) = event else { panic!("{event:?}") };
            came_out.push((step.id.0, &CITY_AND_FLIGHT[at - 4..at]));
        }
    }
    assert_eq!(came_out, [(1, "\"} }"), (2, "   }")]);
}

/// OP8: a step with an error in it is not emitted; others are.
#[test]
fn op8_a_step_with_an_error_does_not_come_out() {
    let mut reader = OnePlanReader::new();
    let events = reader.push(
        r#"{"action_plan": {"step1": {"function": "f", "args": {"a": 1, "a": 2}},
            "step2": {"function": "f"}, "step2": {"function": "g"}}}"#,
    );
    let steps: Vec<u32> = events
        .iter()
        .filter_map(
            |event| if let OnePlanEvent::Step(step) = event { Some(step.id.0) } else { None },
        )
        .collect();
    assert_eq!(steps, [2]);
    let errors = events.iter().filter(
        |event| matches!(event, OnePlanEvent::Finding(Finding { kind, .. }) if kind.is_error()),
    );
    assert_eq!(errors.count(), 2);
}

/// OP8: hostile texts take time in proportion to their length.
#[test]
fn op8_hostile_texts_are_read_in_linear_time() {
    for part in [
        "{",
        "{\"",
        "{\"a\":",
        "{/*",
        "{\"a\":1}",
        "{//\n",
        "\"",
        "\\",
        "{\"a\":[{",
        "杭{",
        "{ \n",
        "{/*{*/x",
    ] {
        // Quadratic would be 10^10 steps and more.
        let text = part.repeat(60_000);
        assert!(parse_one_plan(&text).is_err(), "{part}");
        let step = format!("{{\"action_plan\": {{\"step1\": {{\"function\": \"{text}");
        assert!(parse_one_plan(&step).is_err(), "{part}");
    }
}

/// ET5, OP6: a finding about a step has its place in the text.
#[test]
fn op6_findings_of_the_plan_have_places_in_the_text() {
    let text = "{\"action_plan\": {\n  \"step2\": {\"function\": \"搜\", \"dependence\": [7]}}}";
    let one_plan = read(text);
    let Intent::Plan(mut plan) = one_plan.intent else { panic!("a plan") };
    let findings = Validator::new(&Catalog::default()).plan(&mut plan).placed(&one_plan.places);
    assert!(findings.has_errors());
    for finding in &findings {
        let at = finding.at.expect("a place");
        assert!(text[at.offset..].starts_with("\"step2\""), "{finding}");
    }
}

/// All events of a text, split as specified.
fn events(parts: &[&str]) -> (Vec<OnePlanEvent>, Result<OnePlan, ParseError>) {
    let mut reader = OnePlanReader::new();
    let events = parts.iter().flat_map(|part| reader.push(part)).collect();
    (events, reader.finish())
}

/// Texts with everything that can be cut through: escapes, comments, strings, wide characters, fences.
const CUT_THROUGH: [&str; 5] = [
    CITY_AND_FLIGHT,
    WEATHER,
    "看{\"a {\"x\": 1 /*{*/} then {// \"}\"\n\"action_plan\": {\"step1\": {\"function\": \"f\\u00e9\\\"\", \
     \"args\": {\"👍\": \"\\ud83d\\udc4d $$step2.result[\\\"a b\\\"]$$\", \"n\": -1.5e+3}, /* \"**/ }, \
     \"step2\": {\"function\": 1}}} tail {\"action_plan\": {}}",
    "{\"action_plan\": {\"step1\": {\"function\": \"f\"}, \"step2\": {\"function\": \"f\", }, nonsense",
    "{\"why\": \"{\\\"action_plan\\\"\", \"mode\": \"react\", \"reason\": \"// {\"} {",
];

/// OP8: the output does not depend on where the text is split: every single split, and every character
/// by itself.
#[test]
fn op8_every_cut_gives_the_same() {
    for text in CUT_THROUGH {
        let whole = events(&[text]);
        for (at, _) in text.char_indices() {
            assert_eq!(events(&[&text[..at], &text[at..]]), whole, "cut at {at}: {text}");
        }
        let characters: Vec<&str> = text.split("").collect();
        assert_eq!(events(&characters), whole, "{text}");
    }
}

/// A JSON value for arguments, with references in some texts.
fn arguments() -> impl Strategy<Value = Template> {
    let name = prop_oneof!["[a-z]{1,4}", "[\\PC]{0,4}", Just("汇率 %\"'$]".to_owned())];
    let segment = prop_oneof![
        name.clone().prop_map(PathSegment::Key),
        (0_usize..20).prop_map(PathSegment::Index)
    ];
    let reference = (1_u32..9, proptest::collection::vec(segment, 0..3))
        .prop_map(|(step, path)| Reference { step: StepId(step), path });
    let leaf = prop_oneof![
        "[\\PC\\n\"\\\\/*{}$]{0,12}".prop_map(Template::Text),
        reference.prop_map(Template::Whole),
        prop_oneof![Just("0"), Just("-1.50e+7"), Just("null"), Just("true")]
            .prop_map(|text| Template::Literal(text.to_owned())),
    ];
    let value = leaf.prop_recursive(3, 12, 4, move |inner| {
        let key = "[\\PC]{0,5}";
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Template::Array),
            proptest::collection::btree_map(key, inner, 0..4)
                .prop_map(|members| Template::Object(members.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("[a-z]{1,3}", value, 0..4)
        .prop_map(|members| Template::Object(members.into_iter().collect()))
}

proptest! {
    /// OP3, OP4, ET13: a plan that is written and read again is the same plan.
    #[test]
    fn op4_what_is_written_reads_back(arguments in proptest::collection::vec(arguments(), 1..5)) {
        let steps: Vec<Step> = arguments.into_iter().zip(1..).map(|(arguments, number)| {
            let mut after: Vec<StepId> = arguments.references().iter().map(|r| r.step).collect();
            after.sort_unstable();
            after.dedup();
            let action = Action::Call { function: "f".to_owned(), arguments };
            Step { id: StepId(number), action, after, on_failure: FailurePolicy::default() }
        }).collect();
        let written = Plan { form: foldback_planner::Form::OnePlan, steps };
        let text = write_one_plan(&written).expect("no text reads like a reference");
        prop_assert_eq!(plan(&text), written);
    }

    /// OP8: any split into any parts gives the same.
    #[test]
    fn op8_any_cutting_gives_the_same(which in 0..CUT_THROUGH.len(), cuts in proptest::collection::vec(0.0..1.0_f64, 0..12)) {
        let text = CUT_THROUGH[which];
        let mut places: Vec<usize> = cuts.iter().map(|cut| {
            let at = (cut * text.len() as f64) as usize;
            (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        }).collect();
        places.push(text.len());
        places.sort_unstable();
        let mut from = 0;
        let parts: Vec<&str> = places.iter().map(|at| { let part = &text[from..*at]; from = *at; part }).collect();
        prop_assert_eq!(events(&parts), events(&[text]));
    }

    /// OP14's cause: no text at all makes the reader panic, and its output is the same for any split.
    #[test]
    fn any_text_ends_in_a_plan_or_an_error(text in "[{}\\[\\]\",:/*\\\\ $a-c1\n杭]{0,60}", at in 0..60_usize) {
        let text = format!("{{\"action_plan\": {text}");
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        prop_assert_eq!(events(&[&text[..at], &text[at..]]), events(&[&text]));
    }
}
