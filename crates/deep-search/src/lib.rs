//! Deep search: a strategy that makes queries, searches for them in parallel, looks for what is missing, and
//! writes an answer whose links lead to the words that it rests on.
//!
//! ```text
//! generate_query ─> web_research (one for each query, in parallel) ─> reflection ─┬─> finalize_answer
//!                         ^                                                       │
//!                         └────────────────── follow-up queries ──────────────────┘
//! ```
//!
//! - A [`SearchBackend`] finds passages; [`DeepSearch`] is a strategy that has one, with settings, and with
//!   models of its own for its requests.
//! - Each node sees its own inputs and nothing of those of the others. The results of a search are read, as
//!   quoted data, only by the model that summarises them.
//! - A source has a [short URL](ShortUrls) while models write. The answer has the source's own URL again, and
//!   whatever a model made up is reported.
//! - Citations are [byte ranges](Grounding) of the summaries and of the documents.
//! - With a journal, a run that was killed resumes: no query, search or summary is made again.
//!
//! It is **not** a search engine, and has no documents: the program that links it supplies a backend, such as
//! `foldback-documents` for folders. The crate uses only what the agent offers to every external strategy.
//!
//! ```
//! use foldback_agent::{Agent, Executor, Task};
//! use foldback_baselines::Full;
//! use foldback_core::{Estimate, TodoId};
//! use foldback_deep_search::{DeepSearch, Passage, SearchBackend, ShortUrls};
//! use foldback_llm::ScriptedModel;
//! use foldback_tool::{ToolError, Toolbox};
//! use futures::FutureExt;
//! use futures::future::BoxFuture;
//! use std::sync::Arc;
//!
//! /// A library of one page.
//! struct Library;
//!
//! impl SearchBackend for Library {
//!     fn search<'a>(
//!         &'a self,
//!         _query: &'a str,
//!         _k: usize,
//!     ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
//!         let (url, title) = ("docs/tides.md".to_owned(), "Tides".to_owned());
//!         let text = "杭州湾的潮差约六米。".to_owned();
//!         async { Ok(vec![Passage { url, title, text, bytes: None }]) }.boxed()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let task = Task::new("tides", "How high is the tide at 杭州湾?");
//! // A script stands in for the model. It writes short URLs; the answer has the real ones.
//! let short = ShortUrls::of_run(&task.run, &task.request).resolve(1, ["docs/tides.md"]);
//! let model = ScriptedModel::new([
//!     r#"{"rationale": "one page says it", "query": ["杭州湾 潮差"]}"#.into(),
//!     "The tidal range is about six metres.[citation:1]".into(),
//!     r#"{"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []}"#.into(),
//!     format!("About six metres [Tides]({}).", short[0]).as_str().into(),
//! ]);
//! let agent = Agent::new(Arc::new(model), Executor::new(Toolbox::default()));
//! let mut context = Full.start(TodoId::new("tides")?, Arc::new(Estimate));
//! let search = DeepSearch::new(Arc::new(Library));
//! let report = agent.run(&search, context.as_mut(), &task).await?;
//! assert_eq!(
//!     report.answer(),
//!     Some("About six metres [Tides](docs/tides.md).\n\nSources:\n1. [Tides](docs/tides.md)"),
//! );
//! # Ok(())
//! # }
//! ```

mod afterwards;
mod backend;
mod citations;
mod cleared;
mod drive;
mod marks;
mod nodes;
mod questions;
mod requests;
mod research_tool;
mod settings;
mod short_urls;
mod state;
mod structured;
mod tool_search;

pub use afterwards::{CitationList, Located, QuotedCitation, locate};
pub use backend::{Passage, SearchBackend};
pub use citations::{Citation, Link, insert_citations, label, link_safe};
pub use drive::SearchFindings;
pub use marks::{Mark, Marked, Marks};
pub use requests::research_topic;
pub use research_tool::research;
pub use settings::{Citing, DeepSearchSettings, Effort, Temperatures};
pub use short_urls::{Restored, ShortUrls, Source};
pub use state::{
    DeepSearchState, Grounding, Query, ReflectionState, Research, Route, Summary, Update,
};
pub use structured::{Reflection, SearchQueryList, ShapeError};
pub use tool_search::ToolSearch;

use foldback_llm::ChatModel;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// The strategy, with a backend, settings, and up to three models of its own.
///
/// The model chooses queries; each is searched for and its results are summarised, all of a round in
/// parallel; the model says what is missing, and a further round looks for it, or the answer is written.
/// A search that fails does not affect the others. The topic is the request, with the conversation that
/// the context shows before it.
///
/// Request and answer are recorded in the context at the end of the run. With a journal, a run of the
/// same name resumes where it was killed: no finished request or search is repeated.
#[derive(Clone)]
pub struct DeepSearch {
    backend: Arc<dyn SearchBackend>,
    settings: DeepSearchSettings,
    query_model: Option<Arc<dyn ChatModel>>,
    reflection_model: Option<Arc<dyn ChatModel>>,
    answer_model: Option<Arc<dyn ChatModel>>,
    /// Receives the findings of a search.
    findings: Option<Arc<Mutex<SearchFindings>>>,
}

impl DeepSearch {
    /// Creates a search with this backend, default settings and the agent's model.
    #[must_use]
    pub fn new(backend: Arc<dyn SearchBackend>) -> Self {
        Self {
            backend,
            settings: DeepSearchSettings::default(),
            query_model: None,
            reflection_model: None,
            answer_model: None,
            findings: None,
        }
    }

    /// Sets the settings.
    #[must_use]
    pub fn with_settings(self, settings: DeepSearchSettings) -> Self {
        Self { settings, ..self }
    }

    /// Sets another model for queries and for the summaries of their results.
    #[must_use]
    pub fn with_query_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { query_model: Some(model), ..self }
    }

    /// Sets another model that says what is missing.
    #[must_use]
    pub fn with_reflection_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { reflection_model: Some(model), ..self }
    }

    /// Sets another model that writes the answer.
    #[must_use]
    pub fn with_answer_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { answer_model: Some(model), ..self }
    }
}

impl fmt::Debug for DeepSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeepSearch").field("settings", &self.settings).finish_non_exhaustive()
    }
}
