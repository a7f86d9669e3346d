//! The nodes of a search, each a function of its inputs: queries, research, reflection, answer.

use super::afterwards::{CitationList, locate};
use super::backend::{SEARCH, SearchArguments};
use super::cleared::{Cleared, cleared};
use super::requests::{Prompt, Prompts, head};
use super::short_urls::Restored;
use super::state::numbered;
use super::structured::Shape;
use super::{
    Citation, Citing, DeepSearch, DeepSearchState, Found, Grounding, Marked, Marks, Query,
    Reflection, Research, SearchQueryList, ShortUrls, Source, Summary, insert_citations, label,
};
use crate::Executor;
use crate::agent::AgentError;
use crate::model_caller::Reply;
use crate::strategy::StrategyRun;
use crate::trajectory::{Purpose, Stop};
use foldback_core::{Message, quoted};
use foldback_llm::{ChatModel, ChatRequest, RetryPolicy, Sampling, StopReason};
use foldback_planner::{Action, FailurePolicy, Form, Plan, Step, StepId, StepResult, Template};
use foldback_tool::FailureKind;
use std::sync::Arc;

/// A run of the nodes.
pub(super) struct Nodes<'a> {
    pub(super) run: &'a StrategyRun<'a>,
    pub(super) deep: &'a DeepSearch,
    pub(super) prompts: Prompts<'a>,
    /// Runs the searches.
    pub(super) executor: Executor,
    pub(super) short_urls: ShortUrls,
}

/// Why a node gives nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The run cannot go on.
    Broken(AgentError),
    /// The run is over.
    Over(Stop),
    /// The node failed; others may not.
    Failed(String),
}

impl<E: Into<AgentError>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

/// An answer with its links.
#[derive(Debug)]
pub(super) struct Answered {
    /// The text as the model wrote it.
    pub(super) draft: String,
    pub(super) restored: Restored,
    /// Words that the second pass cites and that do not stand in the draft.
    pub(super) unplaced: Vec<String>,
    pub(super) is_cut_off: bool,
}

impl Nodes<'_> {
    /// `generate_query`: the queries of the first round.
    pub(super) async fn generate_query(&self, most: u32) -> Result<Vec<Query>, Trouble> {
        let list: SearchQueryList =
            self.structured(DeepSearch::QUERIES, "queries", self.prompts.queries(most)).await?;
        Ok(numbered(list.query.iter().map(String::as_str), 0, most))
    }

    /// The round's searches as a plan, for the record.
    pub(super) fn plan(&self, queries: &[Query]) -> Plan {
        let steps = queries.iter().map(|query| self.search_step(query)).collect();
        Plan { form: Form::Native, steps }
    }

    fn search_step(&self, query: &Query) -> Step {
        let SearchArguments { query: words, k } = self.search_arguments(query);
        let arguments = Template::Object(vec![
            ("query".to_owned(), Template::Text(words)),
            ("k".to_owned(), Template::Literal(k.to_string())),
        ]);
        Step {
            id: StepId(query.id),
            action: Action::Call { function: SEARCH.to_owned(), arguments },
            after: Vec::new(),
            on_failure: FailurePolicy::default(),
        }
    }

    fn search_arguments(&self, query: &Query) -> SearchArguments {
        SearchArguments { query: query.query.clone(), k: self.deep.settings.passages.max(1) }
    }

    /// `web_research`: what a query brings, in words. A search or a model that fails is told as that.
    pub(super) async fn web_research(&self, query: &Query, turn: u32) -> Result<Research, Trouble> {
        let outcome = match self.search(query, turn).await? {
            Ok(found) if found.is_empty() => Ok(nothing_found(query)),
            Ok(found) => match self.summarise(query, &found).await {
                Ok(summary) => Ok(summary),
                Err(Trouble::Failed(why)) => Err(why),
                Err(trouble) => return Err(trouble),
            },
            Err(why) => Err(why),
        };
        Ok(Research { query: query.clone(), outcome })
    }

    /// Searches, or finds in the journal what the search brought before the run was killed.
    async fn search(
        &self,
        query: &Query,
        turn: u32,
    ) -> Result<Result<Vec<Found>, String>, Trouble> {
        let arguments = serde_json::to_string(&self.search_arguments(query)).unwrap_or_default();
        let step = StepId(query.id);
        self.run.step_began(turn, step, SEARCH, &arguments);
        let plan = Plan { form: Form::Native, steps: vec![self.search_step(query)] };
        let name = format!("query-{}", query.id);
        let mut outcome = self.run.run_steps(&self.executor, turn, &name, &plan).await?;
        Ok(match outcome.results.remove(&step) {
            Some(StepResult::Success { data }) => serde_json::from_str(&data.text)
                .map_err(|error| format!("what the search brought cannot be read: {error}")),
            Some(StepResult::Error { failure }) if failure.kind == FailureKind::Cancelled => {
                return Err(Trouble::Over(Stop::Cancelled));
            }
            Some(StepResult::Error { failure }) => Err(failure.message),
            Some(StepResult::Skipped { .. }) | None => Err("the search was not made".to_owned()),
        })
    }

    async fn summarise(&self, query: &Query, found: &[Found]) -> Result<Summary, Trouble> {
        let sources = self.sources(query, found);
        let place = |found: &Found| sources.iter().position(|source| source.url == found.url);
        let numbered: Vec<(usize, &Found)> =
            found.iter().map(|found| (place(found).map_or(0, |at| at + 1), found)).collect();
        let texts = found.iter().flat_map(|found| [found.title.as_str(), found.text.as_str()]);
        let marks = Marks::avoiding(texts.chain([query.query.as_str()]));
        let is_marked = self.deep.settings.citing == Citing::WhileWriting;
        let prompt = self.prompts.research(query, &numbered, is_marked.then_some(&marks));
        let key = format!("query-{}", query.id);
        let (text, _) = self.words(DeepSearch::RESEARCH, &key, prompt).await?;
        let (text, mut invented) = self.short_urls.disarm(&text);
        let (text, cited) = if is_marked {
            let Marked { text, marks, unreadable } = marks.take_out(&text);
            invented.extend(unreadable);
            (text, marks.into_iter().map(|mark| (mark.start..mark.end, mark.numbers)).collect())
        } else {
            let prompt = self.prompts.citations_of_summary(&text, &numbered);
            let (cited, missing) = self
                .second_pass(DeepSearch::RESEARCH, &format!("{key}-citations"), prompt, &text)
                .await?;
            invented.extend(missing);
            (text, cited)
        };
        let mut summary = Summary { text, sources, invented, grounding: Vec::new() };
        for (segment, numbers) in cited {
            for number in numbers {
                match number.checked_sub(1).filter(|at| *at < summary.sources.len()) {
                    Some(source) => {
                        summary.grounding.push(Grounding { segment: segment.clone(), source });
                    }
                    None => summary.invented.push(number.to_string()),
                }
            }
        }
        Ok(bounded(summary, self.deep.settings.summary_tokens))
    }

    /// The sources of what a query found: one for each URL.
    fn sources(&self, query: &Query, found: &[Found]) -> Vec<Source> {
        let short = self.short_urls.resolve(query.id, found.iter().map(|found| found.url.as_str()));
        let mut sources: Vec<Source> = Vec::new();
        for (found, short_url) in found.iter().zip(short) {
            if sources.iter().all(|source| source.short_url != short_url) {
                sources.push(Source {
                    label: label(&found.title),
                    short_url,
                    url: found.url.clone(),
                    title: found.title.clone(),
                    bytes: found.bytes.clone(),
                });
            }
        }
        sources
    }

    /// `reflection`: whether that is enough, and what else to look for.
    pub(super) async fn reflection(&self, state: &DeepSearchState) -> Result<Reflection, Trouble> {
        let key = format!("round-{}", state.research_loop_count);
        let prompt = self.prompts.reflection(&state.web_research_result);
        self.structured(DeepSearch::REFLECTION, &key, prompt).await
    }

    /// `finalize_answer`: the answer, with links to the sources.
    pub(super) async fn finalize_answer(
        &self,
        state: &DeepSearchState,
        gap: Option<&str>,
    ) -> Result<Answered, Trouble> {
        let results = &state.web_research_result;
        let is_linked = self.deep.settings.citing == Citing::WhileWriting;
        let prompt = self.prompts.answer(results, gap, is_linked);
        let (draft, is_cut_off) = self.words(Purpose::ANSWER, "answer", prompt).await?;
        if is_linked {
            let Cleared { text, mut invented } = cleared(&draft, &state.sources_gathered);
            let mut restored = self.short_urls.restore(&text, &state.sources_gathered);
            restored.invented.retain(|url| !invented.contains(url));
            invented.append(&mut restored.invented);
            restored.invented = invented;
            return Ok(Answered { draft, restored, unplaced: Vec::new(), is_cut_off });
        }
        let mut sources: Vec<Source> = Vec::new();
        for source in &state.sources_gathered {
            if sources.iter().all(|other| other.url != source.url) {
                sources.push(source.clone());
            }
        }
        let (mut restored, mut unplaced) = (Restored::default(), Vec::new());
        restored.invented = cleared(&draft, &[]).invented;
        let mut citations = Vec::new();
        if !sources.is_empty() {
            let prompt = self.prompts.citations_of_answer(&draft, results, &sources);
            let (cited, missing) =
                self.second_pass(Purpose::ANSWER, "answer-citations", prompt, &draft).await?;
            unplaced = missing;
            for (segment, numbers) in cited {
                let mut links = Vec::new();
                for number in numbers {
                    let Some(source) = number.checked_sub(1).and_then(|at| sources.get(at)) else {
                        restored.invented.push(number.to_string());
                        continue;
                    };
                    links.push(source.link());
                    if restored.used.iter().all(|used| used.url != source.url) {
                        restored.used.push(source.clone());
                    }
                }
                let (start, end) = (Some(segment.start), Some(segment.end));
                citations.push(Citation { start, end, links });
            }
        }
        restored.text = insert_citations(&draft, &citations);
        Ok(Answered { draft, restored, unplaced, is_cut_off })
    }

    /// Asks which words of a draft rest on which source. A pass that fails cites nothing, and is noted:
    /// the draft stands.
    async fn second_pass(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
        draft: &str,
    ) -> Result<(Cited, Vec<String>), Trouble> {
        match self.structured::<CitationList>(purpose, key, prompt).await {
            Ok(list) => {
                let located = locate(draft, &list);
                Ok((located.stretches, located.missing))
            }
            Err(Trouble::Failed(why)) => {
                let log = self.run.log();
                log.note(format_args!("no citations were set afterwards: {why}"));
                Ok((Cited::new(), Vec::new()))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Asks for an object of a shape; once more where the answer has not that shape, saying what is
    /// wrong with it.
    async fn structured<S: Shape>(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
    ) -> Result<S, Trouble> {
        let mut messages = first_messages(&prompt);
        let (answer, _) = self.ask(purpose.clone(), key, messages.clone()).await?;
        let error = match S::read(&answer) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !answer.trim().is_empty() {
            messages.push(Arc::new(Message::assistant(&answer)));
        }
        let told = format!("{error}. Answer with that object and nothing else.");
        messages.push(Arc::new(Message::user(&told)));
        let (answer, _) = self.ask(purpose, &format!("{key}-repair"), messages).await?;
        S::read(&answer).map_err(|error| Trouble::Failed(error.to_string()))
    }

    /// Asks for words. Whether they are cut off is told with them.
    async fn words(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
    ) -> Result<(String, bool), Trouble> {
        let (text, stop) = self.ask(purpose, key, first_messages(&prompt)).await?;
        if text.trim().is_empty() {
            return Err(Trouble::Failed("the model answered nothing".to_owned()));
        }
        Ok((text.trim().to_owned(), stop == StopReason::Length))
    }

    async fn ask(
        &self,
        purpose: Purpose,
        key: &str,
        messages: Vec<Arc<Message>>,
    ) -> Result<(String, StopReason), Trouble> {
        let (model, temperature) = self.model(&purpose);
        let request = ChatRequest {
            messages,
            sampling: Sampling { temperature, ..Sampling::default() },
            session: Some(self.run.todo().to_string()),
            ..ChatRequest::default()
        };
        let mut failures = 0;
        loop {
            let (purpose, request) = (purpose.clone(), request.clone());
            let asked = self.run.ask_model(model, purpose, key, request).await?;
            match asked {
                Reply::Answer(answer) => {
                    return Ok((answer.message.text().into_owned(), answer.stop));
                }
                Reply::Cancelled => return Err(Trouble::Over(Stop::Cancelled)),
                Reply::Exhausted(resource) => {
                    return Err(Trouble::Over(Stop::Exhausted { resource }));
                }
                Reply::Failed(error) => {
                    if !error.kind.is_transient() || failures >= self.deep.settings.retries {
                        return Err(Trouble::Failed(error.message));
                    }
                    let wait =
                        RetryPolicy::default().wait(failures, Some(self.run.todo().as_str()));
                    let wait = wait.max(error.retry_after.unwrap_or_default());
                    let wait = tokio::time::sleep(wait);
                    // A run that is cancelled meanwhile is told so by the next question.
                    let _ = self.run.task().cancelled.run_until_cancelled(wait).await;
                    failures += 1;
                }
            }
        }
    }

    fn model(&self, purpose: &Purpose) -> (&dyn ChatModel, Option<f64>) {
        let (deep, temperatures) = (self.deep, &self.deep.settings.temperatures);
        let (model, temperature) = if *purpose == DeepSearch::RESEARCH {
            (&deep.query_model, temperatures.research)
        } else if *purpose == DeepSearch::REFLECTION {
            (&deep.reflection_model, temperatures.reflection)
        } else if *purpose == Purpose::ANSWER {
            (&deep.answer_model, temperatures.answer)
        } else {
            (&deep.query_model, temperatures.queries)
        };
        (model.as_deref().unwrap_or(self.run.agent().model()), temperature)
    }
}

/// Stretches of a text and the numbers of their sources.
type Cited = Vec<(std::ops::Range<usize>, Vec<usize>)>;

fn first_messages(prompt: &Prompt) -> Vec<Arc<Message>> {
    vec![Arc::new(Message::system(&prompt.system)), Arc::new(Message::user(&prompt.user))]
}

/// Nobody is asked to summarise nothing.
fn nothing_found(query: &Query) -> Summary {
    let text = format!("Nothing was found for {}.", quoted(&query.query));
    Summary { text, ..Summary::default() }
}

/// The summary within a bound, each citation once, and only with the sources that it cites.
fn bounded(mut summary: Summary, tokens: usize) -> Summary {
    let end = head(&summary.text, tokens).len();
    summary.text.truncate(end);
    summary.grounding.retain(|grounding| grounding.segment.end <= end);
    let mut kept: Vec<Grounding> = Vec::new();
    for grounding in summary.grounding {
        let is_there = |other: &Grounding| {
            (other.segment.end, other.source) == (grounding.segment.end, grounding.source)
        };
        if !kept.iter().any(is_there) {
            kept.push(grounding);
        }
    }
    let mut sources: Vec<Source> = Vec::new();
    for grounding in &mut kept {
        let Some(source) = summary.sources.get(grounding.source) else { continue };
        let place = sources.iter().position(|other| other == source);
        grounding.source = place.unwrap_or_else(|| {
            sources.push(source.clone());
            sources.len() - 1
        });
    }
    Summary { grounding: kept, sources, ..summary }
}
