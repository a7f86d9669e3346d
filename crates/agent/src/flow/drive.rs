//! A flow while it goes on: one step after the other, until none is open.

use super::Flow;
use super::attempt::{Attempt, told_of};
use super::executors::{StepExecutor, executor_of, unknown};
use super::progress::{finish, show, step_todo, todo_list};
use super::requests::{MAX_STEPS, Requests, Results, StepResult, planned};
use super::settings::{FlowSettings, StepContext};
use crate::agent::{Agent, AgentError, Report, Task};
use crate::model_caller::Reply;
use crate::strategy::{Strategy, StrategyRun};
use crate::trajectory::{Ending, Purpose, Stop, TerminateStatus};
use crate::{Resource, RunEvent, StepStatus, TextPlan};
use foldback_core::{ContextError, ContextManager, Message, Reference, TodoId, TodoList, quoted};
use foldback_llm::{ChatRequest, ChatResponse, ModelErrorKind, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A flow while it goes on.
pub(super) struct Drive<'a> {
    settings: &'a FlowSettings,
    /// The run as it was given.
    whole: &'a StrategyRun<'a>,
    /// The same within the bounds of the flow.
    run: StrategyRun<'a>,
    executors: Vec<StepExecutor>,
    /// The attempts that the model refused in earlier lives.
    refused: Vec<Refused>,
    requests: Requests<'a>,
    plan: TextPlan,
    /// What came of the steps that are done, and why others are blocked.
    results: Results,
    /// How often each step was tried.
    tries: BTreeMap<usize, u32>,
    replans: u32,
}

/// What an attempt that the model refused is noted as.
const KIND: &str = "refused_step";

/// An attempt that the model refused to go on with: it is not made again when the run is resumed, for what
/// came after it stands.
#[derive(Debug, Serialize, Deserialize)]
struct Refused {
    at: usize,
    number: u32,
    reason: String,
}

impl Refused {
    fn is_like(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

/// Why a flow does not go on.
enum Halt {
    /// It has come to an end that is not its own.
    Over(Stop),
    /// Something failed that no run can go on without.
    Failed(AgentError),
}

impl<'a> Drive<'a> {
    /// Goes through a flow. `run` is `whole` within the bounds of the flow.
    pub(super) async fn run(
        settings: &'a FlowSettings,
        whole: &'a StrategyRun<'a>,
        run: StrategyRun<'a>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let agent = run.agent();
        for executor in &settings.executors {
            run.know_tools(executor.agent.executor().toolbox().specs());
        }
        run.open(context, &settings.by.system_prompt(agent))?;
        let mut drive = Self {
            settings,
            whole,
            executors: executors(settings, agent),
            refused: run.noted(KIND),
            requests: Requests::new(settings, agent, &whole.task().request, run.todo().to_string()),
            plan: TextPlan::new(&run.task().run, "", [""; 0]),
            results: Results::new(),
            tries: BTreeMap::new(),
            replans: 0,
            run,
        };
        match drive.go_through(context).await {
            Ok(ending) => Ok(ending),
            Err(Halt::Over(stop)) => Ok(drive.broken_off(stop)),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    async fn go_through(&mut self, context: &mut dyn ContextManager) -> Result<Ending, Halt> {
        self.make_plan(context).await?;
        while let Some(at) = self.plan.next_open() {
            let is_done = match self.work_on(context, at).await? {
                Ok(()) => self.look_again(context, at).await?,
                Err(reason) => self.replan(context, at, &reason).await?,
            };
            if !is_done {
                return self.sum_up(context, false).await;
            }
        }
        self.sum_up(context, true).await
    }

    /// Has the model make the plan, or makes a general one.
    async fn make_plan(&mut self, context: &mut dyn ContextManager) -> Result<(), Halt> {
        let response = self.ask(Flow::PLAN, "plan", self.requests.plan()).await?;
        let (title, steps) = match response.as_ref().and_then(planned) {
            Some((title, steps)) if steps.len() <= MAX_STEPS => (title, steps),
            other => {
                let why = match other {
                    None => "the model made no plan".to_owned(),
                    Some((_, steps)) => {
                        let many = steps.len();
                        format!("the plan has {many} steps, and at most {MAX_STEPS} are taken")
                    }
                };
                self.note(format_args!("{why}; a general one takes its place"));
                let general = ["Analyze request", "Execute task", "Verify results"];
                (None, general.map(str::to_owned).into())
            }
        };
        let title = title.unwrap_or_else(|| self.requests.title());
        self.plan = TextPlan::new(&self.run.task().run, &title, steps);
        self.show(context)?;
        self.record(context, &self.plan.to_string())
    }

    /// Works on a step until it is done, or as often as it may be tried; the error is why it cannot be
    /// done.
    async fn work_on(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
    ) -> Result<Result<(), String>, Halt> {
        if let Some(step) = self.plan.steps.get(at)
            && let Some((tag, first)) = unknown(&step.text, &self.executors)
        {
            let (tag, first) = (quoted(tag), &first.name);
            self.note(format_args!(
                "step {at} calls {tag}, and nobody has that name; {first} works on it"
            ));
        }
        let mut failed: Option<String> = None;
        for number in 1..=self.settings.max_retries.saturating_add(1) {
            self.tries.insert(at, number);
            self.mark(at, StepStatus::InProgress, None);
            self.show(context)?;
            let (attempt, reference) = self.attempt(context, at, number, failed.as_deref()).await?;
            match attempt {
                Attempt::Done(summary) => {
                    let before = failed.map(|reason| format!("failed before: {reason}"));
                    self.mark(at, StepStatus::Completed, before);
                    let result = StepResult::of(&summary);
                    let shown = told_of(&summary);
                    let mut told = format!("Step {at} is done: {shown}");
                    if shown != result.text
                        && let Some(reference) = &reference
                    {
                        told.push_str(&format!(" (the end of the work on it is {reference})"));
                    }
                    self.results.insert(at, result);
                    self.ended(context, at, reference)?;
                    self.record_result(context, &told)?;
                    return Ok(Ok(()));
                }
                Attempt::Failed(reason) => {
                    self.note(format_args!("step {at} failed: {reason}"));
                    self.mark(at, StepStatus::Blocked, Some(reason.clone()));
                    self.results.insert(at, StepResult::of(&format!("not done: {reason}")));
                    self.ended(context, at, None)?;
                    self.record_result(context, &format!("Step {at} failed: {reason}"))?;
                    failed = Some(reason);
                }
                Attempt::Refused(reason) => {
                    return Err(Halt::Over(Stop::ModelFailed { message: reason }));
                }
                Attempt::Over(stop) => return Err(self.over(stop)),
            }
        }
        Ok(Err(failed.unwrap_or_default()))
    }

    /// Tries a step once. Of a context of its own, the end can be referred to where it is kept.
    async fn attempt(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        number: u32,
        failed: Option<&str>,
    ) -> Result<(Attempt, Option<Reference>), Halt> {
        let step = self.plan.steps.get(at).map_or("", |step| &step.text);
        let executor = executor_of(step, &self.executors);
        let agent = executor.map_or(self.run.agent(), |executor| &executor.agent);
        let strategy = executor.and_then(|executor| executor.strategy.as_ref());
        let strategy = &**strategy.unwrap_or(&self.settings.by);
        // What came of the step itself so far is told beside the others' results.
        let others = self.results.iter().filter(|(other, _)| **other != at);
        let others = others.map(|(at, result)| (*at, result.clone())).collect();
        let task = Task {
            request: self.requests.step(&self.plan, &others, at, failed),
            run: format!("{}/step-{}.{number}", self.run.task().run, at + 1),
            depth: self.run.task().depth + 1,
            ..self.run.task().clone()
        };
        let refused = Refused { at, number, reason: String::new() };
        if let Some(refused) = self.refused.iter().find(|known| known.is_like(&refused)) {
            return Ok((Attempt::Failed(refused.reason.clone()), None));
        }
        let (report, reference) = match self.settings.context {
            StepContext::Isolated => self.isolated(context, at, (agent, strategy), &task).await?,
            // The whole flow is one conversation, begun and gone on with by whoever began the flow.
            StepContext::Shared => {
                (self.run.run_part(agent, strategy, context, &task).await?, None)
            }
        };
        let mut attempt = Attempt::of(&report);
        // In a shared context, what would be tried again has the same conversation.
        if let (Attempt::Refused(reason), StepContext::Isolated) = (&attempt, self.settings.context)
        {
            let reason = reason.clone();
            self.run.note(KIND, &Refused { reason: reason.clone(), ..refused })?;
            attempt = Attempt::Failed(reason);
        }
        self.run.absorb(report);
        Ok((attempt, reference))
    }

    /// Has an agent work on a step in a context of its own. What was done there can be read by its last
    /// block, where there is one.
    async fn isolated(
        &self,
        context: &mut dyn ContextManager,
        at: usize,
        (agent, strategy): (&Agent, &dyn Strategy),
        task: &Task,
    ) -> Result<(Report, Option<Reference>), Halt> {
        let item = self.step_todo(at);
        let mut child = context.child(item.clone())?;
        let request = self.plan.steps.get(at).map_or("", |step| &step.text);
        self.run.log().emit(RunEvent::Delegated { item: &item, request });
        let report = agent.run(strategy, child.as_mut(), task).await?;
        let reference =
            child.sub_tasks().map_or(Ok(None), |kept| kept.conclude())?.map(Reference::Block);
        if self.run.log().is_watched() {
            let (state, result) = Attempt::of(&report).handed_back();
            self.run.log().emit(RunEvent::HandedBack { item: &item, state, result: &result });
        }
        Ok((report, reference))
    }

    /// Gives the context what a step came to.
    fn ended(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        reference: Option<Reference>,
    ) -> Result<(), ContextError> {
        let list = self.list()?;
        if let Some(item) = list.item(&self.step_todo(at))
            && finish(context, item, reference.as_ref())?
            && let Some(result) = self.results.get_mut(&at)
        {
            result.reference = reference;
        }
        self.show(context)
    }

    /// Has the rest of the plan made anew behind a step that cannot be done, and says whether it was.
    async fn replan(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        reason: &str,
    ) -> Result<bool, Halt> {
        if self.replans >= self.settings.max_replans {
            self.note(format_args!(
                "step {at} is blocked, and the plan may not be made anew again"
            ));
            return Ok(false);
        }
        self.replans += 1;
        let request = self.requests.replan(&self.plan, &self.results, at, reason);
        let response = self.ask(Flow::PLAN, &format!("replan-{}", self.replans), request).await?;
        self.take_rest(context, at, response.as_ref())
    }

    /// Has the model look at the rest of the plan behind a step that is done, where that is wanted.
    async fn look_again(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
    ) -> Result<bool, Halt> {
        if self.settings.replan_after_each && self.plan.next_open().is_some() {
            let request = self.requests.review(&self.plan, &self.results, at);
            let response = self.ask(Flow::PLAN, &format!("review-{at}"), request).await?;
            self.take_rest(context, at, response.as_ref())?;
        }
        Ok(true)
    }

    /// Puts the steps that an answer plans in the place of those behind a step, and says whether there
    /// were any.
    fn take_rest(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        response: Option<&ChatResponse>,
    ) -> Result<bool, Halt> {
        let Some((_, rest)) = response.and_then(planned) else { return Ok(false) };
        let texts = self.plan.steps.iter().map(|step| step.text.clone());
        let mut texts: Vec<String> = texts.take(at + 1).collect();
        texts.extend(behind(&texts, rest));
        if texts.len() > at + 1 + MAX_STEPS || texts.len() > 2 * MAX_STEPS {
            self.note(format_args!("the rest of the plan has too many steps, and is not taken"));
            return Ok(false);
        }
        self.plan.replace_steps(texts);
        self.show(context)?;
        self.record(context, &format!("The plan was changed.\n\n{}", self.plan))?;
        Ok(true)
    }

    /// Has the model write the answer.
    async fn sum_up(
        &mut self,
        context: &mut dyn ContextManager,
        is_done: bool,
    ) -> Result<Ending, Halt> {
        let request = self.requests.summary(&self.plan, &self.results);
        let response = self.ask(Flow::SUMMARY, "summary", request).await?;
        let is_cut = response.as_ref().is_some_and(|response| response.stop == StopReason::Length);
        let text = response.map(|response| response.message.text().into_owned());
        let answer = text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| self.page());
        self.record(context, &answer)?;
        let stop = match (is_done, is_cut) {
            (true, false) => Stop::Answered,
            (true, true) => Stop::CutOff,
            (false, _) => Stop::Terminated { status: TerminateStatus::Failure },
        };
        Ok(Ending { stop, answer: Some(answer) })
    }

    /// Asks the model; `None` for an answer that cannot be read, which is one for good: a resumed run
    /// finds it again.
    async fn ask(
        &self,
        purpose: Purpose,
        key: &str,
        request: ChatRequest,
    ) -> Result<Option<ChatResponse>, Halt> {
        match self.run.ask(purpose, key, request).await? {
            Reply::Answer(response) => Ok(Some(response)),
            Reply::Failed(error) if error.kind == ModelErrorKind::Response => Ok(None),
            Reply::Failed(error) => Err(Halt::Over(Stop::ModelFailed { message: error.message })),
            Reply::Cancelled => Err(self.over(Stop::Cancelled)),
            Reply::Exhausted(resource) => Err(Halt::Over(Stop::Exhausted { resource })),
        }
    }

    /// The end of a flow. One that nobody else cancelled was cancelled because its time is over.
    fn over(&self, stop: Stop) -> Halt {
        let is_own = stop == Stop::Cancelled && !self.whole.task().cancelled.is_cancelled();
        Halt::Over(if is_own { Stop::Exhausted { resource: Resource::Time } } else { stop })
    }

    /// The ending of a flow that was broken off: how far it came is told without asking anybody.
    fn broken_off(&self, stop: Stop) -> Ending {
        let came_somewhere = stop != Stop::Cancelled && !self.results.is_empty();
        Ending { answer: came_somewhere.then(|| self.page()), stop }
    }

    /// The plan, and what came of its steps.
    fn page(&self) -> String {
        let results = self
            .results
            .iter()
            .map(|(at, result)| format!("\nStep {at}: {}\n", told_of(&result.text)));
        format!("{}{}", self.plan, results.collect::<String>())
    }

    fn mark(&mut self, at: usize, status: StepStatus, notes: Option<String>) {
        if let Some(step) = self.plan.steps.get_mut(at) {
            step.status = status;
            if let Some(notes) = notes {
                step.notes = notes;
            }
        }
    }

    /// Gives the context, and whoever watches, the plan as it stands.
    fn show(&self, context: &mut dyn ContextManager) -> Result<(), ContextError> {
        let list = self.list()?;
        show(context, &list)?;
        self.run.log().emit(RunEvent::Todos { list: &list });
        Ok(())
    }

    fn list(&self) -> Result<TodoList, ContextError> {
        todo_list(&self.plan, |at| self.step_todo(at), &self.results)
    }

    fn step_todo(&self, at: usize) -> TodoId {
        let tries = self.tries.get(&at).copied().unwrap_or(1);
        step_todo(&self.run, at, tries)
    }

    /// Records what a step came to, where it was not worked on in the same context.
    fn record_result(&self, context: &mut dyn ContextManager, text: &str) -> Result<(), Halt> {
        match self.settings.context {
            StepContext::Isolated => self.record(context, text),
            StepContext::Shared => Ok(()),
        }
    }

    fn record(&self, context: &mut dyn ContextManager, text: &str) -> Result<(), Halt> {
        context.record(Message::assistant(text.trim_end()))?;
        Ok(())
    }

    fn note(&self, text: fmt::Arguments<'_>) {
        self.run.log().note(text);
    }
}

/// Who works on steps: those of the settings, or the agent itself; all with the agent's journal.
fn executors(settings: &FlowSettings, agent: &Agent) -> Vec<StepExecutor> {
    let mut executors = settings.executors.clone();
    if let Some(journal) = agent.executor().journal() {
        for StepExecutor { agent, .. } in &mut executors {
            let executor = agent.executor().clone().with_journal(journal.clone());
            *agent = agent.clone().with_executor(executor);
        }
    }
    executors
}

/// What a model plans behind steps that stay. It may have written these once more.
fn behind(staying: &[String], mut rest: Vec<String>) -> Vec<String> {
    let whole = staying.len();
    let done = whole.saturating_sub(1);
    for known in [whole, done] {
        if known > 0 && rest.len() > known && rest.starts_with(staying.get(..known).unwrap_or(&[]))
        {
            return rest.split_off(known);
        }
    }
    rest
}

impl From<AgentError> for Halt {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl From<ContextError> for Halt {
    fn from(error: ContextError) -> Self {
        Self::Failed(error.into())
    }
}
