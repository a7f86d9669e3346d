//! A strategy of your own: how the agent goes about a task, in a type that foldback does not know.
//!
//! ```text
//! cargo run -p foldback-reference-agent --example own_strategy
//! ```
//!
//! This one looks something up by a tool, asks the model several times beside each other and takes the answer
//! that most agree on. What it asks and calls goes through the run, so it is journalled, charged and observed
//! as in any other strategy. A script stands in the model's place.

use foldback_reference_agent::ReferenceAgent;
use foldback_reference_agent::agent::{
    AgentError, Ending, Purpose, SpendLimits, SpendTracker, Stop, Strategy, StrategyName,
    StrategyRun, Task,
};
use foldback_reference_agent::foldback::core::{
    Budget, ContextManager, Message, TodoId, ToolCall, ToolDefinition,
};
use foldback_reference_agent::foldback::{Memory, Options};
use foldback_reference_agent::llm::{ChatRequest, ScriptedModel};
use foldback_reference_agent::planner::{lower_calls, render_tool_results};
use foldback_reference_agent::tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec};
use futures::future::{BoxFuture, FutureExt as _, join_all};
use std::error::Error;
use std::sync::Arc;

/// Looks at the gauge, asks this often, and takes the answer that most agree on.
struct Majority(usize);

impl Strategy for Majority {
    fn name(&self) -> StrategyName {
        StrategyName::new("majority")
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        async move {
            run.open(context, &self.system_prompt(run.agent()))?;
            let plan = lower_calls(&[ToolCall::new("look-up", "gauge", "{}")]).plan;
            let looked_up = run.run_plan(context, Purpose::named("look-up"), &plan).await?;
            // A call that was cancelled is made when the run goes on; the model sees nothing of it before.
            if run.task().cancelled.is_cancelled() {
                return Ok(Ending::from(Stop::Cancelled));
            }
            let results = render_tool_results(looked_up.results.values());
            context.record(Message::observation(&results))?;
            let request = ChatRequest::from(context.prompt(&Budget::default()));
            // A key names a question: a resumed run finds its answer in the journal.
            let keys: Vec<String> = (0..self.0).map(|vote| format!("vote-{vote}")).collect();
            let votes = keys.iter().map(|key| run.ask(Purpose::ANSWER, key, request.clone()));
            let mut answers = Vec::new();
            for vote in join_all(votes).await {
                match vote?.answer() {
                    Ok(response) => answers.push(response.message.text().into_owned()),
                    Err(stop) => return Ok(Ending::from(stop)),
                }
            }
            let agree = |answer: &&String| answers.iter().filter(|other| other == answer).count();
            let answer = answers.iter().max_by_key(agree).cloned().unwrap_or_default();
            context.record(Message::assistant(&answer))?;
            Ok(Ending::answered(answer))
        }
        .boxed()
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let model = Arc::new(ScriptedModel::new(["6.4 m".into(), "4.6 m".into(), "6.4 m".into()]));
    let agent = ReferenceAgent::new(model.clone())
        .with_tools([gauge()])
        .with_strategy(Arc::new(Majority(3)))
        .build()?;
    let memory = Memory::in_memory(Options::default())?;
    let mut context = memory.session(&TodoId::new("tides")?)?;
    let few = SpendLimits::default().with_model_calls(10);
    let task = Task::new("tides", "How high is high water at 杭州湾?")
        .with_spend(SpendTracker::new(few, None)?);
    let report = agent.run(&mut context, &task).await?;
    for told in model.requests()[0].messages.iter().filter(|message| message.is_observation()) {
        println!("{}", told.text());
    }
    println!("{} votes, by {}", task.spend.spent().model_calls, report.trajectory.strategy.chosen);
    println!("=> {}", report.answer().unwrap_or("(no answer)"));
    Ok(())
}

/// A tool of the program.
fn gauge() -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "gauge".to_owned(),
        description: "The water level at 杭州湾, twice a day.".to_owned(),
        parameters: r#"{"type": "object", "properties": {}}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, |_, _| async {
        Ok(ToolOutput::text("high 6.4 m, low -0.2 m"))
    }))
}
