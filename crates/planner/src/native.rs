//! Tool calls of a chat API.

use crate::json::{self, Value};
use crate::{
    Action, FailurePolicy, Finding, FindingKind, Findings, Form, ParseError, Plan, Step, StepId,
    Template,
};
use foldback_core::{ToolCall, ToolCallId};
use std::collections::BTreeMap;

/// The calls of one assistant message.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeCalls {
    /// The calls that can be run: step N is the call at index N - 1. They have no dependences.
    pub plan: Plan,
    /// The findings. A call with an error is not in the plan; the others may run.
    pub findings: Findings,
    /// The id of each call, those with errors included, for its result.
    pub ids: Vec<ToolCallId>,
}

/// Lowers the calls of one assistant message. Nothing in their arguments is a reference; what looks
/// like one is text.
///
/// ```
/// use foldback_core::ToolCall;
/// use foldback_planner::{StepId, lower_calls};
///
/// let calls = lower_calls(&[
///     ToolCall::new("c1", "search", r#"{"query": "杭州"}"#),
///     ToolCall::new("c2", "search", r#"{"query": "#),
/// ]);
/// assert_eq!(calls.plan.steps.len(), 1);
/// assert_eq!(calls.findings.errors().next().map(|finding| finding.step), Some(Some(StepId(2))));
/// ```
#[must_use]
pub fn lower_calls(calls: &[ToolCall]) -> NativeCalls {
    let mut findings = Findings::default();
    let mut steps = Vec::with_capacity(calls.len());
    let mut seen: BTreeMap<&str, StepId> = BTreeMap::new();
    for (call, number) in calls.iter().zip(1..) {
        let id = StepId(number);
        let label = Form::Native.label(id);
        if let Some(first) = seen.get(call.id.as_str()) {
            let first = Form::Native.label(*first);
            let message = format!(
                "{label}: its id `{}` is already used by {first}; expected a unique id",
                call.id
            );
            findings.push(Finding::of_step(FindingKind::DuplicateStep, id, message));
            continue;
        }
        seen.insert(call.id.as_str(), id);
        match arguments(id, &call.arguments, &mut findings) {
            Ok(arguments) => steps.push(Step {
                id,
                action: Action::Call { function: call.name.clone(), arguments },
                after: Vec::new(),
                on_failure: FailurePolicy::default(),
            }),
            Err(finding) => findings.push(finding),
        }
    }
    let ids = calls.iter().map(|call| call.id.clone()).collect();
    NativeCalls { plan: Plan { form: Form::Native, steps }, findings, ids }
}

/// Returns the arguments of a call; an empty text means none.
fn arguments(id: StepId, text: &str, findings: &mut Findings) -> Result<Template, Finding> {
    let label = Form::Native.label(id);
    if text.trim().is_empty() {
        return Ok(Template::Object(Vec::new()));
    }
    let wrong = |kind, message| Finding::of_step(kind, id, format!("{label}: {message}"));
    let node = json::read(text).map_err(|error| {
        let kind = match error {
            ParseError::Truncated { .. } => FindingKind::Truncated,
            ParseError::TooDeep { .. } => FindingKind::OverLimit,
            _ => FindingKind::Syntax,
        };
        wrong(kind, format!("its arguments: {error}"))
    })?;
    if !matches!(node.value, Value::Object(_)) {
        let message = format!("its arguments are {}; expected an object", node.value.kind());
        return Err(wrong(FindingKind::Syntax, message));
    }
    let mut flaws = Vec::new();
    let template = Template::of_json(node, None, &mut flaws);
    let mut flaws = flaws.into_iter().map(|flaw| {
        let (kind, at, message) = flaw.finding();
        wrong(kind, message).at(at)
    });
    let Some(first) = flaws.next() else { return Ok(template) };
    findings.extend(flaws);
    Err(first)
}
