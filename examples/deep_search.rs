//! Deep search: queries, searches beside each other, a look at what is missing, and an answer whose links
//! lead to the bytes that it rests on.
//!
//! ```text
//! cargo run -p foldback-documents --example deep_search
//! ```
//!
//! A folder of a few documents, Chinese and English, is written and really searched. A script stands in
//! the model's place: it copies sentences out of what it is shown, and marks where they stand.

use foldback_agent::{Agent, AgentEvent, Executor, Observer, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, TodoId};
use foldback_deep_search::{DeepSearch, DeepSearchSettings, Effort, Reflection};
use foldback_documents::{DocumentFolder, DocumentSettings};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::Toolbox;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const DOCUMENTS: [(&str, &str); 3] = [
    (
        "lease.md",
        "# Leases of the notice service\n\nA worker takes a lease on a notice before it sends it.\n\n\
         ## Renewal\n\nThe lease is renewed every ten seconds and expires after thirty.\n\n\
         ## Expiry\n\nA notice whose lease has expired is given to another worker, so that it may be sent \
         twice.\n",
    ),
    (
        "发送.md",
        "# 通知的发送\n\n## 耗时\n\n向港口系统发送一条通知最多需要四十五秒。\n\n## 重试\n\n发送失败后重试三次，每次间隔翻倍。\n",
    ),
    (
        "log.txt",
        "10:41:07 worker 3 sends notice 1187\n10:41:37 lease of notice 1187 expired\n10:41:38 worker 5 \
         sends notice 1187\n10:41:49 worker 3 has sent notice 1187\n",
    ),
];

const QUESTION: &str = "Why do some notices arrive twice? 为什么有的通知会送达两次？";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    println!("(a script stands in the model's place; the documents are really searched)\n");
    let folder = tempfile::tempdir()?;
    for (name, text) in DOCUMENTS {
        fs::write(folder.path().join(name), text)?;
    }
    fs::write(folder.path().join("harbour.pdf"), "%PDF-1.7")?;
    let documents = DocumentFolder::open(folder.path(), DocumentSettings::default())?;
    let indexed = documents.indexed();
    println!("question   {QUESTION}");
    println!("documents  {} with {} passages", indexed.documents, indexed.passages);
    if let Some(files) = indexed.passed_over() {
        println!("not read   {files}");
    }

    let settings = DeepSearchSettings::default().with_passages(2);
    let settings = settings.with_effort(Effort::Medium);
    let deep = DeepSearch::new(Arc::new(documents.clone())).with_settings(settings);
    let model = Arc::new(ScriptedModel::answering(script));
    let agent = Agent::new(model, Executor::new(Toolbox::default()));
    let mut context = Full.start(TodoId::new("notices")?, Arc::new(Estimate));
    let task = Task::new("notices", QUESTION).with_observer(Arc::new(Printed::default()));
    let (report, found) = deep.search_in_full(&agent, context.as_mut(), &task).await?;

    println!("\n{}", report.answer().unwrap_or("no answer"));
    println!("\nWhat stands where the links lead:");
    for source in &found.sources {
        let passage = documents.read(&source.url)?;
        println!("\n  {}", passage.url);
        passage.text.lines().for_each(|line| println!("{}", format!("  | {line}").trim_end()));
    }
    let spent = report.trajectory.spent();
    let searches = report.trajectory.tool_calls().count();
    println!("\n{} calls of the model, {searches} searches", spent.calls);
    Ok(())
}

/// Prints the queries of each round, and what is missing behind it.
#[derive(Default)]
struct Printed {
    rounds: AtomicU32,
}

impl Observer for Printed {
    fn observe(&self, _todo: &TodoId, event: &AgentEvent) {
        match event {
            AgentEvent::CallBegan { turn, arguments, .. } => {
                if self.rounds.swap(turn + 1, Ordering::Relaxed) <= *turn {
                    println!("\nround {}", turn + 1);
                }
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                println!("  search   {}", arguments["query"].as_str().unwrap_or_default());
            }
            AgentEvent::Answered { purpose, text, .. } if *purpose == DeepSearch::REFLECTION => {
                match Reflection::parse(text) {
                    Ok(missing) if !missing.is_sufficient => {
                        println!("  missing  {}", missing.knowledge_gap);
                    }
                    _ => println!("  nothing is missing"),
                }
            }
            _ => {}
        }
    }
}

/// What the model says, by what it is asked for.
fn script(request: &ChatRequest) -> Answer {
    let asked = request.messages.last().map(|message| message.text().into_owned());
    let asked = asked.unwrap_or_default();
    let id = request.id.as_deref().unwrap_or_default();
    let text = match id.strip_prefix("notices/").unwrap_or(id) {
        "queries/queries" => json!({
            "rationale": "the lease, and what the log says of one notice",
            "query": ["when does the lease of a notice expire", "log of a notice sent by two workers"],
        })
        .to_string(),
        "reflection/round-1" => json!({
            "is_sufficient": false,
            "knowledge_gap": "how long sending takes",
            "follow_up_queries": ["发送一条通知需要多少秒"],
        })
        .to_string(),
        "reflection/round-2" => {
            json!({"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []}).to_string()
        }
        "answer/answer" => {
            let summaries = asked.split_once("The summaries:").map_or("", |(_, told)| told);
            let sentence = |word: &str| {
                let line = summaries.lines().find(|line| line.contains(word) && line.contains("]("));
                line.unwrap_or_default().to_owned()
            };
            let (lease, sending, log) =
                (sentence("expires after"), sentence("四十五秒"), sentence("1187"));
            format!(
                "Sending may take longer than the lease lasts, and then a second worker sends too. \
                 发送时间可能超过租约时间。\n\n- {lease}\n- {sending}\n- {log}"
            )
        }
        // A search's summary: a sentence of each source, with its mark.
        _ => {
            let sources = asked.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let lines = sources.filter_map(|source| {
                let text = source["text"].as_str()?;
                let words = ["expires after", "四十五秒", "1187 expired"];
                let line = text.lines().find(|line| words.iter().any(|word| line.contains(word)))?;
                Some(format!("{line} [citation:{}]", source["number"]))
            });
            let lines: Vec<String> = lines.collect();
            if lines.is_empty() { "The sources do not say.".to_owned() } else { lines.join("\n") }
        }
    };
    Answer::text(&text)
}
