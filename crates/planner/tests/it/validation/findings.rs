//! All errors of a plan are reported at once.

use super::{catalog, check, kinds, only};
use crate::steps::{anchor, call, ids, number, object, plan, step, text, tool, whole};
use foldback_planner::{Action, Catalog, FindingKind, Limits, StepId, Template, Validator};
use foldback_tool::ToolSpec;

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
- step2: this number occurs twice; expected each number once
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

/// OP6: a misspelt function is answered with the nearest one, in any script; one that resembles none
/// with those that exist.
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

/// OP6: a number that no tool can read is reported as such.
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
        Limits::default().with_steps(3).with_dependences(1).with_argument_bytes(20).with_depth(3);
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

/// OP8: a step of a plan that is still being written is checked against the steps before it.
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
/// hand; of two with the same number neither wins silently.
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

/// Arguments that are not an object are refused, unless a reference provides them.
#[test]
fn arguments_are_an_object() {
    let search = |arguments| check(vec![step(1, &[]), call(2, "search", arguments, &[1])]);
    assert!(only(&search(number("7"))).ends_with("they are a number; expected an object"));
    assert!(only(&search(Template::Array(vec![]))).contains("they are an array"));
}

/// A tool is compiled once for all clones of the catalog.
#[test]
fn catalogs_are_shared() {
    let tools: Vec<ToolSpec> = catalog().iter().cloned().collect();
    let one: Catalog = tools.into_iter().collect();
    let other = one.clone();
    let bad = || plan(vec![call(1, "book_flight", object([]), &[])]);
    assert_eq!(Validator::new(&one).plan(&mut bad()), Validator::new(&other).plan(&mut bad()));
}

/// OP6: thousands of references beside thousands of mismatches are distinguished, and the list of
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
