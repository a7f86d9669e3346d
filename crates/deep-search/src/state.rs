//! The state of a search, node by node, and its next step.

use crate::{Citation, Marks, Reflection, Source, insert_citations};
use foldback_core::{Message, first_chars};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// The state of a search. Nodes read what they need from it and return an [`Update`], which appends to the
/// lists and changes nothing that is already in the state.
#[derive(Clone, Debug, Default)]
pub struct DeepSearchState {
    /// The conversation: the request, and at the end the answer.
    pub messages: Vec<Arc<Message>>,
    /// The queries that were made, each at its number minus one.
    pub search_query: Vec<Query>,
    /// Their results, in the same order.
    pub web_research_result: Vec<Research>,
    /// The sources that the summaries rest on, in their order; a URL that several queries found is listed
    /// for each of them.
    pub sources_gathered: Vec<Source>,
    /// The most queries of the first round.
    pub initial_search_query_count: u32,
    /// The most rounds.
    pub max_research_loops: u32,
    /// The number of rounds so far.
    pub research_loop_count: u32,
    /// The model that reflects.
    pub reasoning_model: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Its number, counted from 1 over all rounds without a gap.
    pub id: u32,
    /// Its text.
    pub query: String,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Research {
    /// The query.
    pub query: Query,
    /// The summary, or the reason why there is none.
    pub outcome: Result<Summary, String>,
}

/// A summary of the passages that a query found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The text, without citations.
    pub text: String,
    /// Which parts of it rest on which source.
    pub grounding: Vec<Grounding>,
    /// The sources that it rests on.
    pub sources: Vec<Source>,
    /// Citations that name no source of the query, as they were written.
    pub invented: Vec<String>,
}

/// A stretch of a summary and the source that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounding {
    /// The stretch, in bytes of the summary's text.
    pub segment: Range<usize>,
    /// The index of the source among those of the summary.
    pub source: usize,
}

/// What a node adds to the state.
#[derive(Clone, Debug)]
pub enum Update {
    /// The query node: the first queries.
    Queries(Vec<Query>),
    /// The research nodes of a round: the result of each query, by number.
    Research(Vec<Research>),
    /// The reflection node: the queries of another round.
    FollowUps(Vec<Query>),
    /// The answer node: the answer, and the sources that it uses.
    Answered(Arc<Message>, Vec<Source>),
}

/// The state of the reflection node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectionState {
    /// Whether the question can be answered from what there is.
    pub is_sufficient: bool,
    /// What is missing.
    pub knowledge_gap: String,
    /// The queries that may find it.
    pub follow_up_queries: Vec<String>,
    /// The number of rounds, including this one.
    pub research_loop_count: u32,
    /// The number of queries that were made.
    pub number_of_ran_queries: u32,
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Another round, with a research node for each of these.
    WebResearch(Vec<Query>),
    /// The answer, for this reason.
    FinalizeAnswer(&'static str),
}

impl DeepSearchState {
    /// Applies the update of a node.
    pub fn apply(&mut self, update: Update) {
        match update {
            Update::Queries(queries) | Update::FollowUps(queries) => {
                self.search_query.extend(queries);
            }
            Update::Research(results) => {
                let summaries = results.iter().filter_map(|result| result.outcome.as_ref().ok());
                self.sources_gathered
                    .extend(summaries.flat_map(|summary| summary.sources.iter().cloned()));
                self.web_research_result.extend(results);
                self.research_loop_count += 1;
            }
            Update::Answered(answer, used) => {
                self.messages.push(answer);
                self.sources_gathered = used;
            }
        }
    }

    /// Returns the state of the reflection node after a reflection.
    #[must_use]
    pub fn reflected(&self, reflection: Reflection) -> ReflectionState {
        let Reflection { is_sufficient, knowledge_gap, follow_up_queries } = reflection;
        ReflectionState {
            is_sufficient,
            knowledge_gap,
            follow_up_queries,
            research_loop_count: self.research_loop_count,
            number_of_ran_queries: u32::try_from(self.search_query.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the next step after a reflection. Follow-up queries that were already answered are dropped, and
    /// at most `most` are kept; without any, the answer is written.
    #[must_use]
    pub fn route(&self, reflection: &ReflectionState, most: u32) -> Route {
        if reflection.is_sufficient {
            return Route::FinalizeAnswer("the summaries are sufficient");
        }
        if reflection.research_loop_count >= self.max_research_loops {
            return Route::FinalizeAnswer("the last round is over");
        }
        let is_answered = |query: &str| {
            let answered = self.web_research_result.iter().filter(|result| result.outcome.is_ok());
            answered.into_iter().any(|result| same(&result.query.query, query))
        };
        let follow_ups = reflection.follow_up_queries.iter().map(String::as_str);
        let follow_ups = follow_ups.filter(|query| !is_answered(query));
        let queries = numbered(follow_ups, reflection.number_of_ran_queries, most);
        if queries.is_empty() {
            return Route::FinalizeAnswer("there is no further query");
        }
        Route::WebResearch(queries)
    }
}

/// Numbers queries after `ran` others: at most `most`, without blank ones and repetitions.
pub(crate) fn numbered<'q>(
    queries: impl IntoIterator<Item = &'q str>,
    ran: u32,
    most: u32,
) -> Vec<Query> {
    let mut distinct: Vec<&str> = Vec::new();
    for query in
        queries.into_iter().map(|query| bounded(query.trim())).filter(|query| !query.is_empty())
    {
        if distinct.len() < most as usize && !distinct.iter().any(|other| same(other, query)) {
            distinct.push(query);
        }
    }
    let ids = (1..).map(|n: u32| ran.saturating_add(n));
    ids.zip(distinct).map(|(id, query)| Query { id, query: query.to_owned() }).collect()
}

/// The longest query, in characters.
const MAX_QUERY: usize = 300;

/// Cuts a query to the longest length.
fn bounded(query: &str) -> &str {
    first_chars(query, MAX_QUERY).trim_end()
}

/// Returns whether two queries are the same but for case, width, punctuation and spaces.
fn same(one: &str, other: &str) -> bool {
    words(one) == words(other)
}

/// Returns what a query searches for: its letters and numbers, and the signs that are part of a name
/// (`C++`, `C#`). Spaces separate words, but not in Chinese.
fn words(query: &str) -> String {
    let composed: String = query.nfkc().flat_map(char::to_lowercase).collect();
    let is_word = |c: char| c.is_alphanumeric() || "+#".contains(c);
    let mut out = String::with_capacity(composed.len());
    for word in composed.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
        let is_parted =
            out.ends_with(|c: char| c.is_ascii()) && word.starts_with(|c: char| c.is_ascii());
        if is_parted {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

impl Summary {
    /// Returns the text with a link to the short URL of its source after each stretch.
    #[must_use]
    pub fn with_links(&self) -> String {
        let citations: Vec<Citation> = self
            .grounding
            .iter()
            .filter_map(|grounding| {
                let source = self.sources.get(grounding.source)?;
                let Range { start, end } = grounding.segment;
                let links = vec![source.short_link()];
                Some(Citation { start: Some(start), end: Some(end), links })
            })
            .collect();
        insert_citations(&self.text, &citations)
    }

    /// Returns the text with marks instead; each source has the number that `number` returns for it.
    pub(crate) fn with_marks(&self, marks: &Marks, number: impl Fn(&Source) -> usize) -> String {
        let mut grounding: Vec<&Grounding> = self.grounding.iter().collect();
        grounding.sort_by_key(|grounding| grounding.segment.end);
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        for Grounding { segment, source } in grounding {
            let Some(source) = self.sources.get(*source) else { continue };
            let at = self.text.ceil_char_boundary(segment.end);
            out.push_str(self.text.get(from..at).unwrap_or_default());
            out.push_str(&marks.mark(number(source)));
            from = at;
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }
}
