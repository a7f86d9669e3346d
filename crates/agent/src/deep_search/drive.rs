//! The graph of a search: which node comes when.

use super::backend::SearchTool;
use super::nodes::{Answered, Nodes, Trouble};
use super::requests::Prompts;
use super::{
    DeepSearch, DeepSearchState, Query, Research, Route, ShortUrls, Source, Update, research_topic,
};
use crate::agent::{Agent, AgentError, Report, Task};
use crate::json_line::quoted;
use crate::model_caller::ModelCaller;
use crate::trajectory::{Ending, Purpose, Recorder, Stop, Strategy};
use crate::{AgentEvent, PlannedStep, Trace, Watch, spans};
use foldback_core::{ContextManager, Message, TodoId};
use foldback_planner::Form;
use foldback_tool::Toolbox;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::Arc;
use tracing::Instrument;

/// What a search found out, in full.
#[derive(Clone, Debug)]
pub struct DeepReport {
    /// The record, and the answer with its links and its list of sources.
    pub report: Report,
    /// The answer as the model wrote it, before anything was done with its links.
    pub draft: Option<String>,
    /// The answer with its links, without the list of sources.
    pub text: Option<String>,
    /// The sources that the answer uses, each once, in the order in which they are named first.
    pub sources: Vec<Source>,
    /// Citations that name no source: short URLs that a model made up, numbers that no source has, words
    /// that do not stand in the draft. They are no links in the answer.
    pub invented: Vec<String>,
    /// What was known at the end.
    pub state: DeepSearchState,
}

impl DeepReport {
    /// What is known of a search that came to no answer.
    fn of(report: Report, state: DeepSearchState) -> Self {
        let (sources, invented) = (Vec::new(), Vec::new());
        Self { report, draft: None, text: None, sources, invented, state }
    }
}

impl Agent {
    /// Works on a task by searching.
    ///
    /// The model chooses queries; each is searched and what it brings summarised, all of a round beside
    /// each other; the model says what is missing, and a further round looks for it, or the answer is
    /// written. A search that fails does not lose the others. What is asked about is the request, with
    /// the conversation that `context` shows before it.
    ///
    /// Request and answer are recorded in `context` at the end of the run. With a journal, a run of the
    /// same name goes on where it was killed: what was asked, searched and answered is not done again.
    ///
    /// # Errors
    /// When the agent [has nothing to search with](Self::with_deep_search), a
    /// [setting](super::DeepSearchSettings::check) makes no sense, and when the context or the journal fails.
    pub async fn deep_search(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.run(Strategy::DeepSearch, context, task).await
    }

    /// The same with everything that was found out.
    ///
    /// # Errors
    /// As [`deep_search`](Self::deep_search).
    pub async fn deep_search_in_full(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<DeepReport, AgentError> {
        let deep = self.deep_search.clone().ok_or(AgentError::NothingToSearch)?;
        let (on_report, found) = (deep.on_report.clone(), Arc::new(Mutex::new(None)));
        let slot = Arc::clone(&found);
        let deep = deep.with_reports(move |report| {
            *slot.lock() = Some(report.clone());
            if let Some(on_report) = &on_report {
                on_report(report);
            }
        });
        let report = self.clone().with_deep_search(deep).deep_search(context, task).await?;
        let found = found.lock().take();
        Ok(match found {
            Some(found) => DeepReport { report, ..found },
            None => DeepReport::of(report, DeepSearchState::default()),
        })
    }

    /// The search itself, in a context that knows what it holds of the run.
    pub(crate) async fn search_in_depth(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        let deep = self.deep_search.as_ref().ok_or(AgentError::NothingToSearch)?;
        deep.settings.check()?;
        self.check(context)?;
        let before = context.prompt(&self.react.prompt);
        let topic = research_topic(before.conversation(), &task.request);
        let todo = context.todo().clone();
        let span = spans::invoke_agent("deep_search", todo.as_str());
        let run = self.search_and_answer(deep, &todo, &topic, task);
        let found = run.instrument(span.clone()).await?;
        spans::record_usage(&span, &found.report.trajectory.spent().usage);
        self.open(context, &self.system_prompt, &task.request)?;
        if let Some(answer) = found.report.answer() {
            context.record(Message::assistant(answer))?;
        }
        if let Some(on_report) = &deep.on_report {
            on_report(&found);
        }
        Ok(found.report)
    }

    async fn search_and_answer(
        &self,
        deep: &DeepSearch,
        todo: &TodoId,
        topic: &str,
        task: &Task,
    ) -> Result<DeepReport, AgentError> {
        let search = Arc::new(SearchTool::new(Arc::clone(&deep.backend)));
        // One tool has no name twice.
        let toolbox = Toolbox::new([search as Arc<dyn foldback_tool::Tool>]).unwrap_or_default();
        let nodes = Nodes {
            agent: self,
            deep,
            task,
            todo,
            prompts: Prompts {
                settings: &deep.settings,
                system_prompt: &self.system_prompt,
                topic,
            },
            model_caller: ModelCaller::open(self, task, todo)?,
            recorder: Recorder::begin(self.situation(&task.request), Strategy::DeepSearch),
            executor: self.executor.clone().with_toolbox(toolbox),
            short_urls: ShortUrls::of_run(&task.run, &task.request),
        };
        let settings = &deep.settings;
        let reflecting = deep.reflection_model.as_ref().unwrap_or(&self.model);
        let state = DeepSearchState {
            messages: vec![Arc::new(Message::user(topic))],
            initial_search_query_count: settings.number_of_initial_queries,
            max_research_loops: settings.max_research_loops,
            reasoning_model: reflecting.name().to_owned(),
            ..DeepSearchState::default()
        };
        Graph { nodes, state, traces: Vec::new(), watch: task.watch(todo) }.run().await
    }
}

struct Graph<'a> {
    nodes: Nodes<'a>,
    state: DeepSearchState,
    traces: Vec<Trace>,
    watch: Watch,
}

impl Graph<'_> {
    async fn run(mut self) -> Result<DeepReport, AgentError> {
        match self.walk().await {
            Ok(answered) => Ok(self.end(answered)),
            Err(Trouble::Broken(error)) => Err(error),
            Err(Trouble::Over(stop)) => Ok(self.report(stop, None)),
            Err(Trouble::Failed(message)) => Ok(self.report(Stop::ModelFailed { message }, None)),
        }
    }

    /// From node to node, up to the answer.
    async fn walk(&mut self) -> Result<Answered, Trouble> {
        let settings = &self.nodes.deep.settings;
        let queries = self.nodes.generate_query(self.state.initial_search_query_count).await?;
        let (mut round, mut purpose) = (queries.clone(), Purpose::Queries);
        self.state.apply(Update::Queries(queries));
        loop {
            let results = self.round(&round, purpose).await?;
            self.state.apply(Update::Research(results));
            let reflection = match self.nodes.reflection(&self.state).await {
                Ok(reflection) => self.state.reflected(reflection),
                // What was found so far is worth an answer.
                Err(Trouble::Failed(why)) => {
                    self.note(|| {
                        format!("the answer is written: the reflection could not be read: {why}")
                    });
                    return self.nodes.finalize_answer(&self.state, None).await;
                }
                Err(trouble) => return Err(trouble),
            };
            match self.state.route(&reflection, settings.max_follow_up_queries) {
                Route::WebResearch(queries) => {
                    (round, purpose) = (queries.clone(), Purpose::Reflection);
                    self.state.apply(Update::FollowUps(queries));
                }
                Route::FinalizeAnswer(because) => {
                    self.note(|| format!("the answer is written: {because}"));
                    let gap = &reflection.knowledge_gap;
                    let is_open = !reflection.is_sufficient && !gap.trim().is_empty();
                    let gap = is_open.then_some(gap.as_str());
                    return self.nodes.finalize_answer(&self.state, gap).await;
                }
            }
        }
    }

    /// All research of a round, a bounded number at once, in the order of the queries.
    async fn round(
        &mut self,
        queries: &[Query],
        purpose: Purpose,
    ) -> Result<Vec<Research>, Trouble> {
        let nodes = &self.nodes;
        let turn = nodes.recorder.next_turn();
        let plan = nodes.plan(queries);
        nodes.recorder.planned(turn, purpose, &plan, Vec::new());
        nodes.recorder.classify(turn, Form::Native, plan.steps.len());
        self.watch.tell_of(|| {
            let steps = plan.steps.iter().map(|step| PlannedStep {
                step: step.id,
                tool: Some(super::backend::SEARCH.to_owned()),
                after: Vec::new(),
            });
            AgentEvent::Planned { turn, steps: steps.collect() }
        });
        let width = nodes.deep.settings.max_parallel;
        let research = queries.iter().map(|query| nodes.web_research(query, turn).boxed());
        let research: Vec<BoxFuture<'_, _>> = research.collect();
        let done: Vec<_> = stream::iter(research).buffered(width).try_collect().await?;
        let mut results = Vec::with_capacity(done.len());
        for (result, trace) in done {
            self.traces.extend(trace);
            if let Err(why) = &result.outcome {
                self.note(|| {
                    format!("the search for {} failed: {why}", quoted(&result.query.query))
                });
            }
            results.push(result);
        }
        Ok(results)
    }

    fn end(mut self, answered: Answered) -> DeepReport {
        let Answered { draft, restored, unplaced, is_cut_off } = answered;
        let mut answer = restored.text.clone();
        if let Some(heading) = &self.nodes.deep.settings.sources_heading {
            answer.push_str(&list(heading, &restored.used));
        }
        let message = Arc::new(Message::assistant(&answer));
        self.state.apply(Update::Answered(message, restored.used.clone()));
        let summaries = self.state.web_research_result.iter();
        let summaries = summaries.filter_map(|result| result.outcome.as_ref().ok());
        let mut invented: Vec<String> =
            summaries.flat_map(|summary| summary.invented.iter().cloned()).collect();
        invented.extend(restored.invented);
        invented.extend(unplaced);
        if !invented.is_empty() {
            self.note(|| format!("citations that name no source: {}", invented.join(", ")));
        }
        let stop = if is_cut_off { Stop::CutOff } else { Stop::Answered };
        let report = self.report(stop, Some(answer));
        DeepReport {
            draft: Some(draft),
            text: Some(restored.text),
            sources: restored.used,
            invented,
            ..report
        }
    }

    fn report(self, stop: Stop, answer: Option<String>) -> DeepReport {
        let trajectory = self.nodes.recorder.finish(Ending { stop, answer });
        DeepReport::of(Report { trajectory, traces: self.traces }, self.state)
    }

    fn note(&self, text: impl FnOnce() -> String) {
        self.watch.tell_of(|| AgentEvent::Noted { text: text() });
    }
}

/// The sources as a list behind an answer.
fn list(heading: &str, sources: &[Source]) -> String {
    let mut out = String::new();
    if !sources.is_empty() {
        let _ = write!(out, "\n\n{heading}:");
    }
    for (at, source) in sources.iter().enumerate() {
        let link = source.link();
        let _ = write!(out, "\n{}. [{}]({})", at + 1, link.label, link.url);
    }
    out
}
