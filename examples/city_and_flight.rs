//! A plan whose second step uses what the first one finds, while a third runs beside them.
//!
//! ```text
//! cargo run -p foldback-agent --example city_and_flight
//! ```
//!
//! Where to fly is not known when the plan is made, only where that will stand: in the result of the
//! first step. The flight starts the moment the city is there; the hotel prices do not wait for either.
//! A script stands in the model's place; the tools really run.

use foldback_agent::{Agent, Executor, OnePlan, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, TodoId, ToolDefinition};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const REQUEST: &str = "春晚分会场在哪个城市？帮我订去那里的机票，顺便看看酒店的价格。";

const PLAN: &str = r#"{
  "action_plan": {
    "step1": { "function": "search_city", "args": {"query": "春晚分会场"} },
    "step2": {
      "function": "book_flight",
      "args": {"to": "$$step1.result$$"},
      "dependence": [1] // 明确依赖第一步结果
    },
    "step3": { "function": "hotel_prices", "args": {"nights": 2} }
  }
}"#;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    println!("(a script stands in the model's place; the tools really run)\n");
    // The plan, then the answer: a plan in which nothing fails takes these two calls.
    let model = Arc::new(ScriptedModel::new([
        Answer::text(PLAN),
        Answer::text("分会场在沈阳，机票已经订好（CZ6325）；酒店两晚 640 元起。"),
    ]));
    let agent = Agent::new(model.clone(), Executor::new(tools()?));
    let mut context = Full.start(TodoId::new("flight")?, Arc::new(Estimate));
    let report =
        agent.run(&OnePlan::default(), context.as_mut(), &Task::new("flight", REQUEST)).await?;

    println!("the plan, as the model wrote it:\n{PLAN}\n");
    println!("what happened, and when:");
    report.traces.iter().for_each(|trace| print!("{trace}"));
    println!("\ncalls, with what stood in the place of the reference:");
    for call in report.trajectory.tool_calls() {
        println!("  {}: {} {}", call.step, call.function, call.arguments);
    }
    println!("\nresults:");
    for result in &report.trajectory.results {
        println!("  {}: {}", result.step, serde_json::to_string(&result.result)?);
    }
    println!("\nanswer: {}", report.answer().unwrap_or("none"));
    println!("the model was asked {} times", model.calls());
    Ok(())
}

fn tools() -> Result<Toolbox, Box<dyn Error>> {
    let city = tool(
        "search_city",
        "Finds the city that something is in.",
        r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#,
        Effect::ReadOnly,
        Duration::from_millis(200),
        |arguments| match arguments.get("query").and_then(Value::as_str) {
            Some(query) if query.contains("春晚") => Ok(ToolOutput::text("沈阳")),
            _ => Err(ToolError::permanent("nothing is known about that; ask for something else")),
        },
    );
    let flight = tool(
        "book_flight",
        "Books the next flight to a city.",
        r#"{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}"#,
        Effect::Effectful,
        Duration::from_millis(150),
        |arguments| {
            let to = arguments.get("to").and_then(Value::as_str).unwrap_or_default();
            Ok(ToolOutput::json(format!(r#"{{"to":"{to}","flight":"CZ6325","price":1180.50}}"#)))
        },
    );
    let hotels = tool(
        "hotel_prices",
        "What hotels cost for some nights.",
        r#"{"type":"object","properties":{"nights":{"type":"integer"}},"required":["nights"]}"#,
        Effect::ReadOnly,
        Duration::from_millis(300),
        |arguments| {
            let nights = arguments.get("nights").and_then(Value::as_u64).unwrap_or(1);
            Ok(ToolOutput::text(format!("{} 元起", nights * 320)))
        },
    );
    Ok(Toolbox::new([city, flight, hotels])?)
}

/// A tool that takes its time, as a service would.
fn tool(
    name: &str,
    description: &str,
    schema: &str,
    effect: Effect,
    takes: Duration,
    answer: fn(Value) -> Result<ToolOutput, ToolError>,
) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(effect);
    Arc::new(FunctionTool::new(spec, move |arguments, _context| async move {
        tokio::time::sleep(takes).await;
        let arguments = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::arguments(error.to_string()))?;
        answer(arguments)
    }))
}
