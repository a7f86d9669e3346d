//! A planned run: the executor and the model, each told what the other brought.

use super::history::Round;
use super::question::{Heard, Question};
use super::reading::{Reading, read};
use super::request::{Reason, Requests, State};
use super::settings::OnePlanSettings;
use crate::agent::{Agent, AgentError, Task};
use crate::executor::{Event, Run, Trigger};
use crate::facts::facts;
use crate::journal::PastPlan;
use crate::model_caller::Reply;
use crate::strategy::StrategyRun;
use crate::trajectory::{DegradeReason, Degraded, Ending, Purpose, Stop};
use crate::{Eager, Outcome, RunEvent, RunLog, RunOptions};
use foldback_llm::{ChatRequest, ModelErrorKind, StopReason};
use foldback_planner::{
    Action, Form, Plan, Progress, ReplanReason, Replans, Step, StepId, StepResult, StepState,
};
use foldback_tool::{Effect, FailureKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All plans of a run are one turn.
const TURN: u32 = 0;

/// How often the model is asked for an answer when it writes none, or not to its end.
const ANSWER_ATTEMPTS: u32 = 2;

/// What was wrong with a plan that reached the greatest length of an answer.
const CUT_OFF: &str = "it reached the greatest length of an answer and was cut off there; \
                       expected a plan that ends before";

/// A run while it is going on.
pub(super) struct Drive<'a> {
    /// The run of the strategy, in which that of the executor stands.
    whole: &'a StrategyRun<'a>,
    settings: &'a OnePlanSettings,
    agent: &'a Agent,
    task: &'a Task,
    requests: Requests<'a>,
    log: RunLog,
    run: Run,
    rounds: Vec<Round>,
    /// Whether the request follows on a conversation.
    follows: bool,
    /// How often the model was asked for each purpose.
    asked: BTreeMap<Purpose, u32>,
    question: Option<Question<'a>>,
    replans: Replans,
    /// Failed and refused steps that a planner was told of.
    told: BTreeSet<StepId>,
    /// Decisions that were asked for, and that no plan has made.
    undecided: BTreeSet<StepId>,
    /// Why no more plans are made.
    closed: Option<Closed>,
    /// The steps that began while the plan was still being written.
    early: Plan,
    /// Whether something happened since it was last looked whether a new plan is due.
    is_news: bool,
    /// Nothing is under way in the executor.
    is_idle: bool,
}

/// How planning and running ended.
pub(super) enum Finish {
    Ended(Ending),
    StepByStep(Degraded),
}

/// What a run leaves.
pub(super) struct Done {
    pub(super) rounds: Vec<Round>,
    pub(super) outcome: Outcome,
    /// Decisions that were asked for, and that no plan has made.
    pub(super) undecided: BTreeSet<StepId>,
}

/// Why no more plans are made; what is under way goes on to its end.
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

    /// Plans, runs, plans anew where it has to, and has the answer written.
    pub(super) async fn carry_out(&mut self) -> Result<Finish, AgentError> {
        self.begin_planning()?;
        self.go().await?;
        if self.task.cancelled.is_cancelled() {
            return Ok(Finish::Ended(Stop::Cancelled.into()));
        }
        match self.closed.take() {
            None => self.answer().await,
            Some(Closed::Degraded(degraded)) => Ok(Finish::StepByStep(degraded)),
            Some(Closed::Ended(stop)) => Ok(Finish::Ended(stop.into())),
        }
    }

    /// Ends the run; what has not started never will.
    pub(super) async fn end(self) -> Result<Done, AgentError> {
        let Self { run, rounds, log, undecided, .. } = self;
        let outcome = run.finish().await?;
        log.emit(RunEvent::StepsRan { turn: TURN, outcome: &outcome });
        Ok(Done { rounds, outcome, undecided })
    }

    /// Asks for the first plan. Where an earlier run was killed while the model still wrote it, what had
    /// begun by then is a fact, and what is still to do is planned beside it.
    fn begin_planning(&mut self) -> Result<(), AgentError> {
        let broke_off = match self.next_noted() {
            Some((_, reason)) => reason.broken_off,
            None => true,
        };
        if broke_off && self.recall_early()? {
            self.run.seal()?;
            let steps = self.early.steps.clone();
            self.rounds.push(Round { text: String::new(), steps, findings: Vec::new() });
            let reason = Reason { broken_off: true, ..Reason::default() };
            let state = self.state(&self.run.progress(), None);
            let request = self.requests.replan(&state, &reason, false);
            self.ask(Purpose::PLANNER, reason, request);
        } else {
            self.ask(Purpose::PLANNER, Reason::default(), self.requests.plan(self.follows));
        }
        Ok(())
    }

    /// Takes over the steps that an earlier run began while the plan was being written, if there are any.
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

    /// Lets the executor and the model go on, each as soon as it can, until neither can.
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
                    Heard::Whole(reply) => self.answered((*reply)?)?,
                },
            }
        }
    }

    /// The executor tells something; `None` says that nothing is under way in it.
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

    /// Asks for a new plan where one is due: for an anchor at once, for failures when nothing else can
    /// go on.
    fn plan_anew_if_due(&mut self) {
        let progress = self.run.progress();
        let Some(reason) = self.due(&progress) else { return };
        // Which failures a planner knows is kept here: a resumed run may have more by now.
        let kind = reason.kind(&progress);
        let Some(round) = self.replans.begin(&kind, &Progress::default()) else {
            // A failure is told in the answer; a decision has to be made by somebody.
            if let Some(step) = reason.anchor {
                let used = self.replans.used();
                let detail = format!("{step} asks for a decision, and {used} replans were made");
                self.degrade(DegradeReason::ReplansSpent, detail, &reason);
            }
            return;
        };
        self.told.extend(reason.failed.iter().chain(&reason.refused));
        let request =
            self.requests.replan(&self.state(&progress, reason.anchor), &reason, round.is_last);
        self.ask(Purpose::REPLAN, reason, request);
    }

    /// Why a new plan is due now. A resumed run asks in the order of the one that was killed.
    fn due(&self, progress: &Progress) -> Option<Reason> {
        if let Some((purpose, noted)) = self.next_noted()
            && purpose == Purpose::REPLAN
        {
            return noted.is_due(progress, self.is_idle).then_some(noted);
        }
        let anchor = match self.replans.due(progress)? {
            ReplanReason::Anchor { step, .. } => Some(step),
            ReplanReason::Failures { .. } => None,
        };
        let new = || progress.iter().filter(|step| !self.told.contains(&step.step.id));
        // A tool that sees the whole context settles its matters itself.
        let failed = new().filter(|step| step.asks_for_plan() && !self.settles_itself(&step.step));
        let failed: Vec<StepId> = failed.map(|step| step.step.id).collect();
        if anchor.is_none() && failed.is_empty() {
            return None;
        }
        let refused = new().filter(|step| match &step.result {
            Some(StepResult::Error { failure }) => failure.kind == FailureKind::Denied,
            _ => false,
        });
        let refused = refused.map(|step| step.step.id).collect();
        Some(Reason { anchor, failed, refused, ..Reason::default() })
    }

    fn settles_itself(&self, step: &Step) -> bool {
        let Action::Call { function, .. } = &step.action else { return false };
        let tool = self.agent.executor.catalog().get(function);
        tool.is_some_and(|tool| tool.global_context)
    }

    /// Puts a question to the model, or finds the answer that it gave before the run was killed.
    fn ask(&mut self, purpose: Purpose, reason: Reason, request: ChatRequest) {
        let count = self.asked.entry(purpose.clone()).or_default();
        *count += 1;
        let key = count.to_string();
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        let streamed = is_first && self.settings.stream;
        let question = Question::ask(self.whole, (purpose, key), reason, request, streamed);
        self.question = Some(question);
    }

    /// What the next answer that the journal holds was asked for, and why.
    fn next_noted(&self) -> Option<(Purpose, Reason)> {
        let (purpose, reason) = self.whole.model_caller.next_noted()?;
        Some((purpose, Reason::of(reason.as_deref())))
    }

    /// Starts steps of a plan that is still being written: those that are sound by themselves and may
    /// run although the plan may turn out not to be, once all that they wait for is there.
    fn start_early(&mut self, steps: Vec<Step>) -> Result<(), AgentError> {
        for mut step in steps {
            let errors = self.agent.validator().step(&self.early, &mut step).has_errors();
            let is_known = step.after.iter().all(|after| self.run.step(*after).is_some());
            if errors || !is_known || !self.may_start_early(&step) {
                continue;
            }
            self.run.extend(std::slice::from_ref(&step))?;
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

    /// The model has answered.
    fn answered(&mut self, reply: Reply) -> Result<(), AgentError> {
        let Some(question) = self.question.take() else { return Ok(()) };
        let Question { purpose, reason, mut request, was_noted, .. } = question;
        let (text, is_cut) = match reply {
            Reply::Answer(answer) => {
                (answer.message.text().into_owned(), answer.stop == StopReason::Length)
            }
            // What the model wrote cannot be read: that is mended like a plan that cannot be read.
            Reply::Failed(error) if error.kind == ModelErrorKind::Response => {
                (String::new(), false)
            }
            other => {
                self.closed = Some(Closed::Ended(stop_of(other)));
                return Ok(());
            }
        };
        // The first plan stands by itself, also where some of its steps have begun.
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        let progress = if is_first { Progress::default() } else { self.decided(&reason)? };
        let mut reading = read(&text, &progress, &self.agent.validator());
        if was_noted && !is_first {
            reading = self.as_before(reading, &progress);
        }
        match reading {
            Reading::Plan(plan) => self.take_plan(purpose, text, &plan),
            Reading::StepByStep(why) => {
                self.rounds.push(Round { text, steps: Vec::new(), findings: Vec::new() });
                self.degrade(DegradeReason::Declared, why, &reason);
                Ok(())
            }
            Reading::Unsound { plan, mut findings, faulty } => {
                if is_cut {
                    findings.insert(0, CUT_OFF.to_owned());
                    longer(&mut request);
                }
                self.planned(&purpose, &plan, &findings);
                let unsound = Unsound { text, findings, faulty };
                self.mend(purpose, reason, request, unsound, was_noted)
            }
        }
    }

    /// What an answer came to in the run that was killed: more may have ended by now than had when it
    /// was read then, and what fits or does not fit must not change with it.
    fn as_before(&self, reading: Reading, progress: &Progress) -> Reading {
        let was_mended = self.next_noted().is_some_and(|(purpose, _)| purpose == Purpose::REPAIR);
        let is_nothing = match &reading {
            Reading::Plan(plan) => plan.steps.is_empty(),
            Reading::StepByStep(_) => true,
            Reading::Unsound { .. } => false,
        };
        if was_mended || is_nothing {
            return reading;
        }
        let next = progress.next_number();
        let is_new = |steps: &[Step]| steps.first().is_some_and(|step| step.id >= next);
        let before = self.run.past_plans().into_iter().find_map(|past| match past {
            PastPlan::Steps(steps) if is_new(&steps) => Some(steps),
            _ => None,
        });
        match before {
            Some(steps) => Reading::Plan(Plan { form: Form::OnePlan, steps }),
            None => reading,
        }
    }

    /// What was done, once a reached anchor counts as answered: what waited for it can be planned
    /// again then.
    fn decided(&mut self, reason: &Reason) -> Result<Progress, AgentError> {
        if let Some(anchor) = reason.anchor
            && self.run.anchors_reached().any(|reached| reached == anchor)
        {
            self.run.replanned(anchor)?;
            self.is_idle = false;
        }
        Ok(self.run.progress())
    }

    /// Has a plan that cannot be run written once more, with everything that is wrong with it.
    fn mend(
        &mut self,
        purpose: Purpose,
        reason: Reason,
        request: ChatRequest,
        unsound: Unsound,
        was_noted: bool,
    ) -> Result<(), AgentError> {
        let Unsound { text, findings, faulty } = unsound;
        let mut round = Round { text, steps: Vec::new(), findings };
        if purpose == Purpose::REPAIR {
            let detail = round.findings.join("; ");
            self.rounds.push(round);
            self.degrade(DegradeReason::InvalidPlan, detail, &reason);
            return Ok(());
        }
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        if is_first && was_noted && self.next_noted().is_none_or(|(_, r)| !r.unsound.is_empty()) {
            self.recall_early()?;
        }
        if is_first && !self.early.steps.is_empty() {
            // Some of its steps have begun: what is still to do is planned beside them.
            self.run.seal()?;
            round.steps.clone_from(&self.early.steps);
            let reason = Reason { unsound: round.findings.clone(), ..reason };
            let state = self.state(&self.run.progress(), None);
            let mut again = self.requests.replan(&state, &reason, false);
            again.sampling = request.sampling;
            self.rounds.push(round);
            self.ask(Purpose::REPAIR, reason, again);
        } else {
            let again = self.requests.repair(request, &round.text, &faulty, &round.findings);
            self.rounds.push(round);
            self.ask(Purpose::REPAIR, reason, again);
        }
        Ok(())
    }

    /// Carries out a plan beside what there is.
    fn take_plan(&mut self, purpose: Purpose, text: String, plan: &Plan) -> Result<(), AgentError> {
        self.planned(&purpose, plan, &[]);
        let steps = plan.steps.clone();
        self.rounds.push(Round { text, steps, findings: Vec::new() });
        let is_new = |step: &&Step| self.run.step(step.id).is_none();
        let new: Vec<Step> = plan.steps.iter().filter(is_new).cloned().collect();
        self.run.extend(&new)?;
        self.run.seal()?;
        self.is_idle = false;
        Ok(())
    }

    fn planned(&self, purpose: &Purpose, plan: &Plan, findings: &[String]) {
        let calls = plan.steps.iter().filter(|step| matches!(step.action, Action::Call { .. }));
        let (turn, calls) = (TURN, calls.count());
        self.log.emit(RunEvent::Planned { turn, purpose, plan, calls, findings });
    }

    fn degrade(&mut self, because: DegradeReason, detail: String, reason: &Reason) {
        self.undecided.extend(reason.anchor);
        self.closed = Some(Closed::Degraded(Degraded { because, detail }));
    }

    /// Where the run stands, as a model is told.
    fn state(&self, progress: &Progress, deciding: Option<StepId>) -> State {
        let budget = self.settings.results_tokens;
        let facts = facts(progress, self.run.calls(), budget, deciding);
        State { facts, next: progress.next_number() }
    }

    /// Has the answer written, from what the steps brought.
    async fn answer(&mut self) -> Result<Finish, AgentError> {
        let mut request = self.requests.answer(&self.state(&self.run.progress(), None));
        let mut cut = None;
        let mut why = "the model wrote no answer".to_owned();
        for _ in 0..ANSWER_ATTEMPTS {
            self.ask(Purpose::ANSWER, Reason::default(), request.clone());
            let heard = heard(&mut self.question);
            let heard = self.task.cancelled.run_until_cancelled(heard).await.flatten();
            self.question = None;
            let Some(Heard::Whole(reply)) = heard else {
                return Ok(Finish::Ended(Stop::Cancelled.into()));
            };
            match (*reply)? {
                Reply::Answer(response) => {
                    let text = response.message.text();
                    let is_cut = response.stop == StopReason::Length;
                    if !text.trim().is_empty() && !is_cut {
                        let answer = Some(text.into_owned());
                        return Ok(Finish::Ended(Ending { stop: Stop::Answered, answer }));
                    }
                    if is_cut {
                        cut =
                            Some(text.into_owned()).filter(|text| !text.trim().is_empty()).or(cut);
                        longer(&mut request);
                    }
                }
                Reply::Failed(error) if error.kind == ModelErrorKind::Response => {
                    why = error.message;
                }
                other => {
                    return Ok(Finish::Ended(Ending { stop: stop_of(other), answer: cut }));
                }
            }
        }
        Ok(match cut {
            Some(_) => Finish::Ended(Ending { stop: Stop::CutOff, answer: cut }),
            None => Finish::Ended(Stop::ModelFailed { message: why }.into()),
        })
    }
}

/// A plan that cannot be run, as it was written, and what is wrong with it.
struct Unsound {
    text: String,
    findings: Vec<String>,
    /// The steps that are to blame, as they were written.
    faulty: Vec<String>,
}

impl Reason {
    /// Whether this run has come to where an earlier one asked for this reason.
    fn is_due(&self, progress: &Progress, is_idle: bool) -> bool {
        let is_reached =
            |step| progress.get(step).is_some_and(|step| step.state == StepState::AnchorReached);
        self.anchor.map_or(is_idle, is_reached)
    }

    /// The same, as replans are counted.
    fn kind(&self, progress: &Progress) -> ReplanReason {
        let task = |step| match &progress.get(step)?.step.action {
            Action::Anchor { task } => Some(task.clone()),
            Action::Call { .. } => None,
        };
        match self.anchor {
            Some(step) => ReplanReason::Anchor { step, task: task(step).unwrap_or_default() },
            None => ReplanReason::Failures { steps: self.failed.clone() },
        }
    }
}

/// Lets the next answer be longer, where there is a bound.
fn longer(request: &mut ChatRequest) {
    let bound = &mut request.sampling.max_tokens;
    *bound = bound.map(|tokens| tokens.saturating_mul(2));
}

/// What is heard of a question, where there is one.
async fn heard(question: &mut Option<Question<'_>>) -> Option<Heard> {
    match question {
        Some(question) => Some(question.reply().await),
        None => None,
    }
}

/// Why a run ends that was given no answer.
fn stop_of(reply: Reply) -> Stop {
    reply.answer().err().unwrap_or(Stop::Answered)
}
