//! The turns of BFCL's multi-turn conversations: each turn's calls are one plan.

use super::gold::{GoldPlan, PlanSet, literal};
use super::python_call::PythonCall;
use foldback_planner::{StepId, Template};
use serde::Deserialize;

/// A line of the data set.
#[derive(Deserialize)]
pub(super) struct Line {
    id: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    user: String,
    gold_calls: Vec<String>,
}

impl Line {
    /// Returns one plan for each turn that calls anything, and the number of turns that do not. The
    /// calls change a shared state, so each waits for the previous one.
    pub(super) fn plans(self) -> Result<(Vec<GoldPlan>, usize), String> {
        let (mut plans, mut empty) = (Vec::new(), 0);
        for (turn, Turn { user, gold_calls }) in self.turns.into_iter().enumerate() {
            if gold_calls.is_empty() {
                empty += 1;
                continue;
            }
            let id = format!("{}:{}", self.id, turn + 1);
            let mut calls = Vec::with_capacity(gold_calls.len());
            for (text, before) in gold_calls.iter().zip(0..) {
                let call = PythonCall::parse(text)
                    .map_err(|error| format!("{id}, call {}: {error}: {text:?}", before + 1))?;
                let arguments = call.arguments.into_iter();
                let arguments = arguments.map(|(name, value)| (name, literal(&value)));
                let after = if before > 0 { vec![StepId(before)] } else { Vec::new() };
                calls.push((call.function, Template::Object(arguments.collect()), after));
            }
            plans.push(GoldPlan::new(id, PlanSet::BfclMultiTurn, user, calls));
        }
        Ok((plans, empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_turn_is_a_chain_of_calls() {
        let line = json!({ "id": "b0", "turns": [
            { "user": "移动文件", "gold_calls": ["cd('文档')", "mkdir(dir_name='t')", "ls()"] },
            { "user": "thanks", "gold_calls": [] },
            { "user": "sort", "gold_calls": ["sort('$$step1.result$$')"] },
        ] });
        let line: Line = serde_json::from_value(line).unwrap();
        let (plans, empty) = line.plans().unwrap();
        let waits: Vec<_> = plans.iter().map(GoldPlan::waits).collect();
        assert_eq!(waits, [vec![vec![], vec![0], vec![1]], vec![vec![]]]);
        assert_eq!((plans[1].id.as_str(), empty), ("b0:3", 1));
        // Recorded texts contain no references.
        let (_, arguments) = super::super::gold::call_of(&plans[1].plan.steps[0]).unwrap();
        let text = Template::Text("$$step1.result$$".to_owned());
        assert_eq!(*arguments, Template::Object(vec![("arg1".to_owned(), text)]));
    }

    #[test]
    fn a_call_that_cannot_be_read_is_named() {
        let line = json!({ "id": "b0", "turns": [{ "user": "", "gold_calls": ["cd(", "x"] }] });
        let line: Line = serde_json::from_value(line).unwrap();
        let error = line.plans().unwrap_err();
        assert!(error.starts_with("b0:1, call 1: at byte 3: expected a literal"), "{error}");
    }
}
