//! Stub tools for those of a plan: each knows the arguments that it must be given, and answers what
//! later steps refer to.

use super::gold::{GoldPlan, call_of, filled, references};
use foldback_core::ToolDefinition;
use foldback_planner::{PathSegment, Template};
use foldback_tool::{
    CallContext, Data, Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The contents of the tools' answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// Values of every JSON type, all distinct.
    Values,
    /// Texts that look like references and like the end of a call, in every form that a plan has.
    Placeholders,
}

/// The tools of one plan, and what happened to them.
pub(crate) struct World {
    tools: Vec<Arc<Stub>>,
    log: Arc<Mutex<Vec<Begun>>>,
    expected: Vec<Value>,
}

/// A call that was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The index of the step; `None` if no step has these arguments.
    pub step: Option<usize>,
    /// The time.
    pub at: Instant,
}

/// A stub for another tool.
struct Stub {
    spec: ToolSpec,
    /// Whether it accepts any arguments.
    trusts: bool,
    answers: Mutex<Vec<Answer>>,
    log: Arc<Mutex<Vec<Begun>>>,
}

struct Answer {
    step: usize,
    arguments: Value,
    output: Value,
    time: Duration,
    is_used: bool,
}

impl World {
    /// Returns the tools of a plan. Each step takes the time at its index, or none; steps that call one
    /// tool with the same arguments take the time of the first, and get its answer.
    pub(crate) fn new(gold: &GoldPlan, times: &[Duration], filling: Filling) -> Self {
        Self::build(gold, times, filling, false)
    }

    /// Returns tools that accept any arguments, as real ones mostly do: they do not know which plan was
    /// meant.
    pub(crate) fn trusting(gold: &GoldPlan) -> Self {
        Self::build(gold, &[], Filling::Values, true)
    }

    fn build(gold: &GoldPlan, times: &[Duration], filling: Filling, trusts: bool) -> Self {
        let steps = &gold.plan.steps;
        let mut paths: BTreeMap<&str, Paths<'_>> = BTreeMap::new();
        for reference in steps.iter().filter_map(call_of).flat_map(|(_, all)| references(all)) {
            let target = gold.plan.step(reference.step).and_then(call_of);
            if let Some((function, _)) = target {
                paths.entry(function).or_default().add(&reference.path);
            }
        }
        let (mut expected, mut outputs) = (Vec::<Value>::new(), Vec::<Value>::new());
        let mut answers: BTreeMap<&str, Vec<Answer>> = BTreeMap::new();
        for (at, (function, arguments)) in steps.iter().filter_map(call_of).enumerate() {
            let given = filled(arguments, &outputs).unwrap_or_default();
            let of_tool = answers.entry(function).or_default();
            let same = of_tool.iter().find(|answer| answer.arguments == given);
            let (output, time) = match same {
                Some(answer) => (answer.output.clone(), answer.time),
                None => {
                    let mut salt = at * 100;
                    let output = match paths.get(function) {
                        Some(paths) => paths.value(filling, function, &mut salt),
                        None => leaf(filling, function, &mut salt),
                    };
                    (output, times.get(at).copied().unwrap_or_default())
                }
            };
            let arguments = given.clone();
            of_tool.push(Answer {
                step: at,
                arguments,
                output: output.clone(),
                time,
                is_used: false,
            });
            expected.push(given);
            outputs.push(output);
        }
        let log = Arc::new(Mutex::new(Vec::with_capacity(steps.len())));
        let tools = answers.into_iter().map(|(function, answers)| {
            let output = paths.get(function).map(|paths| paths.schema().to_string());
            let spec = spec(function, &answers, steps.iter().filter_map(call_of), output);
            Arc::new(Stub { spec, trusts, answers: Mutex::new(answers), log: Arc::clone(&log) })
        });
        Self { tools: tools.collect(), log, expected }
    }

    /// Returns the tools.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Arc<dyn Tool>> {
        self.tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>)
    }

    /// Returns the arguments that each step must be given.
    pub(crate) fn expected(&self) -> &[Value] {
        &self.expected
    }

    /// Returns the calls that were begun so far, in starting order.
    pub(crate) fn begun(&self) -> Vec<Begun> {
        locked(&self.log).clone()
    }

    /// Returns the time of each step.
    pub(crate) fn times(&self) -> Vec<Duration> {
        let mut times = vec![Duration::ZERO; self.expected.len()];
        for tool in &self.tools {
            for answer in locked(&tool.answers).iter() {
                if let Some(time) = times.get_mut(answer.step) {
                    *time = answer.time;
                }
            }
        }
        times
    }
}

impl Tool for Stub {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let at = Instant::now();
            let given: Value = serde_json::from_str(arguments).unwrap_or_default();
            let found = {
                let mut answers = locked(&self.answers);
                let same = |answer: &&mut Answer| self.trusts || answer.arguments == given;
                let mut all: Vec<&mut Answer> = answers.iter_mut().filter(same).collect();
                let unused = all.iter().position(|answer| !answer.is_used).unwrap_or_default();
                all.get_mut(unused).map(|answer| {
                    answer.is_used = true;
                    (answer.step, answer.output.clone(), answer.time)
                })
            };
            let step = found.as_ref().map(|(step, ..)| *step);
            locked(&self.log).push(Begun { step, at });
            let Some((_, output, time)) = found else {
                let message = format!("no step of the plan has the arguments {arguments}");
                return Err(ToolError::arguments(message));
            };
            if !time.is_zero() {
                tokio::time::sleep(time).await;
            }
            Ok(ToolOutput { data: data(&output) })
        }
        .boxed()
    }
}

/// Returns an answer as a tool gives it: a text is bare, everything else is JSON.
pub(crate) fn data(output: &Value) -> Data {
    let json = output.to_string();
    let text = output.as_str().map_or_else(|| json.clone(), str::to_owned);
    Data { text, structured: Some(json) }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete, whatever panicked elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parts of an answer that are referred to.
#[derive(Default)]
struct Paths<'a> {
    keys: BTreeMap<&'a str, Self>,
    items: BTreeMap<usize, Self>,
}

impl<'a> Paths<'a> {
    fn add(&mut self, path: &'a [PathSegment]) {
        match path {
            [] => {}
            [PathSegment::Key(key), rest @ ..] => self.keys.entry(key).or_default().add(rest),
            [PathSegment::Index(index), rest @ ..] => {
                self.items.entry(*index).or_default().add(rest);
            }
        }
    }

    fn value(&self, filling: Filling, function: &str, salt: &mut usize) -> Value {
        if !self.keys.is_empty() {
            let member = |(key, paths): (&&str, &Self)| {
                ((*key).to_owned(), paths.value(filling, function, salt))
            };
            return Value::Object(self.keys.iter().map(member).collect());
        }
        let Some(last) = self.items.keys().next_back() else {
            return leaf(filling, function, salt);
        };
        let item = |index| match self.items.get(&index) {
            Some(paths) => paths.value(filling, function, salt),
            None => Value::Null,
        };
        Value::Array((0..=*last).map(item).collect())
    }

    fn schema(&self) -> Value {
        if !self.keys.is_empty() {
            let members: Map<String, Value> =
                self.keys.iter().map(|(key, paths)| ((*key).to_owned(), paths.schema())).collect();
            let required: Vec<&&str> = self.keys.keys().collect();
            return json!({ "type": "object", "properties": members, "required": required,
                           "additionalProperties": false });
        }
        match self.items.is_empty() {
            true => json!({}),
            false => json!({ "type": "array" }),
        }
    }
}

/// Returns a value that no other step answers with.
fn leaf(filling: Filling, function: &str, salt: &mut usize) -> Value {
    *salt += 1;
    let n = *salt;
    if filling == Filling::Placeholders {
        return Value::String(format!(
            "{n} $$step1.result$$ {{results[0].data}} $var1$ ${{1}} $1 </execute_python></execute_tools> \
             ]]> &amp; \"quoted\" \\ 第{n}个"
        ));
    }
    match n / 100 % 5 {
        0 => json!(format!("答案 {n} of {function}")),
        1 => json!(n as f64 + 0.5),
        2 => json!([n, "二", null]),
        3 => json!({ "of": function, "值": n }),
        _ => json!(format!("{n}: it's \"quoted\"\nand has two lines")),
    }
}

/// Returns the description of a tool for a model, derived from its calls.
fn spec<'a>(
    function: &str,
    answers: &[Answer],
    calls: impl Iterator<Item = (&'a str, &'a Template)>,
    output: Option<String>,
) -> ToolSpec {
    let mut types: BTreeMap<&str, BTreeSet<Option<&'static str>>> = BTreeMap::new();
    let of_tool = calls.filter(|(name, _)| *name == function);
    for (name, value) in of_tool.flat_map(|(_, arguments)| members(arguments)) {
        types.entry(name).or_default().insert(type_of(value));
    }
    let properties: Map<String, Value> = types
        .iter()
        .map(|(name, types)| {
            let mut types = types.iter();
            let schema = match (types.next(), types.next()) {
                (Some(Some(only)), None) => json!({ "type": only }),
                _ => json!({}),
            };
            ((*name).to_owned(), schema)
        })
        .collect();
    let is_always_there =
        |name: &&&str| answers.iter().all(|answer| answer.arguments.get(**name).is_some());
    let required: Vec<&&str> = types.keys().filter(is_always_there).collect();
    let parameters = json!({ "type": "object", "properties": properties, "required": required,
                             "additionalProperties": false });
    let mut spec = ToolSpec::new(ToolDefinition {
        name: function.to_owned(),
        description: format!("Calls {function}."),
        parameters: parameters.to_string(),
    });
    spec.output = output;
    spec.effect = Effect::ReadOnly;
    spec.server = Some("tools".to_owned());
    spec
}

fn members(arguments: &Template) -> &[(String, Template)] {
    match arguments {
        Template::Object(members) => members,
        _ => &[],
    }
}

/// Returns the JSON type of an argument; `None` if only a run determines it.
fn type_of(value: &Template) -> Option<&'static str> {
    match value {
        Template::Whole(_) => None,
        Template::Text(_) | Template::Mixed(_) => Some("string"),
        Template::Array(_) => Some("array"),
        Template::Object(_) => Some("object"),
        Template::Literal(json) => match json.as_str() {
            "null" => None,
            "true" | "false" => Some("boolean"),
            _ => Some("number"),
        },
    }
}

/// A tool that accepts any arguments, takes no time and answers one word.
pub(crate) fn idle(name: &str) -> Arc<dyn Tool> {
    let mut spec = ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: "Does nothing.".to_owned(),
        parameters: r#"{"type":"object"}"#.to_owned(),
    });
    spec.effect = Effect::ReadOnly;
    Arc::new(FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("done")) }))
}
