//! The replay of a run from its record alone: the model's answers and the tools' results are the recorded
//! ones, and take as long.

use super::{CallRecord, ModelCall, ToolCallRecord, Trajectory};
use foldback_core::Message;
use foldback_llm::{Answer, ChatResponse, ModelError, ModelErrorKind, ScriptedModel, StopReason};
use foldback_planner::StepResult;
use foldback_tool::{
    CallContext, Data, DuplicateTool, FailureKind, Tool, ToolError, ToolErrorKind, ToolOutput,
    ToolSpec, Toolbox,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The replacements for model and tools in a replay. By tokio's clock a replay takes as long as the run
/// took: on a paused clock, no time at all.
///
/// With the settings of the recorded run, and a context of the same policy, an agent made of these has the
/// same results with the same trace; [`Trajectory::asked_otherwise`] shows whether its requests to the
/// model were the same. Calls of the policy's own tools are made again. A plan that was streamed arrives
/// in one piece. A result that took several attempts arrives with the first, after the time of all.
pub struct Replay {
    /// A model that gives the recorded answers, in order.
    pub model: ScriptedModel,
    /// Tools with the recorded names, which give the recorded results.
    pub toolbox: Toolbox,
}

impl Replay {
    /// Creates the replacements for the model and the tools of a recorded run.
    ///
    /// # Errors
    /// When the record names a tool twice.
    pub fn of(record: &Trajectory) -> Result<Self, DuplicateTool> {
        let times = record.timing.calls.iter().copied();
        let timed: Vec<(&CallRecord, Duration)> = record
            .calls
            .iter()
            .zip(times.map(|time| time.took()).chain(std::iter::repeat(Duration::ZERO)))
            .collect();
        let answers = timed.iter().filter_map(|(call, took)| match call {
            CallRecord::Model(call) => Some(answer(call, &record.situation.model).after(*took)),
            CallRecord::Tool(_) => None,
        });
        let model = ScriptedModel::new(answers).named(&record.situation.model);
        let mut recorded: HashMap<&str, Vec<Taken>> = HashMap::new();
        for (call, took) in &timed {
            let CallRecord::Tool(call) = call else { continue };
            let Some(result) = record.result(call.turn, call.step) else { continue };
            let taken = Taken::of(call, result, *took);
            recorded.entry(call.function.as_str()).or_default().push(taken);
        }
        let tools = record.situation.tools.iter().map(|tool| {
            let calls = recorded.remove(tool.name.as_str()).unwrap_or_default();
            let spec = ToolSpec::from(tool);
            Arc::new(RecordedTool { spec, calls: Mutex::new(calls.into()) }) as Arc<dyn Tool>
        });
        Ok(Self { model, toolbox: Toolbox::new(tools)? })
    }
}

fn answer(call: &ModelCall, model: &str) -> Answer {
    let message =
        call.message.as_deref().and_then(|message| Message::from_json(message.get()).ok());
    match (message, &call.error) {
        (Some(message), _) => {
            let stop = call.stop.clone().unwrap_or(StopReason::End);
            ChatResponse { message, usage: call.usage, stop, model: model.to_owned() }.into()
        }
        (None, Some(failure)) => {
            // An unknown name counts as an answer that cannot be read.
            let kind = ModelErrorKind::from_name(&failure.kind);
            let kind = kind.unwrap_or(ModelErrorKind::Response);
            ModelError::new(kind, failure.message.clone()).into()
        }
        (None, None) => Answer::text(""),
    }
}

/// A tool that gives recorded results: for a call, the first remaining one with the same arguments.
struct RecordedTool {
    spec: ToolSpec,
    calls: Mutex<VecDeque<Taken>>,
}

/// A recorded result.
struct Taken {
    arguments: String,
    took: Duration,
    result: Result<ToolOutput, ToolError>,
    /// Whether it was abandoned for taking too long.
    is_late: bool,
}

impl Taken {
    fn of(call: &ToolCallRecord, result: &StepResult, took: Duration) -> Self {
        let (result, is_late) = match result {
            StepResult::Success { data } => (Ok(ToolOutput { data: data.clone() }), false),
            StepResult::Error { failure } if failure.kind == FailureKind::Timeout => {
                (Err(ToolError::permanent(failure.message.clone())), true)
            }
            // An answer that reports a failure is still an answer.
            StepResult::Error { failure } if failure.kind == FailureKind::Status => {
                let structured = Some(r#"{"status":"fail"}"#.to_owned());
                let data = Data { text: failure.message.clone(), structured };
                (Ok(ToolOutput { data }), false)
            }
            StepResult::Error { failure } => {
                let (kind, message) = (ToolErrorKind::Known(failure.kind), failure.message.clone());
                (Err(ToolError { kind, message }), false)
            }
            StepResult::Skipped { .. } => (Err(ToolError::permanent("it was not called")), false),
        };
        Self { arguments: call.arguments.clone(), took, result, is_late }
    }
}

impl Tool for RecordedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns the time after which the recorded call was abandoned; for one that was not, a little more than it took.
    fn timeout(&self, arguments: &str) -> Option<Duration> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.iter().find(|call| call.arguments == arguments)?;
        Some(if call.is_late { call.took } else { call.took + Duration::from_secs(1) })
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let taken = {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                let at = calls.iter().position(|call| call.arguments == arguments);
                at.and_then(|at| calls.remove(at))
            };
            let Some(taken) = taken else {
                let name = self.spec.name();
                let message = format!("the record has no call of {name} with {arguments}");
                return Err(ToolError::permanent(message));
            };
            if taken.is_late {
                std::future::pending::<()>().await;
            }
            if !taken.took.is_zero() {
                tokio::time::sleep(taken.took).await;
            }
            taken.result
        }
        .boxed()
    }
}
