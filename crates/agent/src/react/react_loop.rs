//! A run that goes step by step.

mod asking;

use super::choice::Choice;
use super::execute_tools::Taken;
use super::loop_tools::LoopTools;
use super::repetition::repetition;
use super::stuck::{Repetition, Stuck};
use super::{CallForm, ReactSettings, execute_tools, native_turn};
use crate::agent::{Agent, AgentError};
use crate::facts::conversation;
use crate::model_caller::Reply;
use crate::observation::beginning;
use crate::strategy::StrategyRun;
use crate::trajectory::{Ending, Purpose, Stop, TerminateStatus};
use crate::{Outcome, RunEvent, RunLog, observation};
use foldback_core::{
    Budget, ContextManager, Estimate, Message, Prompt, TokenCounter, ToolDefinition,
    message_tokens, quoted,
};
use foldback_llm::{ChatRequest, ChatResponse, ModelErrorKind, StopReason};
use foldback_planner::{Plan, StepId, StepResult};
use foldback_tool::FailureKind;
use std::sync::Arc;

/// A run that goes step by step.
pub(crate) struct ReactLoop<'a> {
    run: &'a StrategyRun<'a>,
    settings: &'a ReactSettings,
    pub(crate) agent: &'a Agent,
    pub(crate) log: RunLog,
    /// The loop's own tools.
    pub(crate) own: LoopTools,
    /// The tools that the model may call.
    pub(crate) choice: Choice,
    /// Whether the model was asked to call a tool.
    must_call: bool,
    /// The agent's instructions.
    system: Option<Arc<Message>>,
    /// The agent's tools, if they are declared to the chat API, and the loop's.
    tools: Vec<ToolDefinition>,
    /// The tokens that the agent sends before a prompt, as the context was last told.
    front: Option<usize>,
    /// How often the model was asked.
    asked: u32,
    stuck: Stuck,
    /// Whether the last answer came from the journal.
    is_known: bool,
    /// Whether the last answer was empty, and the model was informed of it.
    was_empty: bool,
}

/// What follows from a message of the model.
enum Next {
    /// It asked for something, or is to be asked again.
    Again,
    /// It cannot be used, and the model is to be asked again a few times.
    Unusable(String),
    /// It cannot be used, and asking again would give the same.
    Endless(String),
    Answered(String),
    /// It ended the run, perhaps with last words.
    Terminated(TerminateStatus, Option<String>),
    /// The model repeats itself, and did not stop when it was asked to.
    Stuck,
}

impl<'a> ReactLoop<'a> {
    /// Creates a run that continues from its current state.
    ///
    /// # Errors
    /// When a tool of the loop has the name of one of the agent or of the context's policy, and when the table
    /// of tool availability does not fit the tools.
    pub(crate) fn new(
        settings: &'a ReactSettings,
        system_prompt: &str,
        run: &'a StrategyRun<'a>,
        context: &dyn ContextManager,
    ) -> Result<Self, AgentError> {
        let agent = run.agent();
        let own = LoopTools::new(settings, context);
        let toolbox = agent.executor.toolbox();
        let others = toolbox.specs().map(|spec| &spec.definition).chain(context.tools());
        if let Some(other) = others.into_iter().find(|tool| own.has(&tool.name)) {
            return Err(AgentError::SameName { name: other.name.clone() });
        }
        let mut tools = match settings.calls {
            CallForm::Native => toolbox.specs().map(|spec| spec.definition.clone()).collect(),
            CallForm::ExecuteTools => Vec::new(),
        };
        tools.extend(own.definitions.iter().cloned());
        let declared = tools.iter().chain(context.tools()).cloned().collect();
        Ok(Self {
            run,
            settings,
            agent,
            log: run.log().clone(),
            own,
            choice: Choice::new(settings, declared)?,
            must_call: false,
            system: (!system_prompt.is_empty()).then(|| Arc::new(Message::system(system_prompt))),
            tools,
            front: None,
            asked: 0,
            stuck: Stuck::new(settings.stuck_after),
            is_known: false,
            was_empty: false,
        })
    }

    pub(crate) async fn run_turns(
        &mut self,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let (settings, task) = (self.settings, self.run.task());
        let mut unusable = 0;
        let ended = |stop| Ok(Ending::from(stop));
        if task.cancelled.is_cancelled() {
            return ended(Stop::Cancelled);
        }
        while settings.max_steps.is_none_or(|most| self.asked < most) || self.holds_next() {
            self.log.side_calls(context);
            let request = self.request(context);
            let next = match self.ask(context, request).await? {
                Reply::Answer(response) => self.take(context, response).await?,
                Reply::Failed(error) if error.kind == ModelErrorKind::Response => {
                    self.tell(context, &observation::of_unreadable_answer(&error.message))?;
                    Next::Unusable(error.message)
                }
                Reply::Failed(error) => {
                    return ended(Stop::ModelFailed { message: error.message });
                }
                Reply::Cancelled => return ended(Stop::Cancelled),
                Reply::Exhausted(resource) => return ended(Stop::Exhausted { resource }),
            };
            // What the model said before the run was cancelled counts.
            if task.cancelled.is_cancelled() {
                return ended(Stop::Cancelled);
            }
            match next {
                Next::Answered(text) => {
                    return Ok(Ending::answered(text));
                }
                Next::Terminated(status, answer) => {
                    return Ok(Ending { stop: Stop::Terminated { status }, answer });
                }
                Next::Stuck => return ended(Stop::Stuck),
                Next::Endless(message) => return ended(Stop::ModelFailed { message }),
                Next::Again => unusable = 0,
                Next::Unusable(message) => {
                    unusable += 1;
                    // A run that is resumed afterwards asks again.
                    if unusable >= settings.max_unusable && !self.is_known {
                        return ended(Stop::ModelFailed { message });
                    }
                }
            }
        }
        ended(Stop::MaxSteps)
    }

    /// Returns the next request: what the context shows, the agent's tools, then those of its policy.
    fn request(&mut self, context: &mut dyn ContextManager) -> ChatRequest {
        let (mut prompt, front) = self.prompt(context);
        if self.front != Some(front) {
            // After this many tokens the context may plan a different prompt.
            context.set_front_tokens(front as u64);
            self.front = Some(front);
            (prompt, _) = self.prompt(context);
        }
        let mut request = ChatRequest::from(prompt);
        request.tools.splice(0..0, self.tools.iter().cloned());
        request.tool_choice = self.choice.stated(context.tools(), &request.tools);
        self.must_call = request.tool_choice.must_call();
        request.sampling = self.settings.sampling.clone();
        request.session = Some(context.todo().to_string());
        request
    }

    /// Returns what the context shows, after the agent's instructions: a conversation that did not begin with
    /// them does not hold them. They and the agent's tools take their part of the budget; the second value is
    /// the number of tokens that they take.
    fn prompt(&self, context: &dyn ContextManager) -> (Prompt, usize) {
        let tools =
            self.tools.iter().flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
        let tools: usize = tools.map(|text| Estimate.count(text)).sum();
        let bound = self.bound();
        let mut prompt = context.prompt(&less(bound, tools));
        let instructions = prompt.messages.iter().take_while(|m| m.role().is_instruction());
        let system = self.system.as_ref().filter(|system| {
            !instructions.clone().any(|message| holds(&message.text(), &system.text()))
        });
        let front = tools + system.map_or(0, |system| message_tokens(&Estimate, system));
        let Some(system) = system else { return (prompt, front) };
        prompt = context.prompt(&less(bound, front));
        let instructions = prompt.messages.iter().take_while(|m| m.role().is_instruction());
        let at = instructions.count();
        prompt.messages.insert(at, Arc::clone(system));
        for mark in prompt.cache_marks.iter_mut().filter(|mark| **mark >= at) {
            *mark += 1;
        }
        (prompt, front)
    }

    /// Records a message of the model, and does what it asks for.
    async fn take(
        &mut self,
        context: &mut dyn ContextManager,
        response: ChatResponse,
    ) -> Result<Next, AgentError> {
        let message = self.run.with_own_ids(response.message);
        let repetition = self.stuck.take(&message);
        let next = self.carry_out(context, message, &response.stop).await?;
        // An unusable answer was already reported, and ends the run by itself.
        let is_cancelled = self.run.task().cancelled.is_cancelled();
        if !matches!(next, Next::Again) || is_cancelled {
            return Ok(next);
        }
        match repetition {
            Repetition::None => {}
            Repetition::News => {
                self.log.emit(RunEvent::Stuck);
                self.tell(context, observation::STUCK)?;
            }
            // The run has already continued from an answer that the journal holds.
            Repetition::Known(times) => {
                let most = self.settings.max_repetitions.filter(|_| !self.is_known);
                if most.is_some_and(|most| times >= most) {
                    return Ok(Next::Stuck);
                }
            }
        }
        Ok(next)
    }

    async fn carry_out(
        &mut self,
        context: &mut dyn ContextManager,
        message: Message,
        stop: &StopReason,
    ) -> Result<Next, AgentError> {
        let text = message.text().into_owned();
        let is_block = self.settings.calls == CallForm::ExecuteTools;
        if !message.tool_calls().is_empty() {
            self.was_empty = false;
            let calls = message.tool_calls().to_vec();
            context.record(message)?;
            let ran = native_turn::run(self, context, &calls).await?;
            if ran.is_left_open {
                return Ok(Next::Again);
            }
            if is_block && execute_tools::has_block(&text) {
                self.tell(context, observation::BLOCK_BESIDE_CALLS)?;
            }
            return Ok(match ran.terminates {
                Some(status) => {
                    Next::Terminated(status, Some(text).filter(|text| !text.trim().is_empty()))
                }
                None if ran.is_refused => {
                    Next::Unusable("the model calls tools that it may not call".to_owned())
                }
                None => Next::Again,
            });
        }
        if text.trim().is_empty() {
            // There is nothing to record: chat APIs refuse an empty message. Repeating the note would only
            // make the conversation longer.
            if !std::mem::replace(&mut self.was_empty, true) {
                self.tell(context, observation::EMPTY_ANSWER)?;
            }
            return Ok(Next::Unusable("the model repeatedly gave an empty answer".to_owned()));
        }
        self.was_empty = false;
        context.record(message)?;
        if let Some(endless) = self.endless(stop, &text) {
            return Ok(endless);
        }
        if !is_block && execute_tools::begins_block(&text) {
            self.tell(context, observation::BLOCK_NOT_READ)?;
            let why = "the model writes <execute_tools> blocks, but this run takes tool calls of the chat \
                       API; the other form of calls reads blocks";
            return Ok(Next::Unusable(why.to_owned()));
        }
        if is_block {
            match execute_tools::run(self, context, &text).await? {
                Taken::NoBlock => {}
                Taken::LeftOpen => return Ok(Next::Again),
                Taken::Observation(observation) => {
                    self.tell(context, &observation)?;
                    return Ok(Next::Again);
                }
                Taken::Misplaced => {
                    self.tell(context, observation::MISPLACED_BLOCK)?;
                    let why =
                        "the model repeatedly writes its blocks where they read as quotations";
                    return Ok(Next::Unusable(why.to_owned()));
                }
            }
        }
        if let Some(why) = stop.incomplete() {
            let (said, limit) = observation::of_incomplete(stop);
            self.tell(context, said)?;
            return Ok(Next::Unusable(format!("{why}{limit}")));
        }
        let (said, why) = if self.is_plan(&text) {
            (observation::PLAN_NOT_RUN, "the model writes plans in place of calls")
        } else if self.must_call {
            (observation::CALL_REQUIRED, "the model calls no tool although it must")
        } else {
            return Ok(Next::Answered(text));
        };
        self.tell(context, said)?;
        Ok(Next::Unusable(why.to_owned()))
    }

    /// Returns what follows from an answer that repeats itself until it is cut off. A run that is resumed
    /// afterwards asks again.
    fn endless(&self, stop: &StopReason, text: &str) -> Option<Next> {
        if *stop != StopReason::Length || self.is_known {
            return None;
        }
        let repeated = repetition(text)?;
        let why = "the model repeats itself endlessly";
        Some(Next::Endless(format!("{why}: {}", quoted(&beginning(&repeated)))))
    }

    /// Tells the model something in the user's role that no person said.
    fn tell(&mut self, context: &mut dyn ContextManager, text: &str) -> Result<(), AgentError> {
        context.record(Message::observation(text))?;
        Ok(())
    }

    /// Emits that a turn's steps are planned, out of this many calls.
    pub(crate) fn planned(&self, turn: u32, plan: &Plan, calls: usize, findings: &[String]) {
        let purpose = &Purpose::REACT;
        self.log.emit(RunEvent::Planned { turn, purpose, plan, calls, findings });
    }

    /// Runs the steps of a turn; meanwhile the tools may send requests to the context.
    pub(crate) async fn run_steps(
        &mut self,
        context: &mut dyn ContextManager,
        turn: u32,
        plan: &Plan,
    ) -> Result<Outcome, AgentError> {
        let sees_all = self.run.sees_all(plan);
        let global_context = sees_all.then(|| self.global_context(context).into());
        self.run.run_turn(context, turn, plan, global_context).await
    }

    /// Returns whether the journal holds the next answer: an earlier process was allowed that step.
    fn holds_next(&self) -> bool {
        self.run.has_answer(&Purpose::REACT, &(self.asked + 1).to_string())
    }

    /// Returns whether a journal holds the run, so that it can resume.
    pub(crate) fn is_resumable(&self) -> bool {
        self.agent.executor.journal().is_some()
    }

    /// Returns whether the run was cancelled before a step had ended, and a resumed one continues it.
    pub(crate) fn is_open(&self, result: &StepResult) -> bool {
        let has_ended = match result {
            StepResult::Success { .. } => true,
            StepResult::Error { failure } => failure.kind != FailureKind::Cancelled,
            StepResult::Skipped { .. } => false,
        };
        !has_ended && self.is_resumable() && self.run.task().cancelled.is_cancelled()
    }

    /// Returns the part of a step's result that the model is shown.
    pub(crate) fn shown(&mut self, turn: u32, step: StepId, text: String) -> String {
        self.own.shown(&format!("{turn}.{}", step.0), text)
    }

    /// Returns the conversation as text, for tools that see it.
    fn global_context(&self, context: &dyn ContextManager) -> String {
        conversation(&self.prompt(context).0.messages)
    }
}

/// Returns whether instructions contain the agent's own as whole lines: inside another sentence they may mean
/// something else.
fn holds(instructions: &str, own: &str) -> bool {
    let own = own.trim();
    instructions.match_indices(own).any(|(at, _)| {
        let before = instructions[..at].trim_end_matches([' ', '\t']);
        let behind = instructions[at + own.len()..].trim_start_matches([' ', '\t', '\r']);
        let begins = before.is_empty() || before.ends_with('\n');
        begins && (behind.is_empty() || behind.starts_with('\n'))
    })
}

/// Returns a budget reduced by `taken` tokens.
fn less(bound: Budget, taken: usize) -> Budget {
    Budget { tokens: bound.tokens.map(|tokens| tokens.saturating_sub(taken)) }
}
