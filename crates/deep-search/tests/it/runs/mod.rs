//! Whole runs of deep search.

mod bounds;
mod citations;
mod failures;
mod graph;
mod ids;
mod resumed;
mod retries;
mod summaries;
mod tools;

use crate::script::{full, running};
use foldback_agent::{Agent, Executor, Report, Task};
use foldback_core::ContextManager;
use foldback_deep_search::{
    Citing, DeepSearch, DeepSearchSettings, DeepSearchState, Passage, SearchBackend,
    SearchFindings, Source,
};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{ToolError, Toolbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A backend that is a function, and records its queries.
struct Library {
    answer: Box<Answering>,
    wait: Duration,
    asked: Mutex<Vec<String>>,
    /// The number of searches in progress, and the most that there were at once.
    going: Mutex<(usize, usize)>,
}

/// The results of a search.
type Answering = dyn Fn(&str) -> Result<Vec<Passage>, ToolError> + Send + Sync;

impl Library {
    fn new(
        answer: impl Fn(&str) -> Result<Vec<Passage>, ToolError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (asked, going) = (Mutex::default(), Mutex::default());
        Arc::new(Self { answer: Box::new(answer), wait: Duration::from_millis(100), asked, going })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl SearchBackend for Library {
    fn search<'a>(
        &'a self,
        query: &'a str,
        _k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        async move {
            self.asked.lock().unwrap().push(query.to_owned());
            {
                let mut going = self.going.lock().unwrap();
                going.0 += 1;
                going.1 = going.1.max(going.0);
            }
            tokio::time::sleep(self.wait).await;
            self.going.lock().unwrap().0 -= 1;
            (self.answer)(query)
        }
        .boxed()
    }
}

fn found(url: &str, title: &str, text: &str) -> Passage {
    Passage {
        url: url.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        bytes: Some(0..9),
    }
}

/// Two passages about whatever is asked.
fn two(query: &str) -> Result<Vec<Passage>, ToolError> {
    let url = |n| format!("docs/{}.md#bytes=0-{n}", query.replace(' ', "_"));
    Ok(vec![
        found(&url(9), "tides.md", &format!("{query}: three metres.")),
        found(&url(8), "潮汐表", &format!("{query}：潮差三米。")),
    ])
}

/// Returns the node that a request belongs to: `research/query-1`.
fn node(request: &ChatRequest) -> &str {
    let id = request.id.as_deref().unwrap();
    let (run, key) = id.rsplit_once('/').unwrap();
    let purpose = run.rsplit('/').next().unwrap();
    &id[id.len() - key.len() - purpose.len() - 1..]
}

fn user_text(request: &ChatRequest) -> String {
    request.messages[1].text().into_owned()
}

fn queries(queries: &[&str]) -> String {
    serde_json::json!({"rationale": "r", "query": queries}).to_string()
}

fn insufficient(queries: &[&str]) -> String {
    serde_json::json!({"is_sufficient": false, "knowledge_gap": "缺潮时", "follow_up_queries": queries})
        .to_string()
}

fn sufficient() -> String {
    r#"{"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []}"#.to_owned()
}

/// Returns the links in the summaries of the request for the answer.
fn links(request: &ChatRequest) -> Vec<String> {
    let text = user_text(request);
    let summaries = text.split("The summaries:").nth(1).unwrap();
    let mut links = Vec::new();
    for part in summaries.split(" [").skip(1) {
        if let Some(end) = part.find(')').filter(|_| part.contains("](")) {
            links.push(format!("[{}", &part[..=end]));
        }
    }
    links
}

/// A model that asks for two queries, then for one more, cites as instructed, and copies all links.
fn usual(request: &ChatRequest) -> Answer {
    let text = match node(request) {
        "queries/queries" => queries(&["潮差", "tide times"]),
        "reflection/round-1" => insufficient(&["tide tables"]),
        "reflection/round-2" => sufficient(),
        "answer/answer" => format!("潮差三米 {}。", links(request).join(" ")),
        node if node.starts_with("research/query-") => {
            "It is three metres [citation:1]. 潮差三米。[citation:2]".to_owned()
        }
        node => panic!("{node}"),
    };
    Answer::text(&text)
}

fn model(answer: impl Fn(&ChatRequest) -> Answer + Send + Sync + 'static) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::answering(answer))
}

/// An agent, and its search.
struct Searcher {
    agent: Agent,
    deep: DeepSearch,
}

/// The outcome of a search.
struct Searched {
    report: Report,
    draft: Option<String>,
    text: Option<String>,
    sources: Vec<Source>,
    invented: Vec<String>,
    state: DeepSearchState,
}

impl Searcher {
    async fn run(&self, context: &mut dyn ContextManager, task: &Task) -> Report {
        self.agent.run(&self.deep, context, task).await.unwrap()
    }

    async fn run_in_full(&self, task: &Task) -> Searched {
        let found = self.deep.search_in_full(&self.agent, full().as_mut(), task).await;
        let (report, SearchFindings { draft, text, sources, invented, state }) = found.unwrap();
        Searched { report, draft, text, sources, invented, state }
    }
}

fn agent(
    model: &Arc<ScriptedModel>,
    library: &Arc<Library>,
    settings: DeepSearchSettings,
) -> Searcher {
    let agent = running(model, Executor::new(Toolbox::default()));
    let deep = DeepSearch::new(library.clone()).with_settings(settings);
    Searcher { agent: agent.with_system_prompt("Answer for sailors."), deep }
}

fn plain() -> DeepSearchSettings {
    DeepSearchSettings::default().with_sources_heading(None)
}

fn afterwards() -> DeepSearchSettings {
    plain().with_citing(Citing::Afterwards)
}

async fn search(searcher: &Searcher) -> Searched {
    searcher.run_in_full(&Task::new("run", "潮差多少?")).await
}

fn nodes(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(|request| node(request).to_owned()).collect()
}

/// A model that writes first and cites afterwards.
fn citing_afterwards(request: &ChatRequest) -> Answer {
    let text = match node(request) {
        "research/query-1" | "research/query-2" | "research/query-3" => {
            "It is three metres. 潮差三米。".to_owned()
        }
        "answer/answer" => "潮差是三米。\n\n**It** is three metres, as [1] says.".to_owned(),
        "answer/answer-citations" => {
            let asked = user_text(request);
            assert!(asked.contains("metres.[citation:2] 潮差三米。[citation:1]"), "{asked}");
            r#"{"citations": [{"quote": "潮差是三米。", "sources": [2, 9]}, {"quote": "three metres", "sources": [1, 2]}, {"quote": "not there", "sources": [1]}]}"#.to_owned()
        }
        node if node.ends_with("-citations") => {
            r#"{"citations": [{"quote": "潮差三米。", "sources": [2]}, {"quote": "metres.", "sources": [1]}]}"#
                .to_owned()
        }
        _ => return usual(request),
    };
    Answer::text(&text)
}
