//! What the body of a call becomes: arguments, and references to results.

use super::{body, call, catalog, read, steps, text};
use foldback_core::ToolDefinition;
use foldback_planner::{Action, Catalog, FindingKind, StepId, Validator, parse_execute_tools};
use foldback_tool::ToolSpec;

/// ET4: references in and around text; other braces stay.
#[test]
fn et4_other_braces_are_untouched() {
    for plain in [
        "{int(age) + 10}",
        "{results[0]}",
        "{results[i].data}",
        "{results[0].database}",
        "{results[0].status}",
        "{result[0].data}",
        "results[0].data",
        "{{}} {}",
        "d = {'results': [0]}",
        "$$step1.result$$",
        "for r in results: print(f'{r.data}')",
    ] {
        assert_eq!(body(plain), ("code".to_owned(), text(plain)), "{plain}");
    }
}

/// ET4, ET12: text that begins like a placeholder but is not one is an error, with the place of its
/// call.
#[test]
fn et4_malformed_placeholders_are_errors() {
    for placeholder in [
        "{results[0].data + 1}",
        "{ results[0].data }",
        "{results[-1].data}",
        "{results[0].data.}",
        "{results[0].data[x]}",
        "{results[0].data:>10}",
        "{results[0].data",
        "{results[99999999999].data}",
    ] {
        let text = format!(
            "<execute_tools><sequential>{}\n{}</sequential></execute_tools>",
            call("x"),
            call(placeholder)
        );
        let read = read(&text);
        let errors: Vec<_> = read.findings.errors().collect();
        assert_eq!(errors.len(), 1, "{placeholder}: {}", read.findings);
        assert_eq!(errors[0].kind, FindingKind::MalformedReference);
        assert_eq!(errors[0].step, Some(StepId(2)));
        assert_eq!(errors[0].at.map(|at| at.line), Some(2));
    }
}

/// ET5: a placeholder to itself, a later call, a neighbour in a `<parallel>` or none at all is an error
/// before anything runs.
#[test]
fn et5_a_placeholder_to_what_has_not_ended_is_an_error() {
    let catalog = catalog();
    let placed = |block: &str, expected: Option<FindingKind>| {
        let text = format!("<execute_tools>{block}</execute_tools>");
        let read = read(&text);
        assert!(!read.findings.has_errors(), "{}", read.findings);
        let mut plan = read.plan;
        let findings = Validator::new(&catalog).plan(&mut plan);
        let kinds: Vec<FindingKind> = findings.errors().map(|finding| finding.kind).collect();
        assert_eq!(kinds, expected.into_iter().collect::<Vec<_>>(), "{block}: {findings}");
    };
    let at = |index: u32| call(&format!("{{results[{index}].data}}"));
    let c = call("x");
    placed(&format!("<sequential>{c}{}</sequential>", at(0)), None);
    placed(&format!("<sequential>{c}{}</sequential>", at(1)), Some(FindingKind::SelfDependence));
    placed(&format!("<sequential>{}{c}</sequential>", at(1)), Some(FindingKind::ForwardDependence));
    placed(&format!("<sequential>{c}{}</sequential>", at(7)), Some(FindingKind::UnknownStep));
    placed(&format!("<parallel>{c}{}</parallel>", at(0)), Some(FindingKind::Unordered));
    let nested =
        |inner: &str| format!("<parallel><sequential>{c}{c}</sequential>{inner}</parallel>");
    placed(&nested(&at(1)), Some(FindingKind::Unordered));
    placed(&format!("<sequential><parallel>{c}{c}</parallel>{}</sequential>", at(0)), None);
    let inner = format!("<sequential>{c}<parallel>{c}{}</parallel></sequential>", at(0));
    placed(&inner, None);
}

/// The arguments of the only call of a tool.
#[track_caller]
fn arguments(server: &str, tool: &str, body: &str) -> Result<String, FindingKind> {
    let text =
        format!("<execute_tools><{server}><{tool}>{body}</{tool}></{server}></execute_tools>");
    let read = read(&text);
    if let Some(error) = read.findings.errors().next() {
        return Err(error.kind);
    }
    let Action::Call { arguments, .. } = &read.plan.steps[0].action else { panic!("a call") };
    Ok(arguments.to_string())
}

/// ET14: a JSON object binds by name, any other text is the primary argument.
#[test]
fn et14_a_body_binds_by_name_or_to_the_primary_argument() {
    for (server, tool, body, expected) in [
        ("deepsearch_server", "search", "杭州 天气", r#"{"query": "杭州 天气"}"#),
        (
            "deepsearch_server",
            "search",
            r#"{"query": "a < b", "limit": 3}"#,
            r#"{"query": "a < b", "limit": 3}"#,
        ),
        ("deepsearch_server", "search", "{\"limit\": 1.50, /* all */}", r#"{"limit": 1.50}"#),
        ("deepsearch_server", "search", "{\"q\": 1}", r#"{"query": "{\"q\": 1}"}"#),
        ("deepsearch_server", "search", "{not json}", r#"{"query": "{not json}"}"#),
        ("deepsearch_server", "search", "", "{}"),
        ("deepsearch_server", "search", "{}", "{}"),
        (
            "deepsearch_server",
            "search",
            "<query>a &lt; b</query> <limit>5</limit>",
            r#"{"query": "a < b", "limit": 5}"#,
        ),
        ("deepsearch_server", "search", "<query>a</query> b", r#"{"query": "<query>a</query> b"}"#),
        ("deepsearch_server", "search", "<q>a</q>", r#"{"query": "<q>a</q>"}"#),
        ("http", "post", "plain", r#"{"body": "plain"}"#),
        ("http", "post", r#"{"url": "u", "body": "b"}"#, r#"{"url": "u", "body": "b"}"#),
        ("http", "post", r#"{"name": "x"}"#, r#"{"body": "{\"name\": \"x\"}"}"#),
        ("files", "write", r#"{"path": "a", "text": "b"}"#, r#"{"path": "a", "text": "b"}"#),
        ("files", "files_write", r#"{"path": "a", "text": "b"}"#, r#"{"path": "a", "text": "b"}"#),
        ("浏览器", "查询订单", "A-1", r#"{"单号": "A-1"}"#),
        ("elsewhere", "unheard_of", "text", r#"{"input": "text"}"#),
    ] {
        assert_eq!(arguments(server, tool, body).as_deref(), Ok(expected), "{body}");
    }
    assert_eq!(arguments("math", "range", "1 to 3"), Err(FindingKind::Arguments));
    assert_eq!(
        arguments("deepsearch_server", "search", r#"{"query": "a", "query": "b"}"#),
        Err(FindingKind::DuplicateKey)
    );
    assert_eq!(arguments("http", "search", "x"), Err(FindingKind::UnknownFunction));
}

/// ET14: if a tool's schema names no parameters, or the tool takes no text, an object binds by name.
#[test]
fn et14_an_object_binds_by_name_where_it_cannot_be_text() {
    let bound = |schema: &str, primary: Option<&str>, body: &str| {
        let definition = ToolDefinition {
            name: "t".to_owned(),
            description: String::new(),
            parameters: schema.to_owned(),
        };
        let mut tool = ToolSpec::new(definition);
        tool.primary = primary.map(str::to_owned);
        let catalog: Catalog = [tool].into_iter().collect();
        let text = format!("<execute_tools><s><t>{body}</t></s></execute_tools>");
        let read = parse_execute_tools(&text, &catalog).expect("a block");
        assert!(!read.findings.has_errors(), "{schema}: {}", read.findings);
        let Action::Call { arguments, .. } = &read.plan.steps[0].action else { panic!("a call") };
        arguments.to_string()
    };
    let body = r#"{"q": "杭州"}"#;
    for schema in [
        "",
        "{}",
        r#"{"type": "object"}"#,
        r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
        r##"{"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"q": {"type": "string"}}}}}"##,
        r#"{"allOf": [{"properties": {"q": {"type": "string"}}}]}"#,
        r#"{"properties": {"a": {}, "b": {}}}"#,
        r#"{"properties": {"a": {}}, "required": ["q"]}"#,
    ] {
        assert_eq!(bound(schema, None, body), body, "{schema}");
    }
    assert_eq!(bound("{}", Some("code"), body), body);
    assert_eq!(bound("{}", Some("code"), "print(1)"), r#"{"code": "print(1)"}"#);
    // The known parameter has another name, and the tool takes text: it is text.
    let named = r#"{"properties": {"code": {}}}"#;
    assert_eq!(bound(named, None, body), r#"{"code": "{\"q\": \"杭州\"}"}"#);
}

/// ET4, ET14: in a JSON body a placeholder may be a value, in quotes or bare.
#[test]
fn et14_placeholders_stand_in_json_bodies() {
    let block = |body: &str| {
        format!(
            "<execute_tools><sequential>{}<http><post>{body}</post></http></sequential></execute_tools>",
            call("x")
        )
    };
    for body in [
        r#"{"url": "{results[0].data.url}", "body": "no. {results[0].data[\"a b\"][0]}!"}"#,
        r#"{"url": {results[0].data.url}, "body": "no. {results[0].data[\"a b\"][0]}!"}"#,
        r#"{"url": {results[0].data.url},, "body": 1}"#,
    ] {
        let steps = steps(&block(body));
        let Action::Call { arguments, .. } = &steps[1].action else { panic!("a call") };
        let expected = if body.contains(",,") {
            r#"{"body": "{\"url\": $$step1.result.url$$,, \"body\": 1}"}"#
        } else {
            r#"{"url": "$$step1.result.url$$", "body": "no. $$step1.result[\"a b\"][0]$$!"}"#
        };
        assert_eq!(arguments.to_string(), expected);
        assert_eq!(steps[1].after, [StepId(1)]);
    }
}
