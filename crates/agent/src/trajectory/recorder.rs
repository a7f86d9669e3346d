//! A record as it grows beside a run.

mod absorb;

use super::ToolRecord;
use super::{
    CallRecord, CallTime, Degraded, Ending, ModelCall, ModelFailure, PlanRecord, Purpose,
    ResultRecord, Situation, Spent, StrategyRecord, Timing, ToolCallRecord, Trajectory, TurnClass,
    TurnRecord,
};
use crate::json_line::compact;
use crate::{Outcome, StrategyName};
use foldback_core::Message;
use foldback_llm::{ChatRequest, ChatResponse, ModelError, Usage};
use foldback_planner::{Form, Plan, StepId, StepResult};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Writes down what happens, as it happens. Clones write into the same record.
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
    pub(crate) fn begin(situation: Situation, chosen: StrategyName) -> Self {
        let record = Growing {
            began: Instant::now(),
            situation,
            strategy: StrategyRecord { chosen, because: None, degraded: None, turns: Vec::new() },
            plan: Vec::new(),
            calls: Vec::new(),
            times: Vec::new(),
            running: HashMap::new(),
            results: BTreeMap::new(),
            tokens: BTreeMap::new(),
        };
        Self { record: Arc::new(Mutex::new(record)) }
    }

    /// The number of the next turn with tool calls.
    pub(crate) fn next_turn(&self) -> u32 {
        let record = self.record.lock();
        let planned = record.plan.last().map(|plan| plan.turn);
        let done = record.results.last_key_value().map(|((turn, _), _)| *turn);
        planned.max(done).map_or(0, |last| last + 1)
    }

    /// A call of the model begins.
    pub(crate) fn ask(&self, purpose: Purpose, request: &ChatRequest) -> Asked {
        self.begin_call(purpose, Some(hash(request)), false)
    }

    /// The journal holds what the model answered an earlier process.
    pub(crate) fn recalled(&self, purpose: Purpose, answer: &Result<ChatResponse, ModelError>) {
        let asked = self.begin_call(purpose, None, true);
        self.answered(asked, answer);
    }

    fn begin_call(&self, purpose: Purpose, request: Option<String>, from_journal: bool) -> Asked {
        let call = ModelCall {
            purpose: purpose.clone(),
            request,
            message: None,
            stop: None,
            usage: Usage::default(),
            error: None,
            from_journal,
        };
        Asked { index: self.record.lock().start(CallRecord::Model(call)), purpose }
    }

    /// It has ended.
    pub(crate) fn answered(&self, asked: Asked, answer: &Result<ChatResponse, ModelError>) {
        let record = &mut *self.record.lock();
        record.end(asked.index);
        let spent = record.tokens.entry(asked.purpose).or_default();
        spent.calls += 1;
        let Some(CallRecord::Model(call)) = record.calls.get_mut(asked.index) else { return };
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
    pub(crate) fn planned(&self, turn: u32, purpose: Purpose, plan: &Plan, findings: Vec<String>) {
        let steps = plan.steps.clone();
        let plan = PlanRecord { turn, form: plan.form, purpose, findings, steps };
        self.record.lock().plan.push(plan);
    }

    /// A turn's calls are known, so is its class. A planned run is one turn, whose later plans add their
    /// calls; whatever its number of calls, all of them were planned at once.
    pub(crate) fn classify(&self, turn: u32, form: Form, calls: usize) {
        let class = match form {
            Form::OnePlan => TurnClass::PlanOnce,
            Form::ExecuteTools | Form::Native => TurnClass::of(calls),
        };
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let mut record = self.record.lock();
        match record.strategy.turns.last_mut().filter(|last| last.turn == turn) {
            Some(last) => last.calls = last.calls.saturating_add(calls),
            None => record.strategy.turns.push(TurnRecord { turn, class, calls }),
        }
        if form != Form::OnePlan {
            record.log(turn);
        }
    }

    /// Which strategy was chosen for the request, and why.
    pub(crate) fn chosen(&self, strategy: StrategyName, because: String) {
        let record = &mut self.record.lock().strategy;
        (record.chosen, record.because) = (strategy, Some(because));
    }

    /// Tools that are there beside those of the agent, each name once.
    pub(crate) fn know_tools(&self, others: impl IntoIterator<Item = ToolRecord>) {
        let tools = &mut self.record.lock().situation.tools;
        for other in others {
            if tools.iter().all(|known| known.name != other.name) {
                tools.push(other);
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The run goes on step by step.
    pub(crate) fn degraded(&self, degraded: Degraded) {
        tracing::info!(because = ?degraded.because, detail = %degraded.detail, "degraded to react");
        self.record.lock().strategy.degraded = Some(degraded);
    }

    /// A tool begins.
    pub(crate) fn step_began(&self, turn: u32, step: StepId, function: &str, arguments: &str) {
        let mut record = self.record.lock();
        let place = record.tool_call(turn, step, function, arguments);
        record.running.insert((turn, step), place);
    }

    /// The executor has ended a turn's steps: what each came to, and when its call was made.
    pub(crate) fn ran(&self, turn: u32, outcome: &Outcome) {
        let mut record = self.record.lock();
        let began = record.now().saturating_sub(micros(outcome.elapsed));
        for (step, call) in &outcome.calls {
            let place = match record.running.remove(&(turn, *step)) {
                Some(place) => place,
                None => record.tool_call(turn, *step, &call.function, &call.arguments),
            };
            if let Some(time) = record.times.get_mut(place) {
                time.start_us = began + micros(call.started);
                time.end_us = began + micros(call.ended);
            }
        }
        for (step, result) in &outcome.results {
            record.results.insert((turn, *step), result.clone());
        }
        if record.plan.iter().any(|plan| plan.turn == turn && plan.form == Form::OnePlan) {
            record.log(turn);
        }
    }

    /// A step that was refused before it came to the executor.
    pub(crate) fn refused(&self, turn: u32, step: StepId, result: StepResult) {
        self.record.lock().results.insert((turn, step), result);
    }

    /// A step that [began](Self::step_began) beside the executor has ended.
    pub(crate) fn step_ended(&self, turn: u32, step: StepId, result: StepResult) {
        let mut record = self.record.lock();
        if let Some(place) = record.running.remove(&(turn, step)) {
            record.end(place);
        }
        record.results.insert((turn, step), result);
    }

    /// The record, with the run at its end. What clones of this write afterwards is in no record.
    pub(crate) fn finish(self, outcome: Ending) -> Trajectory {
        let mut record = self.record.lock();
        let results = std::mem::take(&mut record.results).into_iter();
        let results = results.map(|((turn, step), result)| ResultRecord { turn, step, result });
        Trajectory {
            situation: record.situation.clone(),
            strategy: record.strategy.clone(),
            plan: std::mem::take(&mut record.plan),
            calls: std::mem::take(&mut record.calls),
            results: results.collect(),
            timing: Timing { total_us: record.now(), calls: std::mem::take(&mut record.times) },
            tokens: std::mem::take(&mut record.tokens),
            rewards: BTreeMap::new(),
            outcome,
        }
    }
}

impl Growing {
    fn log(&self, turn: u32) {
        let Some(record) = self.strategy.turns.iter().find(|record| record.turn == turn) else {
            return;
        };
        let TurnRecord { class, calls, .. } = record;
        tracing::info!(turn, class = class.name(), calls, "turn classified");
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
