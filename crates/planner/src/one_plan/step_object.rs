//! One member of `action_plan`, lowered to a step.

use crate::json::{Member, Node, Value};
use crate::{
    Action, FailurePolicy, Finding, FindingKind, Position, Spelling, Step, StepId, Template,
};
use std::collections::BTreeSet;

/// The function of an anchor: it calls no tool.
pub(super) const ANCHOR: &str = "anchor_function";

/// The result of lowering a member.
pub(super) struct Lowered {
    /// The number in its key.
    pub(super) id: Option<StepId>,
    /// The step, unless it has no number or no function.
    pub(super) step: Option<Step>,
    pub(super) findings: Vec<Finding>,
}

/// Lowers `"stepN": {"function": .., "args": .., "dependence": ..}`.
pub(super) fn lower(member: Member) -> Lowered {
    let mut notes = Notes { step: None, findings: Vec::new() };
    let id = number(&member, &mut notes);
    notes.step = id;
    let step = id.and_then(|id| step(id, member.node, &mut notes));
    Lowered { id, step, findings: notes.findings }
}

/// A collector of findings about one step.
struct Notes {
    step: Option<StepId>,
    findings: Vec<Finding>,
}

impl Notes {
    fn add(&mut self, kind: FindingKind, at: Position, message: String) {
        let message = match self.step {
            Some(step) => format!("{step}: {message}"),
            None => message,
        };
        self.findings.push(Finding { kind, step: self.step, at: Some(at), message });
    }

    fn wrong(&mut self, at: Position, message: String) {
        self.add(FindingKind::Syntax, at, message);
    }

    fn lenient(&mut self, at: Position, message: String) {
        self.add(FindingKind::Leniency, at, message);
    }
}

/// Returns the number in `stepN`.
fn number(member: &Member, notes: &mut Notes) -> Option<StepId> {
    let Some((id, is_exact)) = read_step(&member.key) else {
        let key = crate::excerpt::of(&member.key);
        let message = format!("the key `{key}` in `action_plan` is not a step; expected `step1`");
        notes.wrong(member.at, message);
        return None;
    };
    if !is_exact {
        notes.lenient(member.at, format!("the key `{}` was read as `{id}`", member.key));
    }
    Some(id)
}

/// Parses `step3` and, less exactly, `Step 3`, `step_3` and `3`; returns whether it was exact.
fn read_step(text: &str) -> Option<(StepId, bool)> {
    let word = text.get(..4).filter(|word| word.eq_ignore_ascii_case("step"));
    let rest = &text[word.map_or(0, str::len)..];
    let digits = rest.trim_start_matches([' ', '_', '-']).trim_end();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let id = digits.parse().ok().filter(|id| *id > 0).map(StepId)?;
    Some((id, text == id.to_string()))
}

fn step(id: StepId, node: Node, notes: &mut Notes) -> Option<Step> {
    let at = node.at;
    let Value::Object(members) = node.value else {
        let found = node.value.kind();
        notes.wrong(at, format!("found {found}; expected an object with `function` and `args`"));
        return None;
    };
    let mut fields = Fields::default();
    for member in members {
        fields.take(member, notes);
    }
    let Some(Node { value: Value::Text(function), .. }) = fields.function else {
        let found = fields.function.as_ref().map_or("none", |node| node.value.kind());
        notes.wrong(at, format!("`function` is {found}; expected the name of a tool"));
        return None;
    };
    let arguments =
        fields.arguments.map_or(Template::Object(Vec::new()), |node| arguments(node, notes));
    let mut after = BTreeSet::new();
    if let Some(node) = fields.dependence {
        dependences(node, &mut after, notes);
    }
    for reference in arguments.references() {
        if after.insert(reference.step) {
            let message = format!(
                "it refers to {0}, which `dependence` does not name; {0} was added there",
                reference.step
            );
            notes.add(FindingKind::AddedDependence, at, message);
        }
    }
    let action = if function == ANCHOR {
        let Some(task) = task(&arguments) else {
            notes.wrong(at, format!("`{ANCHOR}` expects a text in `args.task`"));
            return None;
        };
        if let Template::Object(members) = &arguments {
            for (key, _) in members.iter().filter(|(key, _)| key != "task") {
                let key = crate::excerpt::of(key);
                notes.lenient(at, format!("`args.{key}` of the anchor was ignored"));
            }
        }
        Action::Anchor { task }
    } else {
        Action::Call { function, arguments }
    };
    let on_failure =
        fields.on_failure.map_or_else(FailurePolicy::default, |node| policy(&node, notes));
    Some(Step { id, action, after: after.into_iter().collect(), on_failure })
}

/// The members of a step's object.
#[derive(Default)]
struct Fields {
    function: Option<Node>,
    arguments: Option<Node>,
    dependence: Option<Node>,
    on_failure: Option<Node>,
}

impl Fields {
    fn take(&mut self, member: Member, notes: &mut Notes) {
        let (field, name) = match member.key.as_str() {
            "function" => (&mut self.function, "function"),
            "args" | "arguments" | "parameters" => (&mut self.arguments, "args"),
            "dependence" | "dependences" | "dependencies" | "depends_on" => {
                (&mut self.dependence, "dependence")
            }
            "on_failure" => (&mut self.on_failure, "on_failure"),
            key => {
                let message = format!("the key `{}` was ignored", crate::excerpt::of(key));
                notes.lenient(member.at, message);
                return;
            }
        };
        if field.is_some() {
            let message = format!("`{name}` occurs twice in one object; expected it once");
            notes.add(FindingKind::DuplicateKey, member.at, message);
            return;
        }
        if member.key != name {
            notes.lenient(member.at, format!("the key `{}` was read as `{name}`", member.key));
        }
        *field = Some(member.node);
    }
}

fn arguments(node: Node, notes: &mut Notes) -> Template {
    let at = node.at;
    if node.value.is_null() {
        notes.lenient(at, "`args` is null; it was read as `{}`".to_owned());
        return Template::Object(Vec::new());
    }
    if !matches!(node.value, Value::Object(_)) {
        let found = node.value.kind();
        notes.wrong(at, format!("`args` is {found}; expected an object"));
        return Template::Object(Vec::new());
    }
    let mut flaws = Vec::new();
    let template = Template::of_json(node, Some(Spelling::OnePlan), &mut flaws);
    for flaw in flaws {
        let (kind, at, message) = flaw.finding();
        notes.add(kind, at, message);
    }
    template
}

/// Returns the text of `args.task` as it was written.
fn task(arguments: &Template) -> Option<String> {
    match arguments.member("task")? {
        Template::Text(text) => Some(text.clone()),
        Template::Whole(reference) => Some(reference.to_string()),
        Template::Mixed(pieces) => Some(crate::template::spell(pieces, Spelling::OnePlan)),
        _ => None,
    }
}

/// Parses a list of step numbers; a single number and `"step1"` are tolerated.
fn dependences(node: Node, after: &mut BTreeSet<StepId>, notes: &mut Notes) {
    let at = node.at;
    let values = match node.value {
        Value::Array(values) => values,
        value if value.is_null() => return,
        value => {
            notes.lenient(at, "`dependence` was read as a list of one".to_owned());
            vec![Node { at, value }]
        }
    };
    for Node { at, value } in values {
        let id = match &value {
            Value::Scalar(text) => text.parse().ok().filter(|id| *id > 0).map(StepId),
            Value::Text(text) => read_step(text).map(|(id, _)| id),
            _ => None,
        };
        let Some(id) = id else {
            let found = match &value {
                Value::Scalar(text) | Value::Text(text) => {
                    format!("`{}`", crate::excerpt::of(text))
                }
                other => other.kind().to_owned(),
            };
            let message =
                format!("`dependence` contains {found}; expected step numbers of 1 or more");
            notes.wrong(at, message);
            continue;
        };
        if let Value::Text(text) = &value {
            notes.lenient(at, format!("the dependence \"{text}\" was read as {}", id.0));
        }
        if !after.insert(id) {
            notes.lenient(at, format!("the dependence {} occurs twice", id.0));
        }
    }
}

fn policy(node: &Node, notes: &mut Notes) -> FailurePolicy {
    let Value::Text(text) = &node.value else {
        notes.wrong(node.at, format!("`on_failure` is {}; expected a name", node.value.kind()));
        return FailurePolicy::default();
    };
    match text.as_str() {
        "skip_dependents" => FailurePolicy::SkipDependents,
        "fail_fast" => FailurePolicy::FailFast,
        "continue_with_error" => FailurePolicy::ContinueWithError,
        _ => {
            let message = format!(
                "`on_failure` is `{}`; expected skip_dependents, fail_fast or continue_with_error",
                crate::excerpt::of(text)
            );
            notes.wrong(node.at, message);
            FailurePolicy::default()
        }
    }
}
