//! Turns that one plan would have saved.

use super::known::{Known, is_conditional};
use crate::trajectory::{ToolCallRecord, ToolRecord, Trajectory, TurnClass};
use foldback_planner::{PathSegment, StepResult};
use foldback_tool::{Data, Language};
use serde_json::Value;

/// Consecutive turns of one call each that could have been one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannableTurns {
    /// Their numbers, ascending; two or more.
    pub turns: Vec<u32>,
}

impl PlannableTurns {
    /// Returns how many turns one plan would have saved.
    #[must_use]
    pub fn spared(&self) -> usize {
        self.turns.len().saturating_sub(1)
    }
}

/// Finds consecutive turns of a single call whose arguments took nothing unforeseeable from the results
/// between them.
///
/// The content of an argument was foreseeable if it is in the instructions, the request, the tool's own
/// description, a result before those turns or an argument of one of them; if it is a whole result
/// (`$$step1.result$$`); or if it is a part of a result that the tool's output schema declares. In an
/// argument that is code, the model's own words are foreseeable unless a result has them. Everything else
/// counts as taken from what was seen, also a choice between the values of an `enum` or between true and
/// false, so that looking is never blamed if it may have been needed:
///
/// - a call after a failed one reacts to the failure;
/// - if the request has a condition (`if`, 如果), the choice of the tool may depend on a result, and no
///   turn is blamed.
#[must_use]
pub fn could_have_planned_once(record: &Trajectory) -> Vec<PlannableTurns> {
    let mut found = Vec::new();
    if is_conditional(&record.situation.request) {
        return found;
    }
    let mut run: Vec<Single<'_>> = Vec::new();
    for turn in &record.strategy.turns {
        let single =
            (turn.class == TurnClass::StepObserve).then(|| Single::of(record, turn.turn)).flatten();
        let Some(single) = single else {
            close(&mut run, &mut found);
            continue;
        };
        if !extends(record, &run, &single) {
            close(&mut run, &mut found);
        }
        run.push(single);
    }
    close(&mut run, &mut found);
    found
}

/// A turn of one call.
struct Single<'r> {
    turn: u32,
    call: &'r ToolCallRecord,
    result: &'r StepResult,
    tool: &'r ToolRecord,
}

impl<'r> Single<'r> {
    fn of(record: &'r Trajectory, turn: u32) -> Option<Self> {
        let mut calls = record.tool_calls().filter(|call| call.turn == turn);
        let call = calls.next()?;
        let result = record.result(turn, call.step)?;
        let tool = record.situation.tools.iter().find(|tool| tool.name == call.function)?;
        calls.next().is_none().then_some(Self { turn, call, result, tool })
    }

    fn data(&self) -> Option<&'r Data> {
        match self.result {
            StepResult::Success { data } => Some(data),
            _ => None,
        }
    }
}

/// Ends a run of turns, and keeps it if a plan would have saved something.
fn close(run: &mut Vec<Single<'_>>, found: &mut Vec<PlannableTurns>) {
    let turns: Vec<u32> = run.drain(..).map(|single| single.turn).collect();
    if turns.len() > 1 {
        found.push(PlannableTurns { turns });
    }
}

/// Returns whether a plan with the steps of `run` could also have had `next`.
fn extends(record: &Trajectory, run: &[Single<'_>], next: &Single<'_>) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    let Ok(arguments) = serde_json::from_str::<Value>(&next.call.arguments) else { return false };
    if last.turn + 1 != next.turn || run.iter().any(|single| single.data().is_none()) {
        return false;
    }
    let mut known = Known::default();
    let situation = &record.situation;
    known.learn(&situation.system_prompt);
    known.learn(&situation.request);
    known.learn(&next.tool.name);
    known.learn(&next.tool.description);
    if let Ok(mut schema) = serde_json::from_str(&next.tool.parameters) {
        leave_choices_out(&mut schema);
        known.learn(&schema.to_string());
    }
    let before = record.results.iter().filter(|result| result.turn < first.turn);
    for earlier in before {
        if let StepResult::Success { data } = &earlier.result {
            known.learn(&data.text);
        }
    }
    for single in run {
        known.learn(&single.call.arguments);
        let Some(data) = single.data() else { return false };
        known.foresee(data.text.trim());
        known.seen(&data.text);
        let json = data.structured.as_deref().unwrap_or(&data.text);
        let schema = single.tool.output.as_deref().and_then(|s| serde_json::from_str(s).ok());
        if let (Ok(json), Some(schema)) = (serde_json::from_str::<Value>(json), schema) {
            declared(&json, &schema, &mut |part| known.foresee(part));
        }
    }
    leaves(&arguments, None, &mut |key, text| {
        let language = key.and_then(|key| next.tool.languages.get(key)).map(|of| of.0);
        match language {
            None | Some(Language::Raw) => known.covers(text),
            Some(_) => known.covers_code(text),
        }
    })
}

/// Visits the parts of a result that its schema declares, both texts and numbers.
fn declared(value: &Value, schema: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if let Some(schema) = member(schema, key) {
                    declared(value, schema, found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter().for_each(|item| declared(item, schema, found));
            }
        }
        Value::String(text) => found(text.trim()),
        Value::Number(number) => found(&number.to_string()),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Removes from a schema the values that it offers as a choice; a single value is not a choice.
fn leave_choices_out(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_choice = |value: &Value| value.as_array().is_some_and(|of| of.len() > 1);
            // A schema for all booleans says nothing about one of them.
            members.retain(|_, value| !value.is_boolean());
            members.retain(|key, value| key != "enum" || !is_choice(value));
            members.values_mut().for_each(leave_choices_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_choices_out),
        _ => {}
    }
}

/// Returns the schema of a member.
fn member<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(key)
}

/// Returns the schema of the part at the end of a path, if the whole path is declared.
pub(super) fn part_of<'s>(schema: &'s Value, path: &[PathSegment]) -> Option<&'s Value> {
    path.iter().try_fold(schema, |schema, segment| match segment {
        // In an array, a key of digits is an index.
        PathSegment::Key(key) => member(schema, key)
            .or_else(|| key.parse::<usize>().ok().and_then(|_| schema.get("items"))),
        PathSegment::Index(_) => schema.get("items"),
    })
}

/// Returns whether `holds` is true of every meaningful value of the arguments. `key` is the argument's name.
fn leaves(
    value: &Value,
    key: Option<&str>,
    holds: &mut impl FnMut(Option<&str>, &str) -> bool,
) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().all(|(name, value)| leaves(value, key.or(Some(name)), holds))
        }
        Value::Array(items) => items.iter().all(|item| leaves(item, key, holds)),
        Value::String(text) => holds(key, text),
        Value::Number(number) => holds(key, &number.to_string()),
        Value::Bool(value) => holds(key, if *value { "true" } else { "false" }),
        Value::Null => true,
    }
}
