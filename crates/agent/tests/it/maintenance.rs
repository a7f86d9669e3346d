//! The background work of a policy.

use crate::script::{agent, model, task};
use crate::toolkit::{spec, tool};
use foldback_agent::{React, Report, Task};
use foldback_baselines::Counters;
use foldback_baselines::stm_ltm::{
    Compression, Compressor, Finished, Note, NoteKind, StmLtmConfig, Written,
};
use foldback_core::{ContextError, Estimate, SideCall, TodoId, ToolCall};
use foldback_llm::ScriptedModel;
use foldback_tool::{Effect, Tool, ToolOutput};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How often each test calls the tool.
const CALLS: u64 = 5;

/// A number that goes up, and that threads wait for.
#[derive(Default)]
struct Stage {
    reached: Mutex<u64>,
    changed: Condvar,
}

impl Stage {
    fn reach(&self, number: u64) {
        let mut reached = self.reached.lock().unwrap();
        *reached = number.max(*reached);
        self.changed.notify_all();
    }

    /// Waits for a number that is reached soon.
    #[track_caller]
    fn wait(&self, number: u64) {
        let reached = self.reached.lock().unwrap();
        let most = Duration::from_secs(20);
        let waited = self.changed.wait_timeout_while(reached, most, |reached| *reached < number);
        assert!(!waited.unwrap().1.timed_out(), "{number} never came");
    }
}

/// The state that a compressor and a tool share.
#[derive(Default)]
struct Meeting {
    /// The last step whose folding has begun.
    folding: Stage,
    /// The last call that has begun.
    calling: Stage,
}

/// Folds a step once the call of the next one has begun; if it is slow, only the first.
struct Writer {
    meeting: Arc<Meeting>,
    is_slow: bool,
}

impl Compressor for Writer {
    fn name(&self) -> &str {
        "written by a model"
    }

    fn fold(&self, step: &Finished, _: &Counters) -> Result<Written, ContextError> {
        self.meeting.folding.reach(step.number);
        let is_late = self.is_slow && step.number > 1;
        self.meeting.calling.wait(if is_late { CALLS } else { step.number } + 1);
        let text = format!("第{}步 is folded.", step.number);
        let note = Note { kind: NoteKind::Summary, of: None, text };
        let call =
            SideCall { purpose: "summary", input_tokens: 70_000, output_tokens: 7, cost: None };
        Ok(Written { notes: vec![note], call: Some(call) })
    }

    fn compress(&self, _: &Compression<'_>, _: &Counters) -> Result<Written, ContextError> {
        Ok(Written::default())
    }
}

/// A tool whose call N waits until step N - 1 is being folded, where the two `meet`.
fn work(meeting: &Arc<Meeting>, meet: bool) -> Arc<dyn Tool> {
    let meeting = Arc::clone(meeting);
    tool(spec("work", Effect::Effectful), move |arguments, _| {
        let meeting = Arc::clone(&meeting);
        async move {
            let number: serde_json::Value = serde_json::from_str(&arguments).unwrap();
            let number = number["n"].as_u64().unwrap();
            let called = tokio::task::spawn_blocking(move || {
                if meet {
                    meeting.folding.wait(number - 1);
                }
                meeting.calling.reach(number);
            });
            called.await.unwrap();
            Ok(ToolOutput::text(format!("result {number}")))
        }
    })
}

/// A run of some calls in a context with a memory that a compressor writes.
async fn run(meeting: &Arc<Meeting>, is_slow: bool) -> (Report, Task, Arc<ScriptedModel>) {
    let compressor = Writer { meeting: Arc::clone(meeting), is_slow };
    let config = StmLtmConfig { compressor: Arc::new(compressor), ..StmLtmConfig::default() };
    let mut context = config.start(TodoId::new("task").unwrap(), Arc::new(Estimate));
    let call = |n| ToolCall::new("c", "work", &format!(r#"{{"n": {n}}}"#)).into();
    let model = model((1..=CALLS).map(call).chain(["done".into()]));
    let agent = agent(&model, vec![work(meeting, !is_slow)]);
    let task = task("Work on.");
    let report = agent.run(&React::default(), context.as_mut(), &task).await.unwrap();
    // Folding that is still in progress ends after the run, and does no harm.
    meeting.calling.reach(CALLS + 2);
    assert_eq!(report.answer(), Some("done"));
    assert_eq!(report.trajectory.tool_calls().count() as u64, CALLS);
    (report, task, model)
}

/// The second message of the last request: what the policy remembers.
fn remembered(model: &ScriptedModel) -> String {
    model.requests().last().unwrap().messages[1].text().into_owned()
}

/// CX2, CX11: while a tool runs, the step before it is folded: each waits until the other has begun, so a
/// sequential loop would never end. The policy's own requests to a model are charged.
#[tokio::test]
async fn cx2_a_step_is_folded_while_the_next_tool_runs() {
    let meeting = Arc::new(Meeting::default());
    let (_, task, model) = run(&meeting, false).await;
    assert!(remembered(&model).contains("第1步 is folded."), "{}", remembered(&model));
    let spent = task.spend.spent();
    assert!(spent.model_calls > CALLS + 1 && spent.usage.input > 70_000, "{spent:?}");
}

/// CX3: a compressor that never ends delays nothing: the run ends before it does, and the model learns of it
/// what is not in the memory yet, and shown it in its original form.
#[tokio::test]
async fn cx3_the_loop_waits_for_no_compressor() {
    let meeting = Arc::new(Meeting::default());
    let (_, _, model) = run(&meeting, true).await;
    let remembered = remembered(&model);
    assert!(
        remembered.contains("第1步 is folded.") && !remembered.contains("第2步"),
        "{remembered}"
    );
    assert!(remembered.contains("It lags: 3 steps are not in it yet"), "{remembered}");
    let requests = model.requests();
    let shown = |text: &str| requests.last().unwrap().messages.iter().any(|m| m.text() == text);
    assert!((2..=CALLS).all(|n| shown(&format!("result {n}"))) && !shown("result 1"));
}
