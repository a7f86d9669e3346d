//! The recorder, which builds a record during a run.

mod absorb;

use super::ToolRecord;
use super::{
    CallRecord, CallTime, Ending, ModelCall, ModelFailure, PlanRecord, Purpose, ResultRecord,
    Situation, Spent, StrategyRecord, Timing, ToolCallRecord, Trajectory, TurnClass, TurnRecord,
};
use crate::executor::Trace;
use crate::json_line::compact;
use crate::{Outcome, Report, RunEvent, StrategyName};
use foldback_core::{Message, TodoId};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, Usage};
use foldback_planner::{Failure, Form, StepId, StepResult};
use foldback_tool::{Data, FailureKind};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A recorder of events as they happen. Clones write into the same record.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    record: Arc<Mutex<Growing>>,
}

/// The record so far.
#[derive(Debug)]
struct Growing {
    began: Instant,
    situation: Situation,
    strategy: StrategyRecord,
    plan: Vec<PlanRecord>,
    calls: Vec<CallRecord>,
    times: Vec<CallTime>,
    /// The places of the model's calls that have not ended, by purpose and key.
    asked: Vec<(Purpose, String, usize)>,
    running: HashMap<(u32, StepId), usize>,
    results: BTreeMap<(u32, StepId), StepResult>,
    tokens: BTreeMap<Purpose, Spent>,
    /// By turn and first step.
    traces: Vec<(u32, Option<StepId>, Trace)>,
    /// The places of the tools' calls that have ended, by their idempotency keys.
    keys: HashMap<String, usize>,
    /// The runs of sub-agents, by the idempotency key of the call that each worked for, and its todo: a
    /// resumed run replaces its earlier record.
    sub_agents: BTreeMap<(String, Option<TodoId>), Trajectory>,
}

impl Recorder {
    pub(crate) fn begin(situation: Situation, chosen: StrategyName) -> Self {
        Self { record: Arc::new(Mutex::new(Growing::new(situation, chosen))) }
    }

    /// Adds tools besides those of the agent, each name once.
    pub(crate) fn know_tools(&self, others: impl IntoIterator<Item = ToolRecord>) {
        let tools = &mut self.record.lock().situation.tools;
        for other in others {
            if tools.iter().all(|known| known.name != other.name) {
                tools.push(other);
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Records an event, as far as it belongs in the record.
    pub(crate) fn hear(&self, event: &RunEvent<'_>) {
        match *event {
            RunEvent::Chose { strategy, because } => {
                let record = &mut self.record.lock().strategy;
                record.chosen = strategy.clone();
                record.because = Some(because.to_owned());
            }
            RunEvent::Degraded { degraded, .. } => {
                self.record.lock().strategy.degraded = Some(degraded.clone());
            }
            RunEvent::Asked { purpose, key, request, .. } => {
                let hash = Some(hash_of(request));
                self.record.lock().ask(purpose, key, hash, false);
            }
            RunEvent::Answered { purpose, key, answer, from_journal, request_hash, .. } => {
                let record = &mut *self.record.lock();
                if from_journal {
                    record.ask(purpose, key, request_hash.map(str::to_owned), true);
                }
                record.answered(purpose, key, answer);
            }
            RunEvent::Planned { turn, purpose, plan, calls, findings } => {
                let record = &mut *self.record.lock();
                // A plan that cannot be run is not a turn; a block that was refused is one.
                if findings.is_empty() || plan.form != Form::OnePlan {
                    record.classify(turn, plan.form, calls);
                }
                let (steps, findings) = (plan.steps.clone(), findings.to_vec());
                let (form, purpose) = (plan.form, purpose.clone());
                let plan = PlanRecord { turn, form, purpose, findings, steps };
                record.plan.push(plan);
            }
            RunEvent::StepPlaced { turn, step, tool, arguments } => {
                self.record.lock().begin_step(turn, step, tool, arguments);
            }
            RunEvent::OwnCallBegan { turn, step, call } => {
                self.record.lock().begin_step(turn, step, &call.name, &call.arguments);
            }
            RunEvent::OwnCallEnded { turn, step, text, is_error, .. } => {
                let record = &mut *self.record.lock();
                if let Some(place) = record.running.remove(&(turn, step)) {
                    record.end(place);
                }
                record.results.insert((turn, step), result_of(text, is_error));
            }
            RunEvent::StepRefused { turn, step, result, .. } => {
                self.record.lock().results.insert((turn, step), result.clone());
            }
            RunEvent::StepsRan { turn, outcome } => self.record.lock().ran(turn, outcome),
            RunEvent::SubAgentEnded { call, trajectory } => {
                let key = (call.to_owned(), trajectory.situation.todo.clone());
                self.record.lock().sub_agents.insert(key, trajectory.clone());
            }
            _ => {}
        }
    }

    /// Returns the number of the next turn with tool calls.
    pub(crate) fn next_turn(&self) -> u32 {
        let record = self.record.lock();
        let planned = record.plan.last().map(|plan| plan.turn);
        let done = record.results.last_key_value().map(|((turn, _), _)| *turn);
        planned.max(done).map_or(0, |last| last + 1)
    }

    /// Returns the record of the run, which has ended. What clones write afterwards is not recorded.
    pub(crate) fn finish(&self, outcome: Ending) -> Report {
        let mut record = self.record.lock();
        let (situation, chosen) = (record.situation.clone(), record.strategy.chosen.clone());
        let record = std::mem::replace(&mut *record, Growing::new(situation, chosen));
        record.end_with(outcome)
    }
}

impl Growing {
    fn new(situation: Situation, chosen: StrategyName) -> Self {
        Self {
            began: Instant::now(),
            situation,
            strategy: StrategyRecord { chosen, because: None, degraded: None, turns: Vec::new() },
            plan: Vec::new(),
            calls: Vec::new(),
            times: Vec::new(),
            asked: Vec::new(),
            running: HashMap::new(),
            results: BTreeMap::new(),
            tokens: BTreeMap::new(),
            traces: Vec::new(),
            keys: HashMap::new(),
            sub_agents: BTreeMap::new(),
        }
    }

    /// Returns the record of the run, which has ended.
    fn end_with(mut self, outcome: Ending) -> Report {
        let total_us = self.now();
        for ((key, _), run) in std::mem::take(&mut self.sub_agents) {
            let place = self.keys.get(&key).and_then(|place| self.calls.get_mut(*place));
            if let Some(CallRecord::Tool(call)) = place {
                call.sub_agents.push(run);
            }
        }
        let results = self.results.into_iter();
        let results = results.map(|((turn, step), result)| ResultRecord { turn, step, result });
        let mut traces = self.traces;
        // Concurrent runs end in any order.
        traces.sort_by_key(|(turn, step, _)| (*turn, *step));
        let trajectory = Trajectory {
            situation: self.situation,
            strategy: self.strategy,
            plan: self.plan,
            calls: self.calls,
            results: results.collect(),
            timing: Timing { total_us, calls: self.times },
            tokens: self.tokens,
            rewards: BTreeMap::new(),
            outcome,
        };
        Report { trajectory, traces: traces.into_iter().map(|(_, _, trace)| trace).collect() }
    }

    /// Records that a call of the model begins, or is found in the journal.
    fn ask(&mut self, purpose: &Purpose, key: &str, request: Option<String>, from_journal: bool) {
        let place = self.start(CallRecord::Model(ModelCall {
            purpose: purpose.clone(),
            request,
            message: None,
            stop: None,
            usage: Usage::default(),
            error: None,
            from_journal,
        }));
        // A question that was abandoned may be asked again under its name.
        self.asked.retain(|(other, name, _)| (other, name.as_str()) != (purpose, key));
        self.asked.push((purpose.clone(), key.to_owned(), place));
    }

    /// Records that the call has ended.
    fn answered(
        &mut self,
        purpose: &Purpose,
        key: &str,
        answer: &Result<ChatResponse, ModelError>,
    ) {
        let is_it =
            |(other, name, _): &(Purpose, String, usize)| (other, name.as_str()) == (purpose, key);
        let Some(at) = self.asked.iter().position(is_it) else { return };
        let (_, _, place) = self.asked.swap_remove(at);
        self.end(place);
        let spent = self.tokens.entry(purpose.clone()).or_default();
        spent.calls += 1;
        let Some(CallRecord::Model(call)) = self.calls.get_mut(place) else { return };
        match answer {
            Ok(response) => {
                spent.usage += response.usage;
                call.message = Some(one_line(&response.message));
                call.stop = Some(response.stop.clone());
                call.usage = response.usage;
            }
            Err(error) => {
                call.usage = error.usage.unwrap_or_default();
                spent.usage += call.usage;
                let (kind, message) = (error.kind.as_str().to_owned(), error.message.clone());
                call.error = Some(ModelFailure { kind, message });
            }
        }
    }

    /// Classifies a turn, whose calls are known. A planned run is one turn, to which later plans add their
    /// calls; whatever their number, all of them were planned at once.
    fn classify(&mut self, turn: u32, form: Form, calls: usize) {
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

    /// Records that the executor has ended a turn's steps: their results, and the times of their calls.
    fn ran(&mut self, turn: u32, outcome: &Outcome) {
        let began = self.now().saturating_sub(micros(outcome.elapsed));
        for (step, call) in &outcome.calls {
            let place = match self.running.remove(&(turn, *step)) {
                Some(place) => place,
                None => self.tool_call(turn, *step, &call.function, &call.arguments),
            };
            self.keys.insert(call.key.clone(), place);
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
        let first = outcome.results.keys().next().copied();
        self.traces.push((turn, first, outcome.trace.clone()));
    }

    /// Records that a tool's call begins.
    fn begin_step(&mut self, turn: u32, step: StepId, function: &str, arguments: &str) {
        let place = self.tool_call(turn, step, function, arguments);
        self.running.insert((turn, step), place);
    }

    fn log(&self, turn: u32) {
        let Some(record) = self.strategy.turns.iter().find(|record| record.turn == turn) else {
            return;
        };
        let TurnRecord { class, calls, .. } = record;
        tracing::info!(turn, class = class.name(), calls, "turn classified");
    }

    fn tool_call(&mut self, turn: u32, step: StepId, function: &str, arguments: &str) -> usize {
        let (function, arguments) = (function.to_owned(), arguments.to_owned());
        let sub_agents = Vec::new();
        self.start(CallRecord::Tool(ToolCallRecord { turn, step, function, arguments, sub_agents }))
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

/// Returns the result of a step that a tool outside the executor has answered.
fn result_of(text: &str, is_error: bool) -> StepResult {
    let text = text.to_owned();
    if is_error {
        StepResult::Error { failure: Failure { kind: FailureKind::Tool, message: text } }
    } else {
        StepResult::Success { data: Data { text, structured: None } }
    }
}

/// Returns a message's exact JSON on one line, so that a record is one line.
fn one_line(message: &Message) -> Box<RawValue> {
    RawValue::from_string(compact(message.json())).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the hash of a request: its messages, its tools, and which of them may be called.
pub(crate) fn hash_of(request: &ChatRequest) -> String {
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
