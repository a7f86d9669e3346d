//! Small plans to test with.

use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, FailurePolicy, Form, PathSegment, Piece, Plan, Reference, Step, StepId, Template,
};
use foldback_tool::ToolSpec;

/// A step that calls `search` without arguments.
pub(crate) fn step(id: u32, after: &[u32]) -> Step {
    let arguments = Template::Object(Vec::new());
    Step {
        id: StepId(id),
        action: Action::Call { function: "search".to_owned(), arguments },
        after: ids(after),
        on_failure: FailurePolicy::default(),
    }
}

pub(crate) fn step_with(id: u32, after: &[u32], on_failure: FailurePolicy) -> Step {
    Step { on_failure, ..step(id, after) }
}

pub(crate) fn anchor(id: u32, after: &[u32]) -> Step {
    let task = "根据结果决定下一步".to_owned();
    Step { action: Action::Anchor { task }, ..step(id, after) }
}

pub(crate) fn plan(steps: Vec<Step>) -> Plan {
    Plan { form: Form::OnePlan, steps }
}

pub(crate) fn ids(numbers: &[u32]) -> Vec<StepId> {
    numbers.iter().map(|&number| StepId(number)).collect()
}

/// A step that calls a tool.
pub(crate) fn call(id: u32, function: &str, arguments: Template, after: &[u32]) -> Step {
    let action = Action::Call { function: function.to_owned(), arguments };
    Step { action, ..step(id, after) }
}

pub(crate) fn object<const N: usize>(members: [(&str, Template); N]) -> Template {
    Template::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

pub(crate) fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

pub(crate) fn number(json: &str) -> Template {
    Template::Literal(json.to_owned())
}

/// A reference to a part of a result; in the path, digits are places.
pub(crate) fn part(step: u32, path: &[&str]) -> Reference {
    let path = path.iter().map(|segment| match segment.parse() {
        Ok(place) => PathSegment::Index(place),
        Err(_) => PathSegment::Key((*segment).to_owned()),
    });
    Reference { step: StepId(step), path: path.collect() }
}

pub(crate) fn whole(step: u32, path: &[&str]) -> Template {
    Template::Whole(part(step, path))
}

pub(crate) fn mixed(before: &str, step: u32, path: &[&str]) -> Template {
    Template::Mixed(vec![Piece::Text(before.to_owned()), Piece::Reference(part(step, path))])
}

/// A tool with the schemas of its arguments and of its answer.
pub(crate) fn tool(name: &str, input: &str, output: Option<&str>) -> ToolSpec {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: input.to_owned(),
    };
    let mut spec = ToolSpec::new(definition);
    spec.output = output.map(str::to_owned);
    spec
}
