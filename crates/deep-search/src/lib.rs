//! Deep search: a strategy that makes queries, searches beside each other, looks at what is missing, and
//! gives an answer whose links lead to the words that it rests on.
//!
//! ```text
//! generate_query ─> web_research (one for each query, beside each other) ─> reflection ─┬─> finalize_answer
//!                         ^                                                              │
//!                         └──────────────────── follow-up queries ───────────────────────┘
//! ```
//!
//! - A [`SearchBackend`] finds passages; [`DeepSearch`] is a strategy that has one, with settings, and with
//!   models of its own for what it asks.
//! - Each node sees its own inputs and nothing of what others were told. What a search finds is read by
//!   the model that summarises it, as quoted data, and by no other.
//! - A source has a [short URL](ShortUrls) while models write. In the answer its own stands again, and what
//!   a model made up is reported.
//! - Citations are [byte ranges](Grounding) of what was written and of the documents.
//! - With a journal, a run that was killed resumes: no query, search or summary is made again.
//!
//! It is **not** a search engine, and has no documents: the program that links it brings a backend, as
//! `foldback-documents` does for folders. It uses of the agent what any strategy from outside can use.
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
//! // A script stands in for the model. What it writes are short URLs; the answer has the real ones.
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

/// Searching: with a backend, settings, and up to three models of its own.
///
/// The model chooses queries; each is searched and what it brings summarised, all of a round beside
/// each other; the model says what is missing, and a further round looks for it, or the answer is
/// written. A search that fails does not lose the others. What is asked about is the request, with
/// the conversation that the context shows before it.
///
/// Request and answer are recorded in the context at the end of the run. With a journal, a run of the
/// same name resumes where it was killed: what was asked, searched and answered is not done again.
#[derive(Clone)]
pub struct DeepSearch {
    backend: Arc<dyn SearchBackend>,
    settings: DeepSearchSettings,
    query_model: Option<Arc<dyn ChatModel>>,
    reflection_model: Option<Arc<dyn ChatModel>>,
    answer_model: Option<Arc<dyn ChatModel>>,
    /// Where to put what a search finds out.
    findings: Option<Arc<Mutex<SearchFindings>>>,
}

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
            findings: None,
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
}

impl fmt::Debug for DeepSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeepSearch").field("settings", &self.settings).finish_non_exhaustive()
    }
}
