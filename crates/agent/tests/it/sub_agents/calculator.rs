//! A sub-agent as a tool: arguments in, a conclusion out.

use super::{told, walk};
use crate::keeping::{Keeping, calling};
use crate::script::task;
use crate::toolkit::{spec, tool};
use foldback_agent::{Agent, Executor, React, SubAgentTool, SubAgents};
use foldback_core::{Estimate, TokenCounter};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;

/// CX7: a sub-agent as a tool sees only its arguments; the caller's conversation grows by a short conclusion,
/// however much was read for it.
#[tokio::test]
async fn cx7_a_search_is_a_calculator() {
    let found = "西湖景区门票信息".repeat(4_000);
    let text = found.clone();
    let search = tool(spec("search", Effect::ReadOnly), move |_, _| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    });
    let long = format!("周六晴，建议去青藤茶馆。{}", "详情。".repeat(3_000));
    let mut model: Option<Arc<ScriptedModel>> = None;
    for (answer, is_cut) in
        [("周六晴, 建议去青藤茶馆; 周日雨, 建议室内体验。", false), (&long, true)]
    {
        let args = json!({"query": "杭州周末天气及茶馆建议 {city}", "days": 2});
        let answer = answer.to_owned();
        let own = Arc::new(ScriptedModel::answering(move |request| {
            let results = request.messages.iter().filter(|m| m.tool_call_id().is_some()).count();
            match (request.session.as_deref().unwrap_or_default(), results) {
                ("task", 0) => calling("ask_search", args.clone()),
                ("task", _) => "完成".into(),
                (_, n @ 0..3) => calling("search", json!({"page": n})),
                (_, _) => Answer::text(&answer),
            }
        }));
        let template =
            Agent::new(own.clone(), Executor::new(Toolbox::new([search.clone()]).unwrap()));
        let calculator = SubAgentTool::new(
            spec("ask_search", Effect::ReadOnly),
            SubAgents::new(template).with_strategy(Arc::new(React::default())),
            "在 {days} 天内: {query}",
        );
        let agent = Agent::new(
            own.clone(),
            Executor::new(Toolbox::new([Arc::new(calculator) as Arc<dyn Tool>]).unwrap()),
        );
        let mut context = Keeping::new();
        let report =
            agent.run(&React::default(), &mut context, &task("机密: 给王总订行程")).await.unwrap();
        assert_eq!(report.answer(), Some("完成"));

        let told = told(&own);
        assert!(told.starts_with(r#"{"step":"ask_search","args":{"#), "{told}");
        let read: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(read["args"]["query"], "杭州周末天气及茶馆建议 {city}");
        let result = read["result"].as_str().unwrap();
        assert!(result.starts_with("周六晴"), "{result}");
        assert_eq!(result.contains("characters left out"), is_cut, "{result}");
        assert!(Estimate.count(&told) < 500, "{}", Estimate.count(&told));
        let all: String = context.said("task").concat();
        assert!(!all.contains("西湖景区"), "nothing of what was read reaches the caller");

        let todos = context.todos();
        assert_eq!(todos.len(), 2);
        let inside = context.said(&todos[1]);
        assert!(todos[1].starts_with("task.ask_search-"), "{}", todos[1]);
        assert_eq!(inside[1], "user: 在 2 天内: 杭州周末天气及茶馆建议 {city}");
        assert!(!inside.concat().contains("机密"), "the caller's conversation stays its own");
        assert_eq!(inside.len(), 9);
        model = Some(own);
    }
    assert_eq!(model.unwrap().calls(), 6);
}

/// CX7: a sub-agent without an answer is a failed call, which says why.
#[tokio::test]
async fn cx7_a_search_that_fails_says_so() {
    let broken = foldback_llm::ModelError::new(foldback_llm::ModelErrorKind::Configuration, "断网");
    let answers =
        vec![calling("ask_search", json!({})), Answer::text("").failing(broken), "完成".into()];
    let model = Arc::new(ScriptedModel::new(answers));
    let template = Agent::new(model.clone(), Executor::new(Toolbox::default()));
    let sub_agents = SubAgents::new(template).with_strategy(Arc::new(React::default()));
    let tool = SubAgentTool::new(spec("ask_search", Effect::ReadOnly), sub_agents, "{arguments}");
    let toolbox = Toolbox::new([Arc::new(tool) as Arc<dyn Tool>]).unwrap();
    let report =
        walk(&Agent::new(model.clone(), Executor::new(toolbox)), &mut Keeping::new()).await;
    assert_eq!(report.answer(), Some("完成"));
    assert!(
        told(&model).starts_with("Error (tool): ") && told(&model).contains("断网"),
        "{}",
        told(&model)
    );
}
