//! Adaptive: one plan where that can be made, a turn at a time where it cannot; and the reason for it.
//!
//! ```text
//! cargo run -p foldback-agent --example adaptive
//! ```
//!
//! Three requests in one conversation. The first can be understood by itself, so it is planned at once.
//! The second speaks of what was said before, which a planner does not see. The third could be planned,
//! but the planner says that it cannot. A script stands in the model's place; the tools really run.

use foldback_agent::{Adaptive, Agent, AgentEvent, Executor, Observer, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, TodoId, ToolCall, ToolDefinition};
use foldback_llm::ScriptedModel;
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use std::error::Error;
use std::sync::Arc;

/// Prints which strategy is chosen and why, and the calls of tools.
struct Choices;

impl Observer for Choices {
    fn observe(&self, _todo: &TodoId, event: &AgentEvent) {
        match event {
            AgentEvent::Chose { strategy, because } => println!("  {strategy}: {because}"),
            AgentEvent::CallBegan { tool, arguments, .. } => println!("  {tool} {arguments}"),
            _ => {}
        }
    }
}

fn tide_table() -> Arc<dyn Tool> {
    let spec = ToolSpec::new(ToolDefinition {
        name: "tide".to_owned(),
        description: "High water at a station, in metres.".to_owned(),
        parameters:
            r#"{"type":"object","properties":{"station":{"type":"string"}},"required":["station"]}"#
                .to_owned(),
    })
    .with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, |arguments, _| async move {
        let metres = if arguments.contains("杭州湾") { "6.4" } else { "2.1" };
        Ok(ToolOutput::text(metres))
    }))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        // The first request: one plan, two calls beside each other, the answer.
        r#"{"action_plan": {
            "step1": {"function": "tide", "args": {"station": "Holm"}},
            "step2": {"function": "tide", "args": {"station": "杭州湾"}}
        }}"#
        .into(),
        "2.1 m at Holm, 6.4 m at 杭州湾.".into(),
        // The second: step by step, with the conversation in view.
        "At 杭州湾, by 4.3 m.".into(),
        // The third: the planner declines, and the run goes on step by step.
        r#"{"mode": "react", "reason": "which stations to look at depends on what is found"}"#
            .into(),
        ToolCall::new("c1", "tide", r#"{"station": "Ness"}"#).into(),
        "Ness has 2.1 m.".into(),
    ]);
    let agent = Agent::new(Arc::new(model), Executor::new(Toolbox::new([tide_table()])?))
        .with_system_prompt("You know the tides.");
    let mut context = Full.start(TodoId::new("tides")?, Arc::new(Estimate));

    let requests = [
        "How high is high water at Holm and at 杭州湾?",
        "And at which of them is it higher, and by how much?",
        "Find a station of the northern coast where high water stays below three metres.",
    ];
    for (run, request) in ["first", "second", "third"].into_iter().zip(requests) {
        println!("\n{request}");
        let task = Task::new(run, request).with_observer(Arc::new(Choices));
        let report = agent.run(&Adaptive::default(), context.as_mut(), &task).await?;
        println!("  => {}", report.answer().unwrap_or("(no answer)"));
        println!("  the model was asked {} times", report.trajectory.spent().calls);
    }
    Ok(())
}
