//! A plan that waits for a fact: sunshine books a table, rain orders in.
//!
//! ```text
//! cargo run -p foldback-agent --example weather_and_restaurant
//! ```
//!
//! Whether to go out cannot be planned before the forecast is there, so the plan ends in an anchor.
//! When the forecast has come, the planner is asked once more, with that fact. A script stands in the
//! model's place; the tools really run.

use foldback_agent::{Agent, Executor, OnePlan, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, Message, TodoId, ToolDefinition};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const REQUEST: &str =
    "帮我查一下杭州今天下午 6 点的天气，如果晴朗就订西湖餐厅，下雨就点黄焖鸡外卖。";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    println!("(a script stands in the model's place; the tools really run)\n");
    for forecast in ["小雨，18 °C", "晴，24 °C"] {
        println!("== the forecast is {forecast} ==\n");
        let model = Arc::new(ScriptedModel::answering(planner));
        let agent = Agent::new(model.clone(), Executor::new(tools(forecast)?))
            .with_system_prompt("You help people in 杭州 with their evening.");
        let mut context = Full.start(TodoId::new("evening")?, Arc::new(Estimate));
        let report = agent
            .run(&OnePlan::default(), context.as_mut(), &Task::new("evening", REQUEST))
            .await?;

        for (number, plan) in (1..).zip(&report.trajectory.plan) {
            println!("plan {number}:");
            for step in &plan.steps {
                println!("  {step}");
            }
        }
        println!("\nwhat happened, and when:");
        report.traces.iter().for_each(|trace| print!("{trace}"));
        println!("\nresults:");
        for result in &report.trajectory.results {
            println!("  {}: {}", result.step, serde_json::to_string(&result.result)?);
        }
        println!("\nanswer: {}", report.answer().unwrap_or("none"));
        println!("the model was asked {} times\n", model.calls());
    }
    Ok(())
}

/// What a model would write: a plan with an anchor, the decision once the weather is known, and the
/// answer. Only whoever plans is told how plans are written, and only whoever decides of an anchor.
fn planner(request: &ChatRequest) -> Answer {
    let says = |message: Option<&Arc<Message>>, words: &str| {
        message.is_some_and(|message| message.text().contains(words))
    };
    let plans = says(request.messages.first(), "action_plan");
    let decides = says(request.messages.last(), "to be decided now");
    let it_rains = says(request.messages.last(), r#""result":"小雨"#);
    let text = match (plans, decides, it_rains) {
        (true, false, _) => PLAN,
        (true, true, true) => DELIVERY,
        (true, true, false) => RESTAURANT,
        (false, _, true) => "在下雨，黄焖鸡已经点好了。",
        (false, _, false) => "是晴天，西湖餐厅已经订好了。",
    };
    Answer::text(text).after(Duration::from_millis(300))
}

const PLAN: &str = r#"{
  "action_plan": {
    "step1": {
      "function": "search_weather",
      "args": {"city": "杭州", "time": "18:00"},
      "dependence": []
    },
    "step2": {
      "function": "anchor_function",
      "args": {
        "task": "根据step1结果：若晴朗则调用restaurant_booking，若下雨则调用food_delivery"
      },
      "dependence": [1] // 明确依赖第一步的天气数据
    }
  }
}"#;

const DELIVERY: &str = r#"{"action_plan": {
  "step3": {"function": "food_delivery", "args": {"dish": "黄焖鸡"}, "dependence": [1]}
}}"#;

const RESTAURANT: &str = r#"{"action_plan": {
  "step3": {"function": "restaurant_booking", "args": {"restaurant": "西湖餐厅"}, "dependence": [1]}
}}"#;

/// Three tools. Each takes a while, as a service would.
fn tools(forecast: &'static str) -> Result<Toolbox, Box<dyn Error>> {
    let weather = tool(
        "search_weather",
        "The weather of a city at an hour of today.",
        &["city", "time"],
        Effect::ReadOnly,
        move |_| forecast.to_owned(),
    );
    let booking = tool(
        "restaurant_booking",
        "Books a table.",
        &["restaurant"],
        Effect::Effectful,
        |arguments| format!("{}：18:00 两位，已预订", text(&arguments, "restaurant")),
    );
    let delivery =
        tool("food_delivery", "Orders food.", &["dish"], Effect::Effectful, |arguments| {
            format!("{}：已下单，30 分钟送到", text(&arguments, "dish"))
        });
    Ok(Toolbox::new([weather, booking, delivery])?)
}

/// A tool whose arguments are texts.
fn tool(
    name: &str,
    description: &str,
    arguments: &[&str],
    effect: Effect,
    answer: impl Fn(Value) -> String + Clone + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let properties: serde_json::Map<String, Value> = arguments
        .iter()
        .map(|name| ((*name).to_owned(), serde_json::json!({"type": "string"})))
        .collect();
    let schema =
        serde_json::json!({"type": "object", "properties": properties, "required": arguments});
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema.to_string(),
    };
    let spec = ToolSpec::new(definition).with_effect(effect);
    Arc::new(FunctionTool::new(spec, move |arguments, _context| {
        let answer = answer.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(120)).await;
            let arguments = serde_json::from_str(&arguments)
                .map_err(|error| ToolError::arguments(error.to_string()))?;
            Ok(ToolOutput::text(answer(arguments)))
        }
    }))
}

fn text(arguments: &Value, name: &str) -> String {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
