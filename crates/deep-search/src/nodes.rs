//! The nodes of a search, each a function of its inputs: queries, research, reflection, answer.

use crate::backend::{SEARCH, SearchArguments};
use crate::cleared::{Cleared, cleared};
use crate::requests::{Prompts, head};
use crate::short_urls::Restored;
use crate::state::numbered;
use crate::{
    Citation, Citing, DeepSearch, DeepSearchState, Grounding, Marked, Marks, Passage, Query,
    Reflection, Research, SearchQueryList, ShortUrls, Source, Summary, insert_citations, label,
};
use foldback_agent::{AgentError, Executor, Purpose, Stop, StrategyRun};
use foldback_core::quoted;
use foldback_planner::{Action, FailurePolicy, Form, Plan, Step, StepId, StepResult, Template};
use foldback_tool::FailureKind;
use futures::FutureExt;
use std::sync::atomic::AtomicBool;

/// A run of the nodes.
pub(crate) struct Nodes<'a> {
    pub(crate) run: &'a StrategyRun<'a>,
    pub(crate) deep: &'a DeepSearch,
    pub(crate) prompts: Prompts<'a>,
    /// Runs the searches.
    pub(crate) executor: Executor,
    pub(crate) short_urls: ShortUrls,
    /// Whether the journal held the last answer that was asked for.
    pub(crate) is_known: AtomicBool,
}

/// The reason why a node has no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The run cannot continue.
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
pub(crate) struct Answered {
    /// The text as the model wrote it.
    pub(crate) draft: String,
    pub(crate) restored: Restored,
    /// Words that the second pass cites and that are not in the draft.
    pub(crate) unplaced: Vec<String>,
    pub(crate) is_cut_off: bool,
}

impl Nodes<'_> {
    /// `generate_query`: returns the queries of the first round.
    pub(crate) async fn generate_query(&self, most: u32) -> Result<Vec<Query>, Trouble> {
        let ask = |key: String| {
            let prompt = self.prompts.queries(most);
            async move { self.structured(DeepSearch::QUERIES, &key, prompt).await }.boxed()
        };
        let list: SearchQueryList = self.insist("queries", ask).await?;
        Ok(numbered(list.query.iter().map(String::as_str), 0, most))
    }

    /// Returns the round's searches as a plan, for the record.
    pub(crate) fn plan(&self, queries: &[Query]) -> Plan {
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

    /// `web_research`: returns the summary of what a query finds. A search or a model that fails is reported as
    /// such.
    pub(crate) async fn web_research(&self, query: &Query, turn: u32) -> Result<Research, Trouble> {
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

    /// Searches, or takes from the journal what the search found before the run was killed.
    async fn search(
        &self,
        query: &Query,
        turn: u32,
    ) -> Result<Result<Vec<Passage>, String>, Trouble> {
        let arguments = serde_json::to_string(&self.search_arguments(query)).unwrap_or_default();
        let step = StepId(query.id);
        self.run.step_began(turn, step, SEARCH, &arguments);
        let plan = Plan { form: Form::Native, steps: vec![self.search_step(query)] };
        let name = format!("query-{}", query.id);
        let mut outcome = self.run.run_steps(&self.executor, turn, &name, &plan).await?;
        Ok(match outcome.results.remove(&step) {
            Some(StepResult::Success { data }) => serde_json::from_str(&data.text)
                .map_err(|error| format!("the result of the search cannot be read: {error}")),
            Some(StepResult::Error { failure }) if failure.kind == FailureKind::Cancelled => {
                return Err(Trouble::Over(Stop::Cancelled));
            }
            Some(StepResult::Error { failure }) => Err(failure.message),
            Some(StepResult::Skipped { .. }) | None => Err("the search was not made".to_owned()),
        })
    }

    async fn summarise(&self, query: &Query, found: &[Passage]) -> Result<Summary, Trouble> {
        let sources = self.sources(query, found);
        let place = |found: &Passage| sources.iter().position(|source| source.url == found.url);
        let numbered: Vec<(usize, &Passage)> =
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

    /// Returns the sources of what a query found: one for each URL.
    fn sources(&self, query: &Query, found: &[Passage]) -> Vec<Source> {
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

    /// `reflection`: returns whether the results are enough, and what else to look for.
    pub(crate) async fn reflection(&self, state: &DeepSearchState) -> Result<Reflection, Trouble> {
        let key = format!("round-{}", state.research_loop_count);
        let prompt = self.prompts.reflection(&state.web_research_result);
        self.structured(DeepSearch::REFLECTION, &key, prompt).await
    }

    /// `finalize_answer`: returns the answer, with links to the sources.
    pub(crate) async fn finalize_answer(
        &self,
        state: &DeepSearchState,
        gap: Option<&str>,
    ) -> Result<Answered, Trouble> {
        let results = &state.web_research_result;
        let is_linked = self.deep.settings.citing == Citing::WhileWriting;
        let prompt = self.prompts.answer(results, gap, is_linked);
        let ask = |key: String| {
            let prompt = prompt.clone();
            async move { self.words(Purpose::ANSWER, &key, prompt).await }.boxed()
        };
        let (draft, is_cut_off) = self.insist("answer", ask).await?;
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
}

/// Returns the summary of a search that found nothing, without asking a model.
fn nothing_found(query: &Query) -> Summary {
    let text = format!("Nothing was found for {}.", quoted(&query.query));
    Summary { text, ..Summary::default() }
}

/// Cuts the summary to a limit, with each citation once and only the sources that it cites.
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
