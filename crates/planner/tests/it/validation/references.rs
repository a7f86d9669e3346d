//! References to results: where they may occur, and what they may name.

use super::{catalog, check, kinds, only};
use crate::steps::{call, ids, mixed, number, object, plan, step, text, tool, whole};
use foldback_planner::{
    Catalog, FindingKind, Findings, Form, Plan, Progress, Schedule, Step, StepId, Template,
    Validator,
};
use foldback_tool::Language;
use std::collections::BTreeMap;

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

/// OP6: the value of a reference is not known, so what depends on it is not reported; everything else
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

/// OP6: a reference is identified by its position, whatever the keys look like: digits are an index in
/// an array and a key in an object.
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

/// ET6: a position that accepts no value is reported with everything else: in a plan, in a single step
/// and in a plan that continues.
#[test]
fn et6_places_that_take_no_value_are_reported() {
    let mut shell = tool("shell", r#"{"type": "object"}"#, None);
    shell.languages.insert("command".to_owned(), Language::Shell);
    let tools: Catalog = [tool("search", "", None), shell].into_iter().collect();
    let validator = Validator::new(&tools);
    let run = |id| call(id, "shell", object([("command", mixed("echo \"$", 1, &["城"]))]), &[1]);
    let message = "step2: `$$step1.result.城$$` in the argument `command`: it is directly after \
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

/// OP6: what a schema says under a condition, as a choice or about values is left to the run if a
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
    // The condition may or may not concern the text.
    assert_eq!(check(object([("kind", text("x"))])).len(), 1);
    assert!(check(object([("kind", whole(1, &[]))])).is_empty());
    let twice = |item: fn() -> Template| object([("list", Template::Array(vec![item(), item()]))]);
    assert_eq!(check(twice(|| number("1"))).len(), 1);
    assert!(check(twice(|| whole(1, &[]))).is_empty());
}

fn in_blocks(steps: Vec<Step>) -> Findings {
    let mut plan = Plan { form: Form::ExecuteTools, steps };
    let before = plan.clone();
    let findings = Validator::new(&catalog()).plan(&mut plan);
    assert_eq!(plan, before);
    findings
}

/// ET5: in `<execute_tools>` a reference to a sibling in a parallel block is an error, and adds no
/// dependence; one to anything that certainly ended before is not.
#[test]
fn et5_a_reference_to_a_sibling_is_an_error() {
    let refer = |id, to, after: &[u32]| call(id, "search", object([("q", whole(to, &[]))]), after);
    let findings = in_blocks(vec![step(1, &[]), refer(2, 1, &[])]);
    assert_eq!(kinds(&findings), [FindingKind::Unordered]);
    let message = only(&findings);
    assert!(message.starts_with("the call at index 1: "), "{message}");
    assert!(message.contains("<sequential>"), "{message}");
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
