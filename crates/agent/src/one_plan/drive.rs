//! A planned run, which passes results of the executor to the model and plans of the model to the executor.

mod answer;
mod due;
mod plans;

use super::history::Round;
use super::question::{Heard, Question};
use super::request::{Reason, Requests, State};
use super::settings::OnePlanSettings;
use crate::agent::{Agent, AgentError, Task};
use crate::executor::{Event, Run, Trigger};
use crate::facts::facts;
use crate::journal::PastPlan;
use crate::model_caller::Reply;
use crate::strategy::StrategyRun;
use crate::trajectory::{Degraded, Ending, Purpose, Stop};
use crate::{Eager, Outcome, RunEvent, RunLog, RunOptions};
use foldback_llm::ChatRequest;
use foldback_planner::{Action, Form, Plan, Progress, Replans, Step, StepId};
use foldback_tool::Effect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All plans of a run are one turn.
const TURN: u32 = 0;

/// A running planned run.
pub(super) struct Drive<'a> {
    /// The run of the strategy, inside which the executor's run is.
    whole: &'a StrategyRun<'a>,
    settings: &'a OnePlanSettings,
    agent: &'a Agent,
    task: &'a Task,
    requests: Requests<'a>,
    log: RunLog,
    run: Run,
    rounds: Vec<Round>,
    /// Whether the request follows a conversation.
    follows: bool,
    /// How often the model was asked for each purpose.
    asked: BTreeMap<Purpose, u32>,
    question: Option<Question<'a>>,
    replans: Replans,
    /// Failed and refused steps that a planner already knows of.
    told: BTreeSet<StepId>,
    /// Decisions that were asked for, and that no plan has made.
    undecided: BTreeSet<StepId>,
    /// The reason why no more plans are made.
    closed: Option<Closed>,
    /// The steps that started while the plan was still being written.
    early: Plan,
    /// Whether something happened since the last check for a due plan.
    is_news: bool,
    /// Whether nothing is in progress in the executor.
    is_idle: bool,
}

/// The end of planning and running.
pub(super) enum Finish {
    Ended(Ending),
    StepByStep(Degraded),
}

/// The results of a run.
pub(super) struct Done {
    pub(super) rounds: Vec<Round>,
    pub(super) outcome: Outcome,
    /// Decisions that were asked for, and that no plan has made.
    pub(super) undecided: BTreeSet<StepId>,
}

/// The reason why no more plans are made; work in progress continues to its end.
enum Closed {
    Degraded(Degraded),
    Ended(Stop),
}

impl<'a> Drive<'a> {
    pub(super) fn begin(
        settings: &'a OnePlanSettings,
        whole: &'a StrategyRun<'a>,
        follows: bool,
        global_context: Option<Arc<str>>,
    ) -> Result<Self, AgentError> {
        let (agent, task) = (whole.agent(), whole.task());
        let requests = Requests::new(settings, agent, &task.request, whole.todo().as_str());
        let run = agent.executor.open_held(RunOptions {
            id: task.run.clone(),
            cancelled: task.cancelled.clone(),
            global_context,
            depth: task.depth,
            context: Some(whole.handle()),
            log: whole.log().clone(),
            turn: Some(TURN),
        })?;
        Ok(Self {
            whole,
            settings,
            agent,
            task,
            requests,
            log: whole.log().clone(),
            follows,
            asked: BTreeMap::new(),
            run,
            rounds: Vec::new(),
            question: None,
            replans: Replans::new(settings.max_replans),
            told: BTreeSet::new(),
            undecided: BTreeSet::new(),
            closed: None,
            early: Plan { form: Form::OnePlan, steps: Vec::new() },
            is_news: false,
            is_idle: false,
        })
    }

    /// Plans, runs, replans if needed, and has the answer written.
    pub(super) async fn carry_out(&mut self) -> Result<Finish, AgentError> {
        self.begin_planning()?;
        loop {
            self.go().await?;
            if self.task.cancelled.is_cancelled() {
                return Ok(Finish::Ended(Stop::Cancelled.into()));
            }
            return Ok(match self.closed.take() {
                None => match self.answer().await? {
                    Some(finish) => finish,
                    None => continue,
                },
                Some(Closed::Degraded(degraded)) => Finish::StepByStep(degraded),
                Some(Closed::Ended(stop)) => Finish::Ended(stop.into()),
            });
        }
    }

    /// Ends the run; steps that have not started never will.
    pub(super) async fn end(self) -> Result<Done, AgentError> {
        let Self { run, mut rounds, log, undecided, early, .. } = self;
        if rounds.iter().all(|round| round.steps.is_empty()) && !early.steps.is_empty() {
            // The plan never arrived, but these steps ran.
            rounds.push(began_early(&early));
        }
        let outcome = run.finish().await?;
        log.emit(RunEvent::StepsRan { turn: TURN, outcome: &outcome });
        Ok(Done { rounds, outcome, undecided })
    }

    /// Asks for the first plan. If an earlier run was killed while the model was still writing it, the steps
    /// that had started by then are facts, and the remaining work is planned beside them.
    fn begin_planning(&mut self) -> Result<(), AgentError> {
        let broke_off = match self.next_noted() {
            Some((_, reason)) => reason.broken_off,
            None => true,
        };
        if broke_off && self.recall_early()? {
            self.plan_the_rest()
        } else {
            self.ask(Purpose::PLANNER, Reason::default(), self.requests.plan(self.follows));
            Ok(())
        }
    }

    /// Has the remaining work planned beside the steps that started before their plan broke off.
    fn plan_the_rest(&mut self) -> Result<(), AgentError> {
        self.run.seal()?;
        self.rounds.push(began_early(&self.early));
        let reason = Reason { broken_off: true, ..Reason::default() };
        let state = self.state_for_planner();
        let request = self.requests.replan(&state, &reason, false);
        self.ask(Purpose::PLANNER, reason, request);
        Ok(())
    }

    /// Handles a plan that broke off and that its model begins again. If steps of it have started, the new plan
    /// could give their numbers to other steps, so it is not waited for.
    fn broke_off(&mut self) -> Result<(), AgentError> {
        if self.early.steps.is_empty() {
            return Ok(());
        }
        self.question = None;
        // The question has no answer, so that the next one is the first, as after a kill.
        self.asked.remove(&Purpose::PLANNER);
        self.plan_the_rest()
    }

    /// Takes over the steps that an earlier run started while the plan was being written, if there are any.
    fn recall_early(&mut self) -> Result<bool, AgentError> {
        let Some(PastPlan::Steps(steps)) = self.run.past_plans().into_iter().next() else {
            return Ok(false);
        };
        self.run.extend(&steps)?;
        self.early.steps = steps;
        self.early.steps.sort_by_key(|step| step.id);
        self.is_idle = false;
        Ok(!self.early.steps.is_empty())
    }

    /// Lets the executor and the model proceed, each as soon as it can, until neither can.
    async fn go(&mut self) -> Result<(), AgentError> {
        let cancelled = self.task.cancelled.clone();
        loop {
            let may_ask = self.question.is_none() && self.closed.is_none();
            if may_ask && !cancelled.is_cancelled() && std::mem::take(&mut self.is_news) {
                self.plan_anew_if_due();
            }
            if self.question.is_none() && self.is_idle {
                return Ok(());
            }
            tokio::select! {
                biased;
                event = self.run.next(), if !self.is_idle => self.happened(event),
                () = cancelled.cancelled(), if self.question.is_some() => self.question = None,
                Some(heard) = heard(&mut self.question) => match heard {
                    Heard::Steps(steps) => self.start_early(steps)?,
                    Heard::Again => self.broke_off()?,
                    Heard::Whole(reply) => self.answered((*reply)?)?,
                },
            }
        }
    }

    /// Handles an event of the executor; `None` says that nothing is in progress in it.
    fn happened(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Started { step, function, arguments }) => {
                let (turn, tool, arguments) = (TURN, &*function, &*arguments);
                self.log.emit(RunEvent::StepPlaced { turn, step, tool, arguments });
            }
            Some(Event::ReplanWanted { trigger: Trigger::Anchor, .. }) => self.is_news = true,
            Some(_) => {}
            None => (self.is_idle, self.is_news) = (true, true),
        }
    }

    /// Asks the model a question, or finds the answer that it gave before the run was killed.
    fn ask(&mut self, purpose: Purpose, reason: Reason, request: ChatRequest) {
        let count = self.asked.entry(purpose.clone()).or_default();
        *count += 1;
        let key = count.to_string();
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        let streamed = is_first && self.settings.stream;
        let question = Question::ask(self.whole, (purpose, key), reason, request, streamed);
        self.question = Some(question);
    }

    /// Returns the purpose of the next answer that the journal holds, and why it was asked for.
    fn next_noted(&self) -> Option<(Purpose, Reason)> {
        let (purpose, reason) = self.whole.model_caller.next_noted()?;
        Some((purpose, Reason::of(reason.as_deref())))
    }

    /// Starts steps of a plan that is still being written: those that are sound by themselves and may run
    /// even if the plan turns out not to be, once all the steps that they wait for are there.
    fn start_early(&mut self, steps: Vec<Step>) -> Result<(), AgentError> {
        for mut step in steps {
            let errors = self.agent.validator().step(&self.early, &mut step).has_errors();
            let is_known = step.after.iter().all(|after| self.run.step(*after).is_some());
            if errors || !is_known || !self.may_start_early(&step) {
                continue;
            }
            self.run.extend(std::slice::from_ref(&step))?;
            self.log.emit(RunEvent::StartedEarly { turn: TURN, step: &step });
            let place = self.early.steps.partition_point(|other| other.id < step.id);
            self.early.steps.insert(place, step);
            self.is_idle = false;
        }
        Ok(())
    }

    fn may_start_early(&self, step: &Step) -> bool {
        let Action::Call { function, .. } = &step.action else { return false };
        let tool = self.agent.executor.catalog().get(function);
        match self.agent.executor.settings().eager {
            Eager::Nothing => false,
            Eager::ReadOnly => tool.is_some_and(|tool| tool.effect == Effect::ReadOnly),
            Eager::Everything => tool.is_some(),
        }
    }

    /// Returns the state of the run, for a model.
    fn state(&self, progress: &Progress, deciding: Option<StepId>) -> State {
        let budget = self.settings.results_tokens;
        let facts = facts(progress, self.run.calls(), budget, deciding);
        State { facts, next: progress.next_number() }
    }
}

/// Returns the round of a plan of which only the steps are known that started while it was being written.
fn began_early(early: &Plan) -> Round {
    Round { text: String::new(), steps: early.steps.clone(), findings: Vec::new() }
}

/// Lets the next answer be longer, if there is a limit.
fn longer(request: &mut ChatRequest) {
    let bound = &mut request.sampling.max_tokens;
    *bound = bound.map(|tokens| tokens.saturating_mul(2));
}

/// Waits for the next news of a question, if there is one.
async fn heard(question: &mut Option<Question<'_>>) -> Option<Heard> {
    match question {
        Some(question) => Some(question.reply().await),
        None => None,
    }
}

/// Returns why a run that received no answer ends.
fn stop_of(reply: Reply) -> Stop {
    reply.answer().err().unwrap_or(Stop::Answered)
}
