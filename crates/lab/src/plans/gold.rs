//! A plan that a source gives for a task, and the arguments that its calls must finally get.

use foldback_planner::{
    Action, FailurePolicy, Form, PathSegment, Piece, Plan, Reference, Step, StepId, Template,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// A plan that is known to be right: its calls, their arguments and their dependences.
#[derive(Clone, Debug, PartialEq)]
pub struct GoldPlan {
    /// Its name in the source.
    pub id: String,
    /// Its origin.
    pub set: PlanSet,
    /// The user's request.
    pub task: String,
    /// The plan. Its steps are numbered from 1 without a gap, and each waits for lower numbers only.
    pub plan: Plan,
}

/// The origin of plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanSet {
    /// NESTFUL: nested calls with references to the results of earlier ones.
    Nestful,
    /// BFCL, multi-turn: calls that change a state, so each waits for the previous one.
    BfclMultiTurn,
    /// ParallelQA: no plan is given, only the number of branches.
    ParallelQa,
    /// Generated from a seed.
    Generated,
}

impl PlanSet {
    /// All sets.
    pub const ALL: [Self; 4] =
        [Self::Nestful, Self::BfclMultiTurn, Self::ParallelQa, Self::Generated];

    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nestful => "nestful",
            Self::BfclMultiTurn => "bfcl_multi_turn",
            Self::ParallelQa => "parallel_qa",
            Self::Generated => "generated",
        }
    }
}

impl GoldPlan {
    /// Returns a plan of calls, given as function, arguments and the numbers of the calls to wait for
    /// in addition to those that the arguments refer to.
    #[must_use]
    pub fn new(
        id: String,
        set: PlanSet,
        task: String,
        calls: Vec<(String, Template, Vec<StepId>)>,
    ) -> Self {
        let steps = (1..).zip(calls).map(|(number, (function, arguments, mut after))| {
            after.extend(references(&arguments).iter().map(|reference| reference.step));
            after.sort_unstable();
            after.dedup();
            let action = Action::Call { function, arguments };
            Step { id: StepId(number), action, after, on_failure: FailurePolicy::default() }
        });
        let plan = Plan { form: Form::OnePlan, steps: steps.collect() };
        Self { id, set, task, plan }
    }

    /// Returns, for each step, the indexes of the steps that it waits for.
    #[must_use]
    pub fn waits(&self) -> Vec<Vec<usize>> {
        let index = |id: &StepId| (id.0 as usize).saturating_sub(1);
        self.plan.steps.iter().map(|step| step.after.iter().map(index).collect()).collect()
    }
}

/// Returns the function and the arguments of a step that is a call.
pub(crate) fn call_of(step: &Step) -> Option<(&str, &Template)> {
    match &step.action {
        Action::Call { function, arguments } => Some((function, arguments)),
        Action::Anchor { .. } => None,
    }
}

/// Returns all references in arguments, in text order.
pub(crate) fn references(template: &Template) -> Vec<&Reference> {
    match template {
        Template::Literal(_) | Template::Text(_) => Vec::new(),
        Template::Whole(reference) => vec![reference],
        Template::Mixed(pieces) => pieces.iter().filter_map(referred).collect(),
        Template::Array(items) => items.iter().flat_map(references).collect(),
        Template::Object(members) => {
            members.iter().flat_map(|(_, value)| references(value)).collect()
        }
    }
}

fn referred(piece: &Piece) -> Option<&Reference> {
    match piece {
        Piece::Reference(reference) => Some(reference),
        Piece::Text(_) => None,
    }
}

/// Returns a JSON value in which nothing is a reference.
pub(crate) fn literal(value: &Value) -> Template {
    lowered(value, &|text| Template::Text(text.to_owned()))
}

/// Returns a JSON value whose texts are read by `text`.
pub(crate) fn lowered(value: &Value, text: &dyn Fn(&str) -> Template) -> Template {
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => {
            Template::Array(items.iter().map(|item| lowered(item, text)).collect())
        }
        Value::Object(members) => {
            let lower = |(key, value): (&String, &Value)| (key.clone(), lowered(value, text));
            Template::Object(members.iter().map(lower).collect())
        }
        other => Template::Literal(other.to_string()),
    }
}

/// Returns the arguments with the results in place: what a tool must be given. It is used to judge what
/// the planner binds, and shares no code with it. `None` if a result has nothing at the path.
pub(crate) fn filled(template: &Template, results: &[Value]) -> Option<Value> {
    Some(match template {
        Template::Literal(json) => serde_json::from_str(json).ok()?,
        Template::Text(text) => Value::String(text.clone()),
        Template::Whole(reference) => found(reference, results)?.clone(),
        Template::Mixed(pieces) => {
            let mut text = String::new();
            for piece in pieces {
                match piece {
                    Piece::Text(part) => text.push_str(part),
                    Piece::Reference(reference) => match found(reference, results)? {
                        Value::String(part) => text.push_str(part),
                        other => text.push_str(&other.to_string()),
                    },
                }
            }
            Value::String(text)
        }
        Template::Array(items) => {
            Value::Array(items.iter().map(|item| filled(item, results)).collect::<Option<_>>()?)
        }
        Template::Object(members) => {
            let fill =
                |(key, value): &(String, Template)| Some((key.clone(), filled(value, results)?));
            Value::Object(members.iter().map(fill).collect::<Option<Map<_, _>>>()?)
        }
    })
}

fn found<'a>(reference: &Reference, results: &'a [Value]) -> Option<&'a Value> {
    let mut value = results.get((reference.step.0 as usize).checked_sub(1)?)?;
    for segment in &reference.path {
        value = match segment {
            PathSegment::Key(key) => value.get(key)?,
            PathSegment::Index(index) => value.get(index)?,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reference(step: u32, key: &str) -> Reference {
        Reference { step: StepId(step), path: vec![PathSegment::Key(key.to_owned())] }
    }

    #[test]
    fn references_become_edges_beside_those_that_are_given() {
        let arguments = Template::Object(vec![
            ("a".to_owned(), Template::Whole(reference(3, "x"))),
            (
                "b".to_owned(),
                Template::Mixed(vec![
                    Piece::Text("价格 ".to_owned()),
                    Piece::Reference(reference(1, "y")),
                ]),
            ),
        ]);
        let none = || Template::Object(Vec::new());
        let calls = vec![
            ("f".to_owned(), none(), vec![]),
            ("f".to_owned(), none(), vec![]),
            ("f".to_owned(), none(), vec![]),
            ("g".to_owned(), arguments.clone(), vec![StepId(2), StepId(1)]),
        ];
        let gold = GoldPlan::new("p".to_owned(), PlanSet::Nestful, String::new(), calls);
        assert_eq!(gold.waits(), [vec![], vec![], vec![], vec![0, 1, 2]]);
        let results = [json!({ "y": { "n": 1.5 } }), json!(null), json!({ "x": [1] }), json!(0)];
        assert_eq!(
            filled(&arguments, &results),
            Some(json!({ "a": [1], "b": "价格 {\"n\":1.5}" }))
        );
        assert_eq!(filled(&arguments, &results[..2]), None);
    }
}
