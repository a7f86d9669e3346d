//! A model that acts on what it is shown.

use super::script::{Call, Need, Turn, question, report, source};
use super::world::{Field, World};
use foldback_bench::{Counts, Means, Meter};
use foldback_core::{Message, Prices, Prompt, ToolCall};
use foldback_llm::{ChatModel, ChatRequest, ChatResponse, ModelError, StopReason, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// The model's name.
const NAME: &str = "acting";

/// The text that is written for a fact that was not available.
const UNKNOWN: &str = "unknown";

/// A model that follows the turns of a task, and knows a fact only if it is shown. What its request
/// does not contain it asks the context policy for, by one search and one look at what the search
/// names; then it reads the source again, if that is possible; then it writes that it does not know.
///
/// It always asks when it should, and always with good words.
pub(crate) struct Acting {
    world: Arc<World>,
    state: Mutex<State>,
}

struct State {
    turns: VecDeque<Turn>,
    /// The state of the search for the missing fact.
    quest: Quest,
    /// The facts of the answer that are known so far.
    told: Vec<String>,
    calls: u64,
    facts: FactCounts,
    counts: Counts,
    meter: Meter,
    output: u64,
}

/// The progress of the search for one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quest {
    NotBegun,
    Searched,
    Looked,
    ReadAgain,
}

/// The fates of the facts that were needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactCounts {
    /// The number of facts needed.
    pub facts: u64,
    /// Those that were in the request.
    pub visible: u64,
    /// Those that the policy's tools found.
    pub recalled: u64,
    /// Those whose source was read again.
    pub read_again: u64,
    /// Those that were no longer available.
    pub lost: u64,
    /// How often the policy's tools were called.
    pub recalls: u64,
}

impl Acting {
    pub(crate) fn new(world: Arc<World>, turns: Vec<Turn>, prices: Prices) -> Self {
        let state = State {
            turns: turns.into(),
            quest: Quest::NotBegun,
            told: Vec::new(),
            calls: 0,
            facts: FactCounts::default(),
            counts: Counts::default(),
            meter: Meter::new(prices),
            output: 0,
        };
        Self { world, state: Mutex::new(state) }
    }

    /// Returns the fates of the facts.
    pub(crate) fn facts(&self) -> FactCounts {
        self.state.lock().facts
    }

    /// Returns the usage of the requests, and the tokens of the answers.
    pub(crate) fn usage(&self) -> (foldback_bench::Usage, u64) {
        let state = self.state.lock();
        (state.meter.usage(), state.output)
    }

    /// Bills a call that the policy made for its own purposes.
    pub(crate) fn aside(&self, input: u64, output: u64) {
        let mut state = self.state.lock();
        state.meter.apart(input);
        state.output += output;
    }

    /// Returns whether any turns are left.
    pub(crate) fn left(&self) -> usize {
        self.state.lock().turns.len()
    }

    fn answer(&self, request: &ChatRequest) -> ChatResponse {
        let mut state = self.state.lock();
        let state = &mut *state;
        let prompt = Prompt {
            messages: request.messages.clone(),
            tools: request.tools.clone(),
            volatile: request.volatile,
            ..Prompt::default()
        };
        let input = state.meter.call(&mut state.counts, &prompt);
        let message = state.act(&self.world, request);
        let output = state.counts.message(&message);
        state.output += output;
        let stop = match message.tool_calls() {
            [] => StopReason::End,
            _ => StopReason::ToolCalls,
        };
        let usage = Usage { input, output, ..Usage::default() };
        ChatResponse { message, usage, stop, model: NAME.to_owned() }
    }
}

impl State {
    /// Returns the next message: of the turn that is due, or of the search for what it lacks.
    fn act(&mut self, world: &World, request: &ChatRequest) -> Message {
        loop {
            match self.turns.front().cloned() {
                Some(Turn::Look(calls)) => {
                    self.turns.pop_front();
                    return self.calling(
                        calls.into_iter().map(|call| (call.tool, call.arguments.to_string())),
                    );
                }
                Some(Turn::Write(need)) => match self.fact(world, &need, request) {
                    Step::Known(value) => {
                        self.turns.pop_front();
                        let Some(service) = world.services.get(need.service) else { continue };
                        let Call { tool, arguments } = report(service, need.field, &value);
                        return self.calling([(tool, arguments.to_string())]);
                    }
                    Step::Ask(message) => return message,
                },
                Some(Turn::Answer(mut needs)) => {
                    let Some(need) = needs.get(self.told.len()).cloned() else {
                        needs.clear();
                        self.turns.pop_front();
                        let told = self.told.join(", ");
                        return Message::assistant(&format!(
                            "All is written down. Readings: {told}."
                        ));
                    };
                    match self.fact(world, &need, request) {
                        Step::Known(value) => self.told.push(value),
                        Step::Ask(message) => return message,
                    }
                }
                None => return Message::assistant("There is nothing left to do."),
            }
        }
    }

    /// Returns a fact, or the next call in the search for it.
    fn fact(&mut self, world: &World, need: &Need, request: &ChatRequest) -> Step {
        let Some(service) = world.services.get(need.service) else {
            return Step::Known(UNKNOWN.to_owned());
        };
        let value = service.fact(need.field);
        if is_shown(request, value) {
            self.facts.facts += 1;
            match self.quest {
                Quest::NotBegun => self.facts.visible += 1,
                Quest::Searched | Quest::Looked => self.facts.recalled += 1,
                Quest::ReadAgain => self.facts.read_again += 1,
            }
            self.quest = Quest::NotBegun;
            return Step::Known(value.to_owned());
        }
        let means = Means::of(&request.tools);
        if self.quest == Quest::NotBegun {
            self.quest = Quest::Searched;
            if let Some(call) = means.search(&question(service, need.field)) {
                return Step::Ask(self.recalling(call));
            }
        }
        if self.quest == Quest::Searched {
            self.quest = Quest::Looked;
            let answer = request.messages.iter().rev().find(|m| m.tool_call_id().is_some());
            let call = answer.and_then(|answer| means.look(&answer.text()));
            if let Some(call) = call {
                return Step::Ask(self.recalling(call));
            }
        }
        if self.quest == Quest::Looked && need.field != Field::Reading {
            self.quest = Quest::ReadAgain;
            let Call { tool, arguments } = source(service, need.field);
            return Step::Ask(self.calling([(tool, arguments.to_string())]));
        }
        self.facts.facts += 1;
        self.facts.lost += 1;
        self.quest = Quest::NotBegun;
        Step::Known(UNKNOWN.to_owned())
    }

    fn recalling(&mut self, call: ToolCall) -> Message {
        self.facts.recalls += 1;
        self.calling([(call.name.as_str(), call.arguments.clone())])
    }

    fn calling<'a>(&mut self, calls: impl IntoIterator<Item = (&'a str, String)>) -> Message {
        let calls = calls.into_iter().map(|(tool, arguments)| {
            self.calls += 1;
            ToolCall::new(&format!("call_{}", self.calls), tool, &arguments)
        });
        let calls = calls.collect();
        Message::calls("", calls)
    }
}

/// The state of a fact.
enum Step {
    /// It is known, or known to be lost.
    Known(String),
    /// This call comes first.
    Ask(Message),
}

/// Returns whether a value occurs in a request, as it is or as JSON writes it.
fn is_shown(request: &ChatRequest, value: &str) -> bool {
    request.messages.iter().any(|message| {
        message.text().contains(value)
            || message.tool_calls().iter().any(|call| call.arguments.contains(value))
    })
}

impl ChatModel for Acting {
    fn name(&self) -> &str {
        NAME
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move { Ok(self.answer(request)) }.boxed()
    }
}
