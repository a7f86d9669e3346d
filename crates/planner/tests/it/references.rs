//! What is a reference and what is text.

use foldback_planner::{
    Action, Catalog, FindingKind, Form, Intent, PathSegment, Piece, Plan, Reference, Spelling,
    Step, StepId, Template, parse_execute_tools, parse_one_plan, write_one_plan,
};

/// What an argument of OnePlan reads as, with the texts of malformed references.
fn read(argument: &str) -> (Template, Vec<String>) {
    let argument = serde_json::to_string(argument).expect("a string");
    let text = format!(
        r#"{{"action_plan": {{"step9": {{"function": "f", "args": {{"a": {argument}}}}}}}}}"#
    );
    let one_plan = parse_one_plan(&text).expect("a plan");
    let Intent::Plan(plan) = one_plan.intent else { panic!("a plan") };
    let Action::Call { arguments, .. } = &plan.steps[0].action else { panic!("a call") };
    let malformed = one_plan.findings.errors().map(|finding| {
        assert_eq!(finding.kind, FindingKind::MalformedReference);
        finding.message.clone()
    });
    (arguments.member("a").expect("a").clone(), malformed.collect())
}

fn key(key: &str) -> PathSegment {
    PathSegment::Key(key.to_owned())
}

fn reference(step: u32, path: &[PathSegment]) -> Reference {
    Reference { step: StepId(step), path: path.to_vec() }
}

/// OP4: every kind of path.
#[test]
fn op4_paths_are_read_exactly() {
    for (text, step, path) in [
        ("$$step1.result$$", 1, &[][..]),
        ("$$step10.result.a.b$$", 10, &[key("a"), key("b")]),
        (
            "$$step2.result.a[\"Exchange Rate\"][0]$$",
            2,
            &[key("a"), key("Exchange Rate"), PathSegment::Index(0)],
        ),
        ("$$step1.result['it\\'s']$$", 1, &[key("it's")]),
        (
            "$$step1.result[\"a.b\"][\"$$\"][\"]\"][\"\\\"\"]$$",
            1,
            &[key("a.b"), key("$$"), key("]"), key("\"")],
        ),
        (
            "$$step1.result.汇率.x-y_z[\"城 市\"].é👍$$",
            1,
            &[key("汇率"), key("x-y_z"), key("城 市"), key("é👍")],
        ),
        ("$$step1.result[\"\\u6c47\"].0$$", 1, &[key("汇"), key("0")]),
        ("$$step1.result[\"\"]$$", 1, &[key("")]),
    ] {
        let expected = reference(step, path);
        let (template, malformed) = read(text);
        assert_eq!(malformed, [""; 0], "{text}");
        assert_eq!(template, Template::Whole(expected.clone()), "{text}");
        assert_eq!(read(&expected.spelled(Spelling::OnePlan)).0, template, "{text}");
    }
}

/// OP4, B6: several in one text; `step1` is not found in `step10`.
#[test]
fn op4_several_references_in_one_text() {
    let (template, malformed) = read("$$$step1.result.t$$ - $$step10.result$$$$step2.result$$元");
    assert_eq!(malformed, [""; 0]);
    let text = |text: &str| Piece::Text(text.to_owned());
    assert_eq!(
        template,
        Template::Mixed(vec![
            text("$"),
            Piece::Reference(reference(1, &[key("t")])),
            text(" - "),
            Piece::Reference(reference(10, &[])),
            Piece::Reference(reference(2, &[])),
            text("元"),
        ])
    );
}

/// OP3: what is not a reference stays, byte for byte.
#[test]
fn op3_other_dollars_are_text() {
    for text in [
        "$$",
        "$$$$",
        "costs $$ 5, $$10 or $1",
        "$$x^2 + y_1$$",
        "$$ \\text{step} 1 $$",
        "$$stepper.result$$",
        "$$step.result$$",
        "$step1.result$",
        "step1.result",
        "$$第1步$$",
        "{results[0].data}",
        "${step1.result}",
        "$$step one$$",
    ] {
        assert_eq!(read(text), (Template::Text(text.to_owned()), vec![]), "{text}");
    }
}

/// OP6, N4: text that begins like a reference but is not one is reported with its text.
#[test]
fn op6_malformed_references_are_reported() {
    for text in [
        "$$step1$$",
        "$$step1.results$$",
        "$$step1.result",
        "$$step1.result.$$",
        "$$step1.result[a]$$",
        "$$step1.result[-1]$$",
        "$$step1.result[\"a]$$",
        "$$step1.result.Exchange Rate$$",
        "$$step1.result[$$step2.result$$]$$",
        "$$Step1.result$$",
        "$$step_1.result$$",
        "$$ step1.result $$",
        "$$step0.result$$",
        "$$step99999999999.result$$",
        "$$step1.result[99999999999999999999999]$$",
        "$$step1.result[0$$",
    ] {
        let (template, malformed) = read(&format!("看 {text}"));
        assert_eq!(malformed.len(), 1, "{text}: {malformed:?}");
        let named: String = text.chars().take(8).collect();
        assert!(malformed[0].contains(&named), "{text}: {malformed:?}");
        if !text.contains("$$step2") {
            assert_eq!(template, Template::Text(format!("看 {text}")));
        }
    }
}

/// OP6, N4: a key is not a value: a reference in it is reported, well-formed or not, and a plan with
/// such a key is not written. Dollars in keys are dollars.
#[test]
fn op6_a_reference_cannot_stand_in_a_key() {
    let findings = |arguments: &str| {
        let text =
            format!(r#"{{"action_plan": {{"step9": {{"function": "f", "args": {arguments}}}}}}}"#);
        parse_one_plan(&text).expect("a plan").findings
    };
    for arguments in [
        r#"{"$$step1.result$$": 1}"#,
        r#"{"m": [{"看 $$step1.result.城$$": 1}]}"#,
        r#"{"m": {"$$step1.oops": 2}}"#,
    ] {
        let findings = findings(arguments);
        let found: Vec<_> = findings.errors().collect();
        assert_eq!(found.len(), 1, "{findings}");
        assert_eq!(found[0].kind, FindingKind::MalformedReference);
        assert!(found[0].message.contains("` cannot contain a reference; expected"), "{findings}");
        assert!(found[0].at.is_some());
    }
    assert!(
        findings(r#"{"$$": 1, "costs $$ 5": {"$$x^2$$": 1}, "{results[0].data}": 1}"#).is_empty()
    );

    let block = r#"<execute_tools><s><t>{"{results[0].data}": 1}</t></s></execute_tools>"#;
    let tool = crate::steps::tool("t", "{}", None);
    let tool = tool.with_server("s");
    let catalog: Catalog = [tool].into_iter().collect();
    let read = parse_execute_tools(block, &catalog).expect("a block");
    assert!(read.findings.to_string().contains("cannot contain a reference"), "{}", read.findings);

    let inner =
        Template::Object(vec![("$$step1.result$$".to_owned(), Template::Text(String::new()))]);
    let arguments = Template::Array(vec![inner]);
    let plan = |arguments| {
        let action = Action::Call { function: "f".to_owned(), arguments };
        let step = Step { id: StepId(1), action, after: vec![], on_failure: Default::default() };
        Plan { form: Form::OnePlan, steps: vec![step] }
    };
    assert!(write_one_plan(&plan(Template::Object(vec![("a".to_owned(), arguments)]))).is_err());
}

/// OP8: looking for references takes time in proportion to the text.
#[test]
fn op8_hostile_texts_are_read_in_linear_time() {
    for part in
        ["$", "$$step1.result[\"", "$$step1.result.a", "$$step1.result['\\", "{results[0", "$$ "]
    {
        // Quadratic would be 10^11 steps and more.
        let text = part.repeat(300_000);
        assert!(!matches!(read(&text).0, Template::Whole(_)), "{part}");
    }
}
