//! The gap loop, closed by an agent: what has left the view is searched, loaded and reported, and not
//! read again.

use crate::story::{engines, exchange, in_memory, open_on, todo};
use foldback::Memory;
use foldback_agent::{Adaptive, Agent, Executor, React, Task};
use foldback_core::{Budget, ContextManager, Role, ToolCall, ToolDefinition};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file, a first request about it, and a later one.
#[derive(Clone, Copy)]
struct Story {
    heading: &'static str,
    conclusion: &'static str,
    /// The words by which the conclusion is found.
    word: &'static str,
    /// What only a reader of the file knows.
    fact: &'static str,
    asked: &'static str,
    later: &'static str,
    query: &'static str,
}

const ENGLISH: Story = Story {
    heading: "region,quarter,units",
    conclusion: "conclusion: the northern region sold 41,207 units, twice the plan",
    word: "conclusion",
    fact: "41,207",
    asked: "Read data.txt and keep it in mind.",
    later: "What did the data.txt we read conclude?",
    query: "data.txt conclusion",
};

const CHINESE: Story = Story {
    heading: "地区，季度，销量",
    conclusion: "结论：北方地区共售出四万一千二百零七台，是计划的两倍",
    word: "结论",
    fact: "四万一千二百零七台",
    asked: "读取 data.txt，先记着。",
    later: "我们读过的 data.txt 得出了什么结论？",
    query: "data.txt 结论",
};

impl Story {
    fn file(self) -> String {
        let mut text = format!("{}\n", self.heading);
        for row in 0..900 {
            text.push_str(&format!("r{},{},{}\n", row % 7, row % 4 + 1, row * 37 % 1_000));
        }
        text.push_str(self.conclusion);
        text.push('\n');
        text
    }

    /// The answer of a model that follows the rule in its instructions: what is asked for and not in
    /// view is searched for and loaded. It knows nothing but what the request shows.
    fn answer(self, request: &ChatRequest) -> Answer {
        let last = || request.messages[..request.messages.len() - request.volatile].last().unwrap();
        let shown: Vec<String> =
            request.messages.iter().map(|message| message.api_json()).collect();
        let shown = shown.join("\n");
        if *last().role() == Role::User {
            // The memory's rule may follow a request.
            if last().text().starts_with(self.asked) {
                return ToolCall::new("r", "file_read", r#"{"path": "data.txt"}"#).into();
            }
            assert!(last().text().starts_with(self.later), "{}", last().text());
            assert!(!shown.contains(self.fact), "the conclusion is still in view");
            assert!(request.tools.iter().any(|tool| tool.name == "search_block"));
            assert!(shown.contains("search_block"), "no rule tells to search");
            let query = serde_json::json!({ "query": self.query }).to_string();
            return ToolCall::new("s", "search_block", &query).into();
        }
        let result = last().text().into_owned();
        if result.contains(self.heading) && !result.contains("<recalled") {
            return "Noted. 记住了。".into();
        }
        // What was loaded is reported; what a search named is loaded.
        if last().tool_call_id().is_some_and(|id| id.as_str().starts_with('l')) {
            let line = result.lines().find(|line| line.contains(self.fact));
            return line.unwrap_or_else(|| panic!("not loaded: {result}")).trim().into();
        }
        let reference = result
            .split(|c: char| c.is_whitespace() || "\",;()<>".contains(c))
            .find(|word| word.starts_with("store://"))
            .unwrap_or_else(|| panic!("no reference in: {result}"))
            .trim_end_matches(['.', ':']);
        let arguments = serde_json::json!({ "ref": reference, "match": self.word }).to_string();
        ToolCall::new("l", "load", &arguments).into()
    }
}

fn file_read(story: Story, reads: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "file_read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: r#"{"type": "object", "required": ["path"]}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
    let reads = Arc::clone(reads);
    Arc::new(FunctionTool::new(spec, move |_, _| {
        reads.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolOutput::text(story.file())) }
    }))
}

async fn check(story: Story, memory: &Memory) {
    let reads = Arc::new(AtomicUsize::new(0));
    let model = Arc::new(ScriptedModel::answering(move |request| story.answer(request)));
    let toolbox = Toolbox::new([file_read(story, &reads)]).unwrap();
    let agent = Agent::new(model.clone(), Executor::new(toolbox));
    let mut session = memory.session(&todo("gap")).unwrap();
    let task = Task::new("first", story.asked);
    agent.run(&React::default(), &mut session, &task).await.unwrap();
    for n in 0..13 {
        for message in exchange(n, "scheduler", "fn tick() {}") {
            session.record(message).unwrap();
        }
    }
    assert!(!told(&session).contains(story.fact));

    // The request points back, so that nobody plans it without the conversation.
    let task = Task::new("second", story.later);
    let report = agent.run(&Adaptive::default(), &mut session, &task).await.unwrap();
    assert_eq!(report.trajectory.strategy.chosen, React::NAME);
    assert!(report.answer().unwrap().contains(story.fact), "{:?}", report.answer());
    let calls: Vec<&str> =
        report.trajectory.tool_calls().map(|call| call.function.as_str()).collect();
    assert_eq!(calls, ["search_block", "load"]);
    assert_eq!(reads.load(Ordering::SeqCst), 1, "the file is not read a second time");
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
    assert_eq!(checkup.payloads, 1, "what came back is not stored a second time");
}

fn told(context: &dyn ContextManager) -> String {
    let prompt = context.prompt(&Budget::default());
    prompt.messages.iter().map(|message| message.api_json()).collect::<Vec<_>>().join("\n")
}

/// TL8: fifty messages later, "what did the data.txt we read conclude?" is searched, loaded and answered,
/// without a second read; in English and in Chinese, in memory and on each engine.
#[tokio::test(flavor = "current_thread")]
async fn tl8_an_agent_recalls_what_left_its_view() {
    for story in [ENGLISH, CHINESE] {
        check(story, &in_memory()).await;
        for engine in engines() {
            let dir = tempfile::tempdir().unwrap();
            check(story, &open_on(engine, dir.path())).await;
        }
    }
}
