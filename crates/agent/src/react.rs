//! Step by step: the model is asked, its calls run together, and it is asked again with what they
//! brought.

use crate::agent::{Agent, AgentError, Report, Task};
use crate::ask::ask;
use crate::call_ids::CallIds;
use crate::execute_tools::{self, Taken};
use crate::facts::conversation;
use crate::observation;
use crate::one_plan::noted::Answers;
use crate::one_plan::request::Reason;
use crate::trajectory::{Ending, Purpose, Recorder, Stop, Strategy};
use crate::{Outcome, Run, RunOptions, Trace};
use crate::{native_turn, spans};
use foldback_core::{
    Budget, ContextManager, Estimate, Message, Prompt, TokenCounter, ToolDefinition, message_tokens,
};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, ModelErrorKind, Sampling, StopReason};
use std::sync::Arc;
use tracing::Instrument;

/// How an agent goes step by step.
#[derive(Clone, Debug)]
pub struct ReactSettings {
    /// How often the model is asked at most.
    pub max_steps: u32,
    /// How many tokens the model may take in sum, in and out; checked before it is asked.
    pub max_tokens: Option<u64>,
    /// How large a prompt may be, tools included.
    pub prompt: Budget,
    /// How the model writes its calls.
    pub calls: CallForm,
    /// How often in a row the model may answer what cannot be used, before the run ends.
    pub max_unusable: u32,
    /// How answers are drawn.
    pub sampling: Sampling,
}

impl Default for ReactSettings {
    /// 30 steps, calls of the chat API, three unusable answers in a row.
    fn default() -> Self {
        Self {
            max_steps: 30,
            max_tokens: None,
            prompt: Budget::default(),
            calls: CallForm::default(),
            max_unusable: 3,
            sampling: Sampling::default(),
        }
    }
}

/// How the model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallForm {
    /// As tool calls of the chat API.
    #[default]
    Native,
    /// As an `<execute_tools>` block in its message, which may plan several steps. How that is done, and
    /// the tools, are told in the instructions. Tool calls of the chat API work as well.
    ///
    /// A block is run where it begins a line, outside of code fences and of the model's own
    /// `<think>`. Behind other words, as somebody's words are quoted, it is not. A text that the model
    /// repeats at the beginning of a line cannot be told from its own; tools that do harm are what an
    /// [`Approver`](crate::Approver) is for.
    ExecuteTools,
}

impl Agent {
    /// Works on a task step by step, until the model answers in words.
    ///
    /// Everything that happens is recorded in `context`, in order, and nothing is taken back: a failed
    /// call stays with its error. What the model does wrong (an unknown tool, arguments that are no
    /// JSON, a block that breaks off) is told to it and costs a step.
    ///
    /// With a journal, a run of the same name, in a context as it was when that run began, goes on where
    /// it was killed: calls with a result and answers of the model are not asked for again.
    ///
    /// # Errors
    /// When the context or the journal fails.
    pub async fn react(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.check(context)?;
        let recorder = Recorder::begin(self.situation(&task.request), Strategy::React);
        let ids = self.open(context, &self.react_system(), &task.request)?;
        let span = spans::invoke_agent("react", context.todo().as_str());
        let walk = self.go_on(context, task, recorder, Vec::new(), ids).instrument(span.clone());
        let report = walk.await?;
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    /// The instructions of a run step by step.
    pub(crate) fn react_system(&self) -> String {
        match self.react.calls {
            CallForm::Native => self.head.clone(),
            CallForm::ExecuteTools => {
                execute_tools::instructions(&self.head, self.executor.toolbox())
            }
        }
    }

    /// Goes step by step from where a conversation stands.
    pub(crate) async fn go_on(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
        recorder: Recorder,
        traces: Vec<Trace>,
        ids: CallIds,
    ) -> Result<Report, AgentError> {
        let system = self.react_system();
        let tools = match self.react.calls {
            CallForm::Native => {
                self.executor.toolbox().specs().map(|spec| spec.definition.clone()).collect()
            }
            CallForm::ExecuteTools => Vec::new(),
        };
        let system = (!system.is_empty()).then(|| Arc::new(Message::system(&system)));
        let notes = self.executor.open(RunOptions {
            id: task.run.clone(),
            cancelled: task.cancelled.clone(),
            global_context: None,
            depth: task.depth,
            host: task.host(None),
        })?;
        let answers = Answers::of(&notes).since(Purpose::React);
        let mut walk =
            Walk { agent: self, task, system, tools, recorder, traces, ids, notes, answers };
        let outcome = walk.walk(context).await?;
        Ok(Report { trajectory: walk.recorder.finish(outcome), traces: walk.traces })
    }
}

/// A run, step by step.
pub(crate) struct Walk<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) task: &'a Task,
    pub(crate) recorder: Recorder,
    /// The agent's instructions.
    system: Option<Arc<Message>>,
    /// The agent's tools, where they are declared to the chat API.
    tools: Vec<ToolDefinition>,
    traces: Vec<Trace>,
    ids: CallIds,
    /// Where the model's answers are written down.
    notes: Run,
    /// Those that an earlier run of the same name was given.
    answers: Answers,
}

/// What a message of the model comes to.
enum Next {
    /// It asked for something, or is to be asked again.
    Again,
    /// It cannot be used, and is to be asked again a few times.
    Unusable(String),
    Answered(String),
}

impl Walk<'_> {
    async fn walk(&mut self, context: &mut dyn ContextManager) -> Result<Ending, AgentError> {
        let settings = &self.agent.react;
        let mut unusable = 0;
        if self.task.cancelled.is_cancelled() {
            return Ok(Ending { stop: Stop::Cancelled, answer: None });
        }
        for _ in 0..settings.max_steps {
            if settings.max_tokens.is_some_and(|most| self.recorder.tokens() >= most) {
                return Ok(Ending { stop: Stop::TokenBudget, answer: None });
            }
            let request = self.request(context);
            let Some(answer) = self.ask(&request).await? else {
                return Ok(Ending { stop: Stop::Cancelled, answer: None });
            };
            let next = match answer {
                Ok(response) => self.take(context, response).await?,
                Err(error) if error.kind == ModelErrorKind::Response => {
                    let told = observation::of_unreadable_answer(&error.message);
                    context.record(Message::user(&told))?;
                    Next::Unusable(error.message)
                }
                Err(error) => {
                    let stop = Stop::ModelFailed { message: error.message };
                    return Ok(Ending { stop, answer: None });
                }
            };
            if self.task.cancelled.is_cancelled() {
                return Ok(Ending { stop: Stop::Cancelled, answer: None });
            }
            match next {
                Next::Answered(text) => {
                    return Ok(Ending { stop: Stop::Answered, answer: Some(text) });
                }
                Next::Again => unusable = 0,
                Next::Unusable(message) => {
                    unusable += 1;
                    if unusable >= settings.max_unusable {
                        let stop = Stop::ModelFailed { message };
                        return Ok(Ending { stop, answer: None });
                    }
                }
            }
        }
        Ok(Ending { stop: Stop::MaxSteps, answer: None })
    }

    /// The next request: what the context shows, the agent's tools, then those of its policy.
    fn request(&self, context: &mut dyn ContextManager) -> ChatRequest {
        let mut request = ChatRequest::from(self.prompt(context));
        request.tools.splice(0..0, self.tools.iter().cloned());
        request.sampling = self.agent.react.sampling.clone();
        request.session = Some(context.todo().to_string());
        request
    }

    /// What the context shows, below the agent's instructions: a conversation that did not begin with
    /// them does not hold them. They and the agent's tools take their part of the bound.
    fn prompt(&self, context: &dyn ContextManager) -> Prompt {
        let tools =
            self.tools.iter().flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
        let mut taken: usize = tools.map(|text| Estimate.count(text)).sum();
        let mut prompt = context.prompt(&less(self.agent.react.prompt, taken));
        let Some(system) = &self.system else { return prompt };
        let instructions = prompt.messages.iter().take_while(|m| m.role().is_instruction());
        if instructions.clone().any(|message| message.text().contains(&*system.text())) {
            return prompt;
        }
        taken += message_tokens(&Estimate, system);
        prompt = context.prompt(&less(self.agent.react.prompt, taken));
        let instructions = prompt.messages.iter().take_while(|m| m.role().is_instruction());
        let at = instructions.count();
        prompt.messages.insert(at, Arc::clone(system));
        for mark in prompt.cache_marks.iter_mut().filter(|mark| **mark >= at) {
            *mark += 1;
        }
        prompt
    }

    /// Asks the model, or finds the answer that it gave before the run was killed; `None` when the run
    /// was cancelled meanwhile.
    async fn ask(
        &mut self,
        request: &ChatRequest,
    ) -> Result<Option<Result<ChatResponse, ModelError>>, AgentError> {
        if let Some(noted) = self.answers.take(Purpose::React) {
            return Ok(Some(noted));
        }
        let asked = self.recorder.ask(Purpose::React, request);
        let answer = ask(&*self.agent.model, request);
        let Some(answer) = self.task.cancelled.run_until_cancelled(answer).await else {
            return Ok(None);
        };
        self.recorder.answered(asked, &answer);
        Answers::note(&mut self.notes, Purpose::React, &Reason::default(), &answer)?;
        Ok(Some(answer))
    }

    /// Records a message of the model and does what it asks for.
    async fn take(
        &mut self,
        context: &mut dyn ContextManager,
        response: ChatResponse,
    ) -> Result<Next, AgentError> {
        let message = self.ids.own(response.message);
        let text = message.text().into_owned();
        if !message.tool_calls().is_empty() {
            let calls = message.tool_calls().to_vec();
            context.record(message)?;
            native_turn::run(self, context, &calls).await?;
            if self.agent.react.calls == CallForm::ExecuteTools && execute_tools::has_block(&text) {
                context.record(Message::user(observation::BLOCK_BESIDE_CALLS))?;
            }
            return Ok(Next::Again);
        }
        if text.trim().is_empty() {
            // There is nothing to keep: chat APIs refuse an empty message.
            context.record(Message::user(observation::EMPTY_ANSWER))?;
            return Ok(Next::Unusable("the model answered nothing, again and again".to_owned()));
        }
        context.record(message)?;
        if self.agent.react.calls == CallForm::ExecuteTools {
            match execute_tools::run(self, context, &text).await? {
                Taken::NoBlock => {}
                Taken::Told(observation) => {
                    context.record(Message::user(&observation))?;
                    return Ok(Next::Again);
                }
                Taken::Misplaced => {
                    context.record(Message::user(observation::MISPLACED_BLOCK))?;
                    let why = "the model writes its blocks where quotations stand, again and again";
                    return Ok(Next::Unusable(why.to_owned()));
                }
            }
        }
        if response.stop == StopReason::Length {
            context.record(Message::user(observation::CUT_OFF))?;
            return Ok(Next::Unusable(
                "the model's answers are cut off at their greatest length".to_owned(),
            ));
        }
        Ok(Next::Answered(text))
    }

    /// How the executor runs a turn's calls.
    pub(crate) fn run_options(&self, turn: u32, context: &dyn ContextManager) -> RunOptions {
        let sees_all = self.agent.executor.toolbox().specs().any(|tool| tool.global_context);
        RunOptions {
            id: format!("{}/turn-{turn}", self.task.run),
            cancelled: self.task.cancelled.clone(),
            global_context: sees_all.then(|| self.global_context(context).into()),
            depth: self.task.depth,
            host: self.task.host(None),
        }
    }

    /// The conversation as text, for tools that see it.
    fn global_context(&self, context: &dyn ContextManager) -> String {
        conversation(&self.prompt(context).messages)
    }

    /// Takes what the executor did into the record.
    pub(crate) fn ran(&mut self, turn: u32, outcome: &Outcome) {
        self.recorder.ran(turn, outcome);
        self.traces.push(outcome.trace.clone());
    }
}

/// A bound with `taken` tokens less.
fn less(bound: Budget, taken: usize) -> Budget {
    Budget { tokens: bound.tokens.map(|tokens| tokens.saturating_sub(taken)) }
}
