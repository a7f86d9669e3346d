//! A record as it grows beside a run.

use super::{
    CallRecord, CallTime, Degraded, Ending, ModelCall, ModelFailure, PlanRecord, Purpose,
    ResultRecord, Situation, Spent, Strategy, StrategyRecord, Timing, ToolCallRecord, Trajectory,
    TurnClass, TurnRecord,
};
use crate::Outcome;
use crate::json_line::compact;
use foldback_core::Message;
use foldback_llm::{ChatRequest, ChatResponse, ModelError, Usage};
use foldback_planner::{Form, Plan, StepId, StepResult};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// Writes down what happens, as it happens.
#[derive(Debug)]
pub(crate) struct Recorder {
    began: Instant,
    situation: Situation,
    strategy: StrategyRecord,
    plan: Vec<PlanRecord>,
    calls: Vec<CallRecord>,
    times: Vec<CallTime>,
    running: HashMap<(u32, StepId), usize>,
    results: BTreeMap<(u32, StepId), StepResult>,
    tokens: BTreeMap<Purpose, Spent>,
}

/// A call of the model that was begun.
#[derive(Debug)]
pub(crate) struct Asked {
    index: usize,
    purpose: Purpose,
}

impl Recorder {
    pub(crate) fn begin(situation: Situation, chosen: Strategy) -> Self {
        Self {
            began: Instant::now(),
            situation,
            strategy: StrategyRecord { chosen, degraded: None, turns: Vec::new() },
            plan: Vec::new(),
            calls: Vec::new(),
            times: Vec::new(),
            running: HashMap::new(),
            results: BTreeMap::new(),
            tokens: BTreeMap::new(),
        }
    }

    /// The number of the next turn with tool calls.
    pub(crate) fn next_turn(&self) -> u32 {
        let planned = self.plan.last().map(|plan| plan.turn);
        let done = self.results.last_key_value().map(|((turn, _), _)| *turn);
        planned.max(done).map_or(0, |last| last + 1)
    }

    /// A call of the model begins.
    pub(crate) fn ask(&mut self, purpose: Purpose, request: &ChatRequest) -> Asked {
        let call = ModelCall {
            purpose,
            request: Some(hash(request)),
            message: None,
            stop: None,
            usage: Usage::default(),
            error: None,
        };
        Asked { index: self.start(CallRecord::Model(call)), purpose }
    }

    /// It has ended.
    pub(crate) fn answered(&mut self, asked: Asked, answer: &Result<ChatResponse, ModelError>) {
        self.end(asked.index);
        let spent = self.tokens.entry(asked.purpose).or_default();
        spent.calls += 1;
        let Some(CallRecord::Model(call)) = self.calls.get_mut(asked.index) else { return };
        match answer {
            Ok(response) => {
                spent.usage += response.usage;
                call.message = Some(one_line(&response.message));
                call.stop = Some(response.stop.clone());
                call.usage = response.usage;
            }
            Err(error) => {
                let (kind, message) = (error.kind.as_str().to_owned(), error.message.clone());
                call.error = Some(ModelFailure { kind, message });
            }
        }
    }

    /// A plan was made. `findings` are what keeps it from being run.
    pub(crate) fn planned(
        &mut self,
        turn: u32,
        purpose: Purpose,
        plan: &Plan,
        findings: Vec<String>,
    ) {
        let steps = plan.steps.clone();
        self.plan.push(PlanRecord { turn, form: plan.form, purpose, findings, steps });
    }

    /// A turn's calls are known, so is its class. A planned run is one turn, whose later plans add their
    /// calls; whatever its number of calls, all of them were planned at once.
    pub(crate) fn classify(&mut self, turn: u32, form: Form, calls: usize) {
        let class = match form {
            Form::OnePlan => TurnClass::PlanOnce,
            Form::ExecuteTools | Form::Native => TurnClass::of(calls),
        };
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        match self.strategy.turns.last_mut().filter(|last| last.turn == turn) {
            Some(last) => last.calls = last.calls.saturating_add(calls),
            None => self.strategy.turns.push(TurnRecord { turn, class, calls }),
        }
        if form != Form::OnePlan {
            self.log(turn);
        }
    }

    fn log(&self, turn: u32) {
        let Some(record) = self.strategy.turns.iter().find(|record| record.turn == turn) else {
            return;
        };
        let TurnRecord { class, calls, .. } = record;
        tracing::info!(turn, class = class.name(), calls, "turn classified");
    }

    /// The run goes on step by step.
    pub(crate) fn degraded(&mut self, degraded: Degraded) {
        tracing::info!(because = ?degraded.because, detail = %degraded.detail, "degraded to react");
        self.strategy.degraded = Some(degraded);
    }

    /// A tool begins.
    pub(crate) fn step_began(&mut self, turn: u32, step: StepId, function: &str, arguments: &str) {
        let place = self.tool_call(turn, step, function, arguments);
        self.running.insert((turn, step), place);
    }

    /// The executor has ended a turn's steps: what each came to, and when its call was made.
    pub(crate) fn ran(&mut self, turn: u32, outcome: &Outcome) {
        let began = self.now().saturating_sub(micros(outcome.elapsed));
        for (step, call) in &outcome.calls {
            let place = match self.running.remove(&(turn, *step)) {
                Some(place) => place,
                None => self.tool_call(turn, *step, &call.function, &call.arguments),
            };
            if let Some(time) = self.times.get_mut(place) {
                time.start_us = began + micros(call.started);
                time.end_us = began + micros(call.ended);
            }
        }
        for (step, result) in &outcome.results {
            self.results.insert((turn, *step), result.clone());
        }
        if self.plan.iter().any(|plan| plan.turn == turn && plan.form == Form::OnePlan) {
            self.log(turn);
        }
    }

    /// A step that was refused before it came to the executor.
    pub(crate) fn refused(&mut self, turn: u32, step: StepId, result: StepResult) {
        self.results.insert((turn, step), result);
    }

    /// A step that [began](Self::step_began) beside the executor has ended.
    pub(crate) fn step_ended(&mut self, turn: u32, step: StepId, result: StepResult) {
        if let Some(place) = self.running.remove(&(turn, step)) {
            self.end(place);
        }
        self.results.insert((turn, step), result);
    }

    /// The record, with the run at its end.
    pub(crate) fn finish(self, outcome: Ending) -> Trajectory {
        let total_us = self.now();
        let results = self.results.into_iter();
        let results = results.map(|((turn, step), result)| ResultRecord { turn, step, result });
        Trajectory {
            situation: self.situation,
            strategy: self.strategy,
            plan: self.plan,
            calls: self.calls,
            results: results.collect(),
            timing: Timing { total_us, calls: self.times },
            tokens: self.tokens,
            rewards: BTreeMap::new(),
            outcome,
        }
    }

    /// The tokens that the model took so far, in and out.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.values().map(|spent| spent.usage.input + spent.usage.output).sum()
    }

    fn tool_call(&mut self, turn: u32, step: StepId, function: &str, arguments: &str) -> usize {
        let (function, arguments) = (function.to_owned(), arguments.to_owned());
        self.start(CallRecord::Tool(ToolCallRecord { turn, step, function, arguments }))
    }

    fn start(&mut self, call: CallRecord) -> usize {
        let start_us = self.now();
        self.calls.push(call);
        self.times.push(CallTime { start_us, end_us: start_us });
        self.calls.len() - 1
    }

    fn end(&mut self, index: usize) {
        let now = self.now();
        if let Some(time) = self.times.get_mut(index) {
            time.end_us = now;
        }
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A message's exact JSON on one line, so that a record is one line.
fn one_line(message: &Message) -> Box<RawValue> {
    RawValue::from_string(compact(message.json())).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What a request says, as a number: messages, tools and which of them may be called.
fn hash(request: &ChatRequest) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    request.messages.iter().for_each(|message| part(&message.api_json()));
    for tool in &request.tools {
        [&tool.name, &tool.description, &tool.parameters].into_iter().for_each(|text| part(text));
    }
    part(&format!("{:?}", request.tool_choice));
    hasher.finalize().to_hex().chars().take(32).collect()
}
