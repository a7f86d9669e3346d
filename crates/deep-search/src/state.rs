//! What a search knows, node by node, and where it goes on.

use crate::{Citation, Marks, Reflection, Source, insert_citations};
use foldback_core::{Message, first_chars};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// The state of a search. Nodes read of it what they need, and give an [`Update`]; nothing that stands
/// in it is changed by that, lists are appended to.
#[derive(Clone, Debug, Default)]
pub struct DeepSearchState {
    /// The conversation: what was asked, and at the end the answer.
    pub messages: Vec<Arc<Message>>,
    /// The queries that were made, each at its number less one.
    pub search_query: Vec<Query>,
    /// What came of them, in the same order.
    pub web_research_result: Vec<Research>,
    /// The sources that the summaries rest on, in their order; a URL that several queries brought is
    /// there for each of them.
    pub sources_gathered: Vec<Source>,
    /// How many queries the first round has at most.
    pub initial_search_query_count: u32,
    /// How many rounds there are at most.
    pub max_research_loops: u32,
    /// How many rounds there were.
    pub research_loop_count: u32,
    /// The model that reflects.
    pub reasoning_model: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Its number, from 1 on, over all rounds without a gap.
    pub id: u32,
    /// Its words.
    pub query: String,
}

/// What came of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Research {
    /// The query.
    pub query: Query,
    /// The summary, or why there is none.
    pub outcome: Result<Summary, String>,
}

/// What the passages that a query brought say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The text, without citations.
    pub text: String,
    /// What of it rests on which source.
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
    /// The place of the source among those of the summary.
    pub source: usize,
}

/// What a node adds to the state.
#[derive(Clone, Debug)]
pub enum Update {
    /// The query node: the first queries.
    Queries(Vec<Query>),
    /// The research nodes of a round: what came of each query, by number.
    Research(Vec<Research>),
    /// The reflection node: the queries of another round.
    FollowUps(Vec<Query>),
    /// The answer node: the answer, and the sources that it uses.
    Answered(Arc<Message>, Vec<Source>),
}

/// What the reflection node knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectionState {
    /// Whether the question can be answered from what there is.
    pub is_sufficient: bool,
    /// What is missing.
    pub knowledge_gap: String,
    /// The queries that may bring it.
    pub follow_up_queries: Vec<String>,
    /// How many rounds there were, this one included.
    pub research_loop_count: u32,
    /// How many queries were made.
    pub number_of_ran_queries: u32,
}

/// Where a search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Another round, with a research node for each of these.
    WebResearch(Vec<Query>),
    /// The answer, and why.
    FinalizeAnswer(&'static str),
}

impl DeepSearchState {
    /// Takes what a node gives.
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

    /// The state of the reflection node after a reflection.
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

    /// Where it goes on after a reflection. Follow-up queries that were answered already are not asked
    /// again, nor are there more than `most`; without any, nothing more can be found out.
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

/// Queries with their numbers behind those of `ran` others: without those that are blank or stand there
/// twice, at most `most`.
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

/// No query is longer, in characters.
const MAX_QUERY: usize = 300;

/// A query up to the longest one.
fn bounded(query: &str) -> &str {
    first_chars(query, MAX_QUERY).trim_end()
}

/// Whether two queries are one, but for case, width, punctuation and spaces.
fn same(one: &str, other: &str) -> bool {
    words(one) == words(other)
}

/// What is searched for in a query: its letters and numbers, and the signs that are part of a name
/// (`C++`, `C#`). Spaces part words, but not in Chinese.
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
    /// The text with a link to the short URL of its source behind each stretch.
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

    /// The text with marks instead: each source has the number that `number` gives it.
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
