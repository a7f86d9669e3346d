//! The nodes of a deep search: their order, and what each of them sees.

use super::{
    Library, Searcher, agent, insufficient, model, node, nodes, plain, search, two, user_text,
    usual,
};
use crate::script::{conversation, full, running};
use foldback_agent::{AgentEvent, Executor, Observer, Purpose, React, Stop, SubAgents, Task};
use foldback_core::{Message, Role, TodoId, ToolCall};
use foldback_deep_search::{DeepSearch, research};
use foldback_llm::ScriptedModel;
use foldback_tool::Toolbox;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// DS1, DS7: the nodes come in the order of the graph; ids are dense over the rounds. The record has the
/// purpose of each call of the model, and each search as a call.
#[tokio::test(start_paused = true)]
async fn ds1_the_graph() {
    let (model, library) = (model(usual), Library::new(two));
    let settings = plain().with_sources_heading("来源".to_owned());
    let report = search(&agent(&model, &library, settings)).await;
    let mut order = nodes(&model);
    order[1..3].sort();
    assert_eq!(
        order,
        [
            "queries/queries",
            "research/query-1",
            "research/query-2",
            "reflection/round-1",
            "research/query-3",
            "reflection/round-2",
            "answer/answer",
        ]
    );
    let ids: Vec<u32> = report.state.search_query.iter().map(|query| query.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(report.state.research_loop_count, 2);

    let record = &report.report.trajectory;
    assert_eq!(record.strategy.chosen, DeepSearch::NAME);
    let spent: BTreeMap<Purpose, u64> =
        record.tokens.iter().map(|(purpose, spent)| (purpose.clone(), spent.calls)).collect();
    let expected = [
        (Purpose::ANSWER, 1),
        (DeepSearch::QUERIES, 1),
        (DeepSearch::RESEARCH, 3),
        (DeepSearch::REFLECTION, 2),
    ];
    assert_eq!(spent, BTreeMap::from(expected));
    let searched: Vec<(u32, String)> =
        record.tool_calls().map(|call| (call.turn, call.arguments.clone())).collect();
    assert_eq!(searched[0], (0, r#"{"query":"潮差","k":5}"#.to_owned()));
    assert_eq!(searched[2], (1, r#"{"query":"tide tables","k":5}"#.to_owned()));
    let turns: Vec<u32> = record.strategy.turns.iter().map(|turn| turn.calls).collect();
    assert_eq!(turns, [2, 1]);

    // DS10: the answer has the sources' own URLs, and each source once in the list.
    let answer = report.report.answer().unwrap();
    let (text, list) = answer.split_once("\n\n来源:").unwrap();
    assert_eq!(Some(text), report.text.as_deref());
    assert!(
        text.contains("[tides](docs/潮差.md#bytes=0-9) [潮汐表](docs/潮差.md#bytes=0-8)"),
        "{text}"
    );
    assert!(!answer.contains(".invalid"), "{answer}");
    assert_eq!(list.lines().skip(1).count(), 6);
    assert_eq!(list.lines().nth(1), Some("1. [tides](docs/潮差.md#bytes=0-9)"));
    assert_eq!(report.sources.len(), 6);
    assert_eq!(report.invented, Vec::<String>::new());
    assert_eq!(record.outcome.stop, Stop::Answered);
}

/// DS6: insufficient, and nothing to look for: the answer is written. The original reaches no node.
#[tokio::test(start_paused = true)]
async fn ds6_no_follow_up_is_the_end() {
    let model = model(|request| match node(request) {
        "reflection/round-1" => insufficient(&[]).as_str().into(),
        _ => usual(request),
    });
    let report = search(&agent(&model, &Library::new(two), plain())).await;
    assert!(report.report.answer().is_some());
    assert_eq!(nodes(&model).last().unwrap(), "answer/answer");
}

/// DS11: each node sees its inputs and nothing of the others.
#[tokio::test(start_paused = true)]
async fn ds11_nodes_are_isolated() {
    let (model, library) = (model(usual), Library::new(two));
    let mut context = full();
    for message in [Message::user("我在厦门。"), Message::assistant("好。")] {
        context.record(message).unwrap();
    }
    let task = Task::new("run", "潮差多少?");
    agent(&model, &library, plain()).run(context.as_mut(), &task).await;
    let topic = "User: 我在厦门。\nAssistant: 好。\nUser: 潮差多少?\n";
    let requests = model.requests();
    for request in &requests {
        let roles: Vec<&Role> = request.messages.iter().map(|message| message.role()).collect();
        assert_eq!(roles, [&Role::System, &Role::User]);
        assert!(request.tools.is_empty());
        let (system, user) = (request.messages[0].text(), user_text(request));
        let node = node(request);
        assert_eq!(user.contains(topic), !node.starts_with("research/"), "{node}");
        assert_eq!(system.contains("for sailors"), node.starts_with("answer/"), "{node}");
        // Only the model that summarises the documents reads them.
        assert_eq!(user.contains("潮差：潮差三米"), node == "research/query-1", "{node}");
        assert_eq!(
            user.contains("It is three metres"),
            !node.starts_with("research/") && !node.starts_with("queries/"),
            "{node}"
        );
    }
    assert_eq!(user_text(&requests[0]), topic);
    let reflection = requests.iter().find(|r| node(r) == "reflection/round-2").unwrap();
    assert_eq!(user_text(reflection).matches("\n\n---\n\n").count(), 2);
    // The context has the question and the answer.
    let roles: Vec<String> =
        conversation(context.as_ref()).iter().map(|m| m.role().as_str().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

/// CX7: as a tool of another agent, a search sees its arguments and nothing of the conversation, which
/// grows by the conclusion.
#[tokio::test(start_paused = true)]
async fn cx7_research_is_a_calculator() {
    let library = Library::new(two);
    let searching = model(usual);
    let Searcher { agent, deep } = agent(&searching, &library, plain());
    let tool = research(deep, SubAgents::new(agent));
    let call = ToolCall::new("c1", "research", r#"{"question": "潮差多少?"}"#);
    let main = Arc::new(ScriptedModel::new([call.into(), "三米".into()]));
    let parent = running(&main, Executor::new(Toolbox::new([tool]).unwrap()));
    let mut context = full();
    let task = Task::new("parent", "SECRET plan: sail tomorrow");
    let report = parent.run(&React::default(), context.as_mut(), &task).await.unwrap();
    assert_eq!(report.answer(), Some("三米"));
    let messages = conversation(context.as_ref());
    assert_eq!(messages.len(), 4);
    let told: serde_json::Value = serde_json::from_str(&messages[2].text()).unwrap();
    assert_eq!(
        (&told["step"], &told["args"]["question"]),
        (&"research".into(), &"潮差多少?".into())
    );
    let result = told["result"].as_str().unwrap();
    assert!(result.starts_with("潮差三米 [tides](docs/潮差.md#bytes=0-9)"), "{result}");
    for request in searching.requests() {
        let text: String = request.messages.iter().map(|m| m.text().into_owned()).collect();
        assert!(!text.contains("SECRET"), "{text}");
    }
    assert_eq!(searching.calls(), 7);
}

/// Events are reported: rounds as plans, searches as calls.
#[tokio::test(start_paused = true)]
async fn ds1_events() {
    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);
    impl Observer for Seen {
        fn observe(&self, todo: &TodoId, event: &AgentEvent) {
            assert_eq!(todo.as_str(), "task");
            let json = serde_json::to_value(event).unwrap();
            self.0.lock().unwrap().push(json["event"].as_str().unwrap().to_owned());
        }
    }
    let seen = Arc::new(Seen::default());
    let task = Task::new("run", "潮差多少?").with_observer(seen.clone());
    let agent = agent(&model(usual), &Library::new(two), plain());
    agent.run(full().as_mut(), &task).await;
    let seen = seen.0.lock().unwrap();
    let count = |name: &str| seen.iter().filter(|event| *event == name).count();
    assert_eq!((count("asked"), count("answered"), count("planned")), (7, 7, 2));
    assert_eq!((count("call_began"), count("call_ended"), count("noted")), (3, 3, 1));
}
