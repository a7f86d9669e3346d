//! What is reported before anything runs.

mod findings;
mod references;
mod schemas;

use crate::steps::{plan, tool};
use foldback_planner::{Catalog, FindingKind, Findings, Step, Validator};

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
