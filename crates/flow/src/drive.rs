//! A running flow: one step after the other, until none is open.

mod step_work;

use crate::attempt::told_of;
use crate::executors::StepExecutor;
use crate::progress::{show, step_todo, todo_list};
use crate::requests::{MAX_STEPS, Requests, Results, planned};
use crate::settings::FlowSettings;

use crate::{Flow, TextPlan};
use foldback_agent::{
    Agent, AgentError, Ending, Purpose, Reply, Resource, RunEvent, Stop, StrategyRun,
};
use foldback_core::{ContextError, ContextManager, Message, TodoId, TodoList};
use foldback_llm::{ChatRequest, ChatResponse, ModelErrorKind};
use std::collections::BTreeMap;
use std::fmt;
use step_work::FailedAttempt;

/// A running flow.
pub(crate) struct Drive<'a> {
    settings: &'a FlowSettings,
    /// The run as it was given.
    whole: &'a StrategyRun<'a>,
    /// The same run within the limits of the flow.
    run: StrategyRun<'a>,
    executors: Vec<StepExecutor>,
    /// The attempts that failed in earlier processes.
    failed: Vec<FailedAttempt>,
    requests: Requests<'a>,
    plan: TextPlan,
    /// The results of the steps that are done, and the reasons why others are blocked.
    results: Results,
    /// How often each step was tried.
    tries: BTreeMap<usize, u32>,
    replans: u32,
}

/// The reason why a flow does not continue.
enum Halt {
    /// It was ended from outside.
    Over(Stop),
    /// Something failed without which no run can continue.
    Failed(AgentError),
}

impl<'a> Drive<'a> {
    /// Runs a flow. `run` is `whole` within the limits of the flow.
    pub(crate) async fn run(
        settings: &'a FlowSettings,
        whole: &'a StrategyRun<'a>,
        run: StrategyRun<'a>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let agent = run.agent();
        for executor in &settings.executors {
            run.know_tools(executor.agent.executor().toolbox().specs());
        }
        run.open(context, &settings.strategy.system_prompt(agent))?;
        let mut drive = Self {
            settings,
            whole,
            executors: executors(settings, agent),
            failed: run.noted(FailedAttempt::KIND),
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
            match self.work_on(context, at).await? {
                Ok(()) => self.look_again(context, at).await?,
                Err(why) => {
                    if !self.replan(context, at, &why).await? {
                        return self
                            .sum_up(context, Some(Stop::StepFailed { step: at, why }))
                            .await;
                    }
                }
            }
        }
        self.sum_up(context, None).await
    }

    /// Has the model make the plan, or falls back to a general one.
    async fn make_plan(&mut self, context: &mut dyn ContextManager) -> Result<(), Halt> {
        let response = self.ask(Flow::PLAN, "plan", self.requests.plan()).await?;
        let (title, steps) = match response.as_ref().and_then(planned) {
            Some((title, steps)) if steps.len() <= MAX_STEPS => (title, steps),
            other => {
                let why = match other {
                    None => "the model made no plan".to_owned(),
                    Some((_, steps)) => {
                        let many = steps.len();
                        format!("the plan has {many} steps, and at most {MAX_STEPS} are allowed")
                    }
                };
                self.note(format_args!("{why}; a general plan is used instead"));
                let general = ["Analyze request", "Execute task", "Verify results"];
                (None, general.map(str::to_owned).into())
            }
        };
        let title = title.unwrap_or_else(|| self.requests.title());
        self.plan = TextPlan::new(&self.run.task().run, &title, steps);
        self.show(context)?;
        self.record(context, &self.plan.to_string())
    }

    /// Has the rest of the plan after a step that cannot be done remade, and returns whether it was.
    async fn replan(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
        reason: &str,
    ) -> Result<bool, Halt> {
        if self.replans >= self.settings.max_replans {
            self.note(format_args!("step {at} is blocked, and the plan may not be remade again"));
            return Ok(false);
        }
        self.replans += 1;
        let request = self.requests.replan(&self.plan, &self.results, at, reason);
        let response = self.ask(Flow::PLAN, &format!("replan-{}", self.replans), request).await?;
        self.take_rest(context, at, response.as_ref())
    }

    /// Has the model review the rest of the plan after a step that is done, if that is wanted.
    async fn look_again(
        &mut self,
        context: &mut dyn ContextManager,
        at: usize,
    ) -> Result<(), Halt> {
        if self.settings.replan_after_each && self.plan.next_open().is_some() {
            let request = self.requests.review(&self.plan, &self.results, at);
            let response = self.ask(Flow::PLAN, &format!("review-{at}"), request).await?;
            self.take_rest(context, at, response.as_ref())?;
        }
        Ok(())
    }

    /// Replaces the steps after a step with those that an answer plans, and returns whether there were
    /// any.
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
            self.note(format_args!("the rest of the plan has too many steps, and is not used"));
            return Ok(false);
        }
        self.plan.replace_steps(texts);
        self.show(context)?;
        self.record(context, &format!("The plan was changed.\n\n{}", self.plan))?;
        Ok(true)
    }

    /// Has the model write the answer; `failed` is the end of a flow that is not done.
    async fn sum_up(
        &mut self,
        context: &mut dyn ContextManager,
        failed: Option<Stop>,
    ) -> Result<Ending, Halt> {
        let request = self.requests.summary(&self.plan, &self.results);
        let response = self.ask(Flow::SUMMARY, "summary", request).await?;
        let incomplete = response.as_ref().and_then(|response| response.stop.incomplete());
        let text = response.map(|response| response.message.text().into_owned());
        let answer = text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| self.page());
        self.record(context, &answer)?;
        let stop = failed.unwrap_or(match incomplete {
            None => Stop::Answered,
            Some(_) => Stop::CutOff,
        });
        Ok(Ending { stop, answer: Some(answer) })
    }

    /// Asks the model; `None` stands for an answer that cannot be read. Such an answer is final: a resumed
    /// run finds it again.
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

    /// Returns the end of a flow. A cancellation that came from nobody else means that its time is over.
    fn over(&self, stop: Stop) -> Halt {
        let is_own = stop == Stop::Cancelled && !self.whole.task().cancelled.is_cancelled();
        Halt::Over(if is_own { Stop::Exhausted { resource: Resource::Time } } else { stop })
    }

    /// Returns the ending of a flow that was broken off: it reports the progress without a request.
    fn broken_off(&self, stop: Stop) -> Ending {
        let came_somewhere = stop != Stop::Cancelled && !self.results.is_empty();
        Ending { answer: came_somewhere.then(|| self.page()), stop }
    }

    /// Returns the plan and the results of its steps as text.
    fn page(&self) -> String {
        let results = self
            .results
            .iter()
            .map(|(at, result)| format!("\nStep {at}: {}\n", told_of(&result.text)));
        format!("{}{}", self.plan, results.collect::<String>())
    }

    /// Shows the current plan to the context and to observers.
    fn show(&self, context: &mut dyn ContextManager) -> Result<(), ContextError> {
        if let Some(planning) = &self.settings.planning {
            planning.show(&self.plan);
        }
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

    fn record(&self, context: &mut dyn ContextManager, text: &str) -> Result<(), Halt> {
        context.record(Message::assistant(text.trim_end()))?;
        Ok(())
    }

    fn note(&self, text: fmt::Arguments<'_>) {
        self.run.log().note(text);
    }
}

/// Returns the executors: those of the settings, or the agent itself; all with the agent's journal.
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

/// Returns what a model plans after the steps that stay. It may have repeated those.
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
