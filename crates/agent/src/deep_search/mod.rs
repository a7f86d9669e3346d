//! Deep search: queries, searches beside each other, a look at what is missing, and an answer whose
//! links lead to the words that it rests on.
//!
//! ```text
//! generate_query ─> web_research (one for each query, beside each other) ─> reflection ─┬─> finalize_answer
//!                         ^                                                              │
//!                         └──────────────────── follow-up queries ───────────────────────┘
//! ```
//!
//! - A [`SearchBackend`] finds passages; [`DeepSearch`] is that with settings, and with models of its own
//!   for what it asks. [`Agent::deep_search`] does the search.
//! - Each node sees its own inputs and nothing of what others were told. What a search finds is read by
//!   the model that summarises it, as quoted data, and by no other.
//! - A source has a [short URL](ShortUrls) while models write. In the answer its own stands again, and what
//!   a model made up is reported.
//! - Citations are [byte ranges](Grounding) of what was written and of the documents.
//! - With a journal, a run that was killed goes on: no query, search or summary is made again.

mod afterwards;
mod backend;
mod citations;
mod cleared;
mod drive;
mod marks;
mod nodes;
mod requests;
mod research_tool;
mod settings;
mod short_urls;
mod state;
mod structured;

pub use afterwards::{CitationList, Located, QuotedCitation, locate};
pub use backend::{Found, SearchBackend};
pub use citations::{Citation, Link, insert_citations, label, link_safe};
pub use drive::DeepReport;
pub use marks::{Mark, Marked, Marks};
pub use requests::research_topic;
pub use research_tool::research;
pub use settings::{Citing, DeepSearchSettings, Effort, Temperatures};
pub use short_urls::{Restored, ShortUrls, Source};
pub use state::{
    DeepSearchState, Grounding, Query, ReflectionState, Research, Route, Summary, Update,
};
pub use structured::{Reflection, SearchQueryList, ShapeError};

#[cfg(doc)]
use crate::Agent;
use foldback_llm::ChatModel;
use std::fmt;
use std::sync::Arc;

/// What an agent searches with: a backend, settings, and up to three models of its own.
#[derive(Clone)]
pub struct DeepSearch {
    backend: Arc<dyn SearchBackend>,
    settings: DeepSearchSettings,
    query_model: Option<Arc<dyn ChatModel>>,
    reflection_model: Option<Arc<dyn ChatModel>>,
    answer_model: Option<Arc<dyn ChatModel>>,
    on_report: Option<Arc<OnReport>>,
}

/// Takes what a search found out.
type OnReport = dyn Fn(&DeepReport) + Send + Sync;

impl DeepSearch {
    /// Searches with this backend, default settings and the agent's model.
    #[must_use]
    pub fn new(backend: Arc<dyn SearchBackend>) -> Self {
        Self {
            backend,
            settings: DeepSearchSettings::default(),
            query_model: None,
            reflection_model: None,
            answer_model: None,
            on_report: None,
        }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with_settings(self, settings: DeepSearchSettings) -> Self {
        Self { settings, ..self }
    }

    /// The same with another model for queries and for the summaries of what they bring.
    #[must_use]
    pub fn with_query_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { query_model: Some(model), ..self }
    }

    /// The same with another model that says what is missing.
    #[must_use]
    pub fn with_reflection_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { reflection_model: Some(model), ..self }
    }

    /// The same with another model that writes the answer.
    #[must_use]
    pub fn with_answer_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { answer_model: Some(model), ..self }
    }

    /// The same, giving `on_report` everything that each search found out, at its end.
    #[must_use]
    pub fn with_reports(self, on_report: impl Fn(&DeepReport) + Send + Sync + 'static) -> Self {
        Self { on_report: Some(Arc::new(on_report)), ..self }
    }
}

impl fmt::Debug for DeepSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeepSearch").field("settings", &self.settings).finish_non_exhaustive()
    }
}
