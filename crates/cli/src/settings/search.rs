//! `[search]`: how thoroughly documents are searched, and by which models.

use super::Wrong;
use crate::error::CliError;
use crate::run::{NamedModels, SearchIn};
use foldback_deep_search::{Citing, DeepSearch, DeepSearchSettings, Effort};
use serde::{Deserialize, Serialize};

/// How thoroughly documents are searched, and by which models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchSettings {
    /// The source to search.
    pub(crate) kind: Option<String>,
    /// The number of queries and rounds.
    pub(crate) effort: Effort,
    /// The most queries of the first round, in place of the effort's.
    pub(crate) number_of_initial_queries: Option<u32>,
    /// The most rounds, in place of the effort's.
    pub(crate) max_research_loops: Option<u32>,
    /// The most queries of a later round.
    pub(crate) max_follow_up_queries: u32,
    /// How many queries are worked on at once.
    pub(crate) max_parallel: usize,
    /// The most passages of a query.
    pub(crate) passages: usize,
    /// The most tokens of a passage that a model reads.
    pub(crate) passage_tokens: usize,
    /// The most tokens of a query's summary that are kept.
    pub(crate) summary_tokens: usize,
    /// How citations are added to a text.
    pub(crate) citing: Citing,
    /// The heading over the list of sources; empty for no list.
    pub(crate) sources_heading: String,
    /// The model of `[models]` that chooses queries and summarizes their results.
    pub(crate) query_model: Option<String>,
    /// The model that says what is missing.
    pub(crate) reflection_model: Option<String>,
    /// The model that writes the answer.
    pub(crate) answer_model: Option<String>,
}

impl Default for SearchSettings {
    fn default() -> Self {
        let usual = DeepSearchSettings::default();
        Self {
            kind: None,
            effort: Effort::Medium,
            number_of_initial_queries: None,
            max_research_loops: None,
            max_follow_up_queries: usual.max_follow_up_queries,
            max_parallel: usual.max_parallel,
            passages: usual.passages,
            passage_tokens: usual.passage_tokens,
            summary_tokens: usual.summary_tokens,
            citing: usual.citing,
            sources_heading: usual.sources_heading.unwrap_or_default(),
            query_model: None,
            reflection_model: None,
            answer_model: None,
        }
    }
}

impl SearchSettings {
    /// The settings of a search with this effort, or with that of the settings if none is given.
    pub(crate) fn of(&self, effort: Option<Effort>) -> DeepSearchSettings {
        let settings = DeepSearchSettings::default().with_effort(effort.unwrap_or(self.effort));
        let queries = self.number_of_initial_queries.unwrap_or(settings.number_of_initial_queries);
        let loops = self.max_research_loops.unwrap_or(settings.max_research_loops);
        let heading = Some(self.sources_heading.clone()).filter(|heading| !heading.is_empty());
        settings
            .with_number_of_initial_queries(queries)
            .with_max_research_loops(loops)
            .with_max_follow_up_queries(self.max_follow_up_queries)
            .with_max_parallel(self.max_parallel)
            .with_passages(self.passages)
            .with_passage_tokens(self.passage_tokens)
            .with_summary_tokens(self.summary_tokens)
            .with_citing(self.citing)
            .with_sources_heading(heading)
    }

    /// The search, with its models.
    pub(crate) fn with_models(
        &self,
        search: DeepSearch,
        models: &NamedModels,
    ) -> Result<DeepSearch, CliError> {
        let mut search = search;
        if let Some(named) = models.of(self.query_model.as_deref())? {
            search = search.with_query_model(named.model);
        }
        if let Some(named) = models.of(self.reflection_model.as_deref())? {
            search = search.with_reflection_model(named.model);
        }
        if let Some(named) = models.of(self.answer_model.as_deref())? {
            search = search.with_answer_model(named.model);
        }
        Ok(search)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        let bounds = [
            ("search.number_of_initial_queries", self.number_of_initial_queries.map(u64::from)),
            ("search.max_research_loops", self.max_research_loops.map(u64::from)),
            ("search.max_follow_up_queries", Some(u64::from(self.max_follow_up_queries))),
            ("search.max_parallel", Some(self.max_parallel as u64)),
            ("search.passages", Some(self.passages as u64)),
            ("search.passage_tokens", Some(self.passage_tokens as u64)),
            ("search.summary_tokens", Some(self.summary_tokens as u64)),
        ];
        if let Some((key, _)) = bounds.into_iter().find(|(_, bound)| *bound == Some(0)) {
            return Err((key, "a number from 1 on was expected".to_owned()));
        }
        if let Some(kind) = &self.kind {
            SearchIn::read(kind).map_err(|what| ("search.kind", what))?;
        }
        if self.sources_heading.contains(char::is_control) {
            let what = "words on one line were expected, or none";
            return Err(("search.sources_heading", what.to_owned()));
        }
        Ok(())
    }
}
