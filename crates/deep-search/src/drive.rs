//! The graph of a search: the order of its nodes.

use crate::backend::SearchTool;
use crate::nodes::{Answered, Nodes, Trouble};
use crate::requests::Prompts;
use crate::{
    DeepSearch, DeepSearchState, Query, Research, Route, ShortUrls, Source, Update, research_topic,
};
use foldback_agent::{
    Agent, AgentError, Ending, Purpose, Report, SettingError, Stop, Strategy, StrategyName,
    StrategyRun, Task,
};
use foldback_core::{Budget, ContextManager, Message, quoted};
use foldback_tool::Toolbox;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The findings of a search, in addition to its answer.
#[derive(Clone, Debug, Default)]
pub struct SearchFindings {
    /// The answer as the model wrote it, before its links were processed.
    pub draft: Option<String>,
    /// The answer with its links, without the list of sources.
    pub text: Option<String>,
    /// The sources that the answer uses, each once, in the order of their first mention.
    pub sources: Vec<Source>,
    /// Citations that name no source: short URLs that a model made up, numbers that no source has, words that
    /// are not in the draft. They are not links in the answer.
    pub invented: Vec<String>,
    /// The state at the end.
    pub state: DeepSearchState,
}

impl DeepSearch {
    /// The name of the strategy.
    pub const NAME: StrategyName = StrategyName::new("deep-search");

    /// The purpose of a request for the queries of a search.
    pub const QUERIES: Purpose = Purpose::named("queries");

    /// The purpose of a request for a query's summary, with its sources.
    pub const RESEARCH: Purpose = Purpose::named("research");

    /// The purpose of a request for what the search still lacks.
    pub const REFLECTION: Purpose = Purpose::named("reflection");

    /// Works on a task as [`Agent::run`] does by this strategy, and returns all findings.
    ///
    /// # Errors
    /// As there.
    pub async fn search_in_full(
        &self,
        agent: &Agent,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<(Report, SearchFindings), AgentError> {
        let findings = Arc::new(Mutex::default());
        let search = Self { findings: Some(Arc::clone(&findings)), ..self.clone() };
        let report = agent.run(&search, context, task).await?;
        let findings = std::mem::take(&mut *findings.lock());
        Ok((report, findings))
    }

    /// Searches and answers, and records the request and the answer.
    async fn search_and_answer(
        &self,
        run: &StrategyRun<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let before = context.prompt(&Budget::default());
        let topic = research_topic(before.conversation(), &run.task().request);
        let graph = Graph::new(self, run, &topic);
        let (ending, findings) = run.serve(context, graph.run()).await?;
        run.open(context, &self.system_prompt(run.agent()))?;
        if let Some(answer) = &ending.answer {
            context.record(Message::assistant(answer))?;
        }
        if let Some(kept) = &self.findings {
            *kept.lock() = findings;
        }
        Ok(ending)
    }
}

impl Strategy for DeepSearch {
    fn name(&self) -> StrategyName {
        Self::NAME
    }

    fn check(&self) -> Result<(), SettingError> {
        self.settings.check()
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        self.search_and_answer(run, context).boxed()
    }
}

struct Graph<'a> {
    nodes: Nodes<'a>,
    state: DeepSearchState,
}

impl<'a> Graph<'a> {
    fn new(search: &'a DeepSearch, run: &'a StrategyRun<'a>, topic: &'a str) -> Self {
        let (agent, settings) = (run.agent(), &search.settings);
        let tool = Arc::new(SearchTool::new(Arc::clone(&search.backend)));
        // A single tool cannot clash with another.
        let toolbox = Toolbox::new([tool as Arc<dyn foldback_tool::Tool>]).unwrap_or_default();
        let reflecting = search.reflection_model.as_deref().unwrap_or(agent.model());
        let state = DeepSearchState {
            messages: vec![Arc::new(Message::user(topic))],
            initial_search_query_count: settings.number_of_initial_queries,
            max_research_loops: settings.max_research_loops,
            reasoning_model: reflecting.name().to_owned(),
            ..DeepSearchState::default()
        };
        let nodes = Nodes {
            run,
            deep: search,
            prompts: Prompts { settings, system_prompt: agent.system_prompt(), topic },
            executor: agent.executor().clone().with_toolbox(toolbox),
            short_urls: ShortUrls::of_run(&run.task().run, &run.task().request),
            is_known: AtomicBool::default(),
        };
        Self { nodes, state }
    }

    async fn run(mut self) -> Result<(Ending, SearchFindings), AgentError> {
        let stop = match self.walk().await {
            Ok(answered) => return Ok(self.end(answered)),
            Err(Trouble::Broken(error)) => return Err(error),
            Err(Trouble::Over(stop)) => stop,
            Err(Trouble::Failed(message)) => Stop::ModelFailed { message },
        };
        Ok((stop.into(), SearchFindings { state: self.state, ..SearchFindings::default() }))
    }

    /// Goes from node to node, up to the answer.
    async fn walk(&mut self) -> Result<Answered, Trouble> {
        let settings = &self.nodes.deep.settings;
        let queries = self.nodes.generate_query(self.state.initial_search_query_count).await?;
        let (mut round, mut purpose) = (queries.clone(), DeepSearch::QUERIES);
        self.state.apply(Update::Queries(queries));
        loop {
            let results = self.round(&round, purpose.clone()).await?;
            self.state.apply(Update::Research(results));
            let reflection = match self.nodes.reflection(&self.state).await {
                Ok(reflection) => self.state.reflected(reflection),
                // The results so far are worth an answer.
                Err(Trouble::Failed(why)) => {
                    self.note(format_args!(
                        "the answer is written, because the reflection could not be read: {why}"
                    ));
                    return self.nodes.finalize_answer(&self.state, None).await;
                }
                Err(trouble) => return Err(trouble),
            };
            match self.state.route(&reflection, settings.max_follow_up_queries) {
                Route::WebResearch(queries) => {
                    (round, purpose) = (queries.clone(), DeepSearch::REFLECTION);
                    self.state.apply(Update::FollowUps(queries));
                }
                Route::FinalizeAnswer(because) => {
                    self.note(format_args!("the answer is written: {because}"));
                    let gap = &reflection.knowledge_gap;
                    let is_open = !reflection.is_sufficient && !gap.trim().is_empty();
                    let gap = is_open.then_some(gap.as_str());
                    return self.nodes.finalize_answer(&self.state, gap).await;
                }
            }
        }
    }

    /// Does all research of a round, a limited number at once, and returns it in the order of the queries.
    async fn round(&self, queries: &[Query], purpose: Purpose) -> Result<Vec<Research>, Trouble> {
        let nodes = &self.nodes;
        let turn = nodes.run.begin_turn(purpose, &nodes.plan(queries));
        let width = nodes.deep.settings.max_parallel;
        let research = queries.iter().map(|query| nodes.web_research(query, turn).boxed());
        let research: Vec<BoxFuture<'_, _>> = research.collect();
        let results: Vec<Research> = stream::iter(research).buffered(width).try_collect().await?;
        for result in &results {
            if let Err(why) = &result.outcome {
                self.note(format_args!(
                    "the search for {} failed: {why}",
                    quoted(&result.query.query)
                ));
            }
        }
        Ok(results)
    }

    fn end(mut self, answered: Answered) -> (Ending, SearchFindings) {
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
            self.note(format_args!("citations that name no source: {}", invented.join(", ")));
        }
        let stop = if is_cut_off { Stop::CutOff } else { Stop::Answered };
        let findings = SearchFindings {
            draft: Some(draft),
            text: Some(restored.text),
            sources: restored.used,
            invented,
            state: self.state,
        };
        (Ending { stop, answer: Some(answer) }, findings)
    }

    fn note(&self, text: fmt::Arguments<'_>) {
        self.nodes.run.log().note(text);
    }
}

/// Formats the sources as a list after an answer.
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
