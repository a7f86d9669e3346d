//! A run once more, from its record alone: the model's answers and the tools' results are those that
//! were recorded, and take as long.

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

/// What stands in the places of model and tools when a run is done once more. By tokio's clock it
/// takes as long as it took: on a paused one, no time at all.
///
/// With the settings of the recorded run, and a context of the same policy, an agent of these comes to
/// the same results with the same trace; [`Trajectory::asked_otherwise`] says whether it asked the
/// model the same. Calls of the policy's own tools are made again. A plan that was streamed comes in one piece. A result that took several attempts comes with
/// the first, after the time of all.
pub struct Replay {
    /// Gives the recorded answers, in order.
    pub model: ScriptedModel,
    /// Tools by the recorded names, which give the recorded results.
    pub toolbox: Toolbox,
}

impl Replay {
    /// What stands in for the model and the tools of a recorded run.
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
            // A name that is unknown here stands for an answer that cannot be read.
            let kind = ModelErrorKind::from_name(&failure.kind);
            let kind = kind.unwrap_or(ModelErrorKind::Response);
            ModelError::new(kind, failure.message.clone()).into()
        }
        (None, None) => Answer::text(""),
    }
}

/// A tool that gives results it gave before: of the calls with the same arguments, the first that is
/// left.
struct RecordedTool {
    spec: ToolSpec,
    calls: Mutex<VecDeque<Taken>>,
}

/// A result that a call was given.
struct Taken {
    arguments: String,
    took: Duration,
    result: Result<ToolOutput, ToolError>,
    /// It was given up for taking too long.
    is_late: bool,
}

impl Taken {
    fn of(call: &ToolCallRecord, result: &StepResult, took: Duration) -> Self {
        let (result, is_late) = match result {
            StepResult::Success { data } => (Ok(ToolOutput { data: data.clone() }), false),
            StepResult::Error { failure } if failure.kind == FailureKind::Timeout => {
                (Err(ToolError::permanent(failure.message.clone())), true)
            }
            // An answer that says of itself that it failed is an answer.
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

    /// The time after which the recorded call was given up; a little more for those that were not.
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
