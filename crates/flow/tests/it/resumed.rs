//! Flows that are killed and resumed: nothing that was answered is asked again, nothing that ran runs again,
//! and the conversations become those of a flow that was not killed.

use crate::keeping::{Keeping, calling};
use crate::runs::{name, names, planning};
use crate::script::{running, task};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::{
    Executor, Journal, JournalError, MemoryJournal, React, ReactSettings, Record, Report, Stop,
};
use foldback_flow::{Flow, FlowSettings, StepContext, StepExecutor};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A journal that fails when it is about to write one record more than it may.
struct Dying {
    kept: Arc<MemoryJournal>,
    left: Mutex<usize>,
}

impl Journal for Dying {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        let mut left = self.left.lock();
        let Some(fewer) = left.checked_sub(1) else {
            return Err(JournalError::Broken { path: "gone".into() });
        };
        *left = fewer;
        self.kept.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.kept.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.kept.records(run)
    }
}

/// The script: a plan; a step with calls; one that fails twice and is planned around; a call in the new step;
/// a last step that two executors could do.
fn answer(name: &str) -> Answer {
    let answer = match name {
        "flow/plan" => planning(&["查天气 [AGENT_1]", "订酒店", "写"]),
        "step-1.1/react/1" => calling("look", json!({"q": "天气"})),
        "step-1.1/react/2" => calling("look", json!({"q": "潮位"})),
        "step-2.1/react/1" => calling("book", json!({"hotel": "一"})),
        "step-2.1/react/2" => "BLOCKED: 满房".into(),
        "step-2.2/react/1" => calling("terminate", json!({"status": "failure"})),
        "flow/replan-1" => {
            calling("planning", json!({"command": "update", "steps": ["换一家", "写"]}))
        }
        "step-3.1/react/1" => calling("book", json!({"hotel": "二"})),
        _ => Answer::text(&format!("said {name}")),
    };
    answer.after(ms(10))
}

/// A flow over several processes.
struct Lives {
    context: StepContext,
    journal: Arc<MemoryJournal>,
    /// How often each tool was called with each key.
    called: Arc<Mutex<BTreeMap<String, u32>>>,
    /// How often the model was asked each question.
    asked: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Lives {
    fn new(context: StepContext) -> Self {
        Self { context, journal: Arc::default(), called: Arc::default(), asked: Arc::default() }
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let called = self.called.clone();
        let named = name.to_owned();
        tool(spec(name, Effect::Idempotent), move |arguments, call| {
            *called.lock().entry(format!("{named} {}", call.idempotency_key)).or_default() += 1;
            async move {
                tokio::time::sleep(ms(10)).await;
                Ok(ToolOutput::text(format!("brought {arguments}")))
            }
        })
    }

    /// One process, with a limit of records to write and a limit of time.
    async fn live(&self, records: usize, time: Duration, context: &mut Keeping) -> Option<Report> {
        let asked = self.asked.clone();
        let model = Arc::new(ScriptedModel::answering(move |request| {
            let name = name(request);
            *asked.lock().entry(name.clone()).or_default() += 1;
            answer(&name)
        }));
        let left = Mutex::new(records);
        let journal = Arc::new(Dying { kept: self.journal.clone(), left });
        let tools = || Toolbox::new([self.tool("look"), self.tool("book")]).unwrap();
        let agent = || running(&model, Executor::new(tools()));
        let react = ReactSettings::default().with_terminate(true);
        let executors = (0..2).map(|_| agent());
        let executors = StepExecutor::numbered(executors);
        let flow = FlowSettings::default()
            .with_executors(executors)
            .with_strategy(Arc::new(React::new(react)))
            .with_context(self.context)
            .with_max_retries(1)
            .with_replan_after_each(true);
        let agent = running(&model, Executor::new(tools()).with_journal(journal));
        let task = task("杭州两日游");
        let flow = Flow::new(flow);
        let run = agent.run(&flow, context, &task);
        tokio::time::timeout(time, run).await.ok().and_then(Result::ok)
    }
}

/// The results of a flow: every conversation, the todo list, the answer.
#[derive(Debug, PartialEq)]
struct Left {
    conversations: Vec<(String, Vec<String>)>,
    list: String,
    answer: Option<String>,
    stop: Stop,
}

impl Left {
    fn of(report: &Report, context: &Keeping) -> Self {
        let todos = context.todos();
        Self {
            conversations: todos.into_iter().map(|id| (id.clone(), context.said(&id))).collect(),
            list: serde_json::to_string(&context.list()).unwrap(),
            answer: report.answer().map(str::to_owned),
            stop: report.trajectory.outcome.stop.clone(),
        }
    }
}

const FOREVER: Duration = Duration::from_secs(10_000_000);

/// Kills a flow, resumes it, and compares its results with those of one that was not killed.
async fn check(context: StepContext, is_lost: bool, records: usize, time: Duration) -> bool {
    let what = format!("{context:?}, lost {is_lost}, {records} records, {time:?}");
    let (undisturbed, mut whole) = (Lives::new(context), Keeping::new());
    let report = undisturbed.live(usize::MAX, FOREVER, &mut whole).await.unwrap();
    let expected = Left::of(&report, &whole);
    assert_eq!(expected.stop, Stop::Answered);

    let (lives, mut kept) = (Lives::new(context), Keeping::new());
    let first = lives.live(records, time, &mut kept).await;
    let mut kept = if is_lost { Keeping::new() } else { kept.reopened() };
    let report = lives.live(usize::MAX, FOREVER, &mut kept).await;
    let report = report.unwrap_or_else(|| panic!("{what}: it cannot be gone on with"));
    assert_eq!(Left::of(&report, &kept), expected, "{what}");

    let (calls, known) = (lives.called.lock().clone(), undisturbed.called.lock().clone());
    assert!(calls.keys().eq(known.keys()), "{what}: {calls:?}");
    let again = calls.values().filter(|times| **times > 1).count();
    assert!(again <= 1 && calls.values().all(|times| *times <= 2), "{what}: {calls:?}");
    let (asked, known) = (lives.asked.lock().clone(), undisturbed.asked.lock().clone());
    assert!(asked.keys().eq(known.keys()), "{what}: {asked:?}");
    let again = asked.values().filter(|times| **times > 1).count();
    assert!(again <= 1 && asked.values().all(|times| *times <= 2), "{what}: {asked:?}");
    first.is_none()
}

/// OM9, OM11, R12: killed before any record of its journal, a flow resumes at the step where it was, whether
/// its context is kept or lost, with the results of a flow that was not killed. At most the request or call
/// in progress is made a second time.
#[tokio::test(start_paused = true)]
async fn om9_a_flow_killed_at_any_record_goes_on() {
    for context in [StepContext::Isolated, StepContext::Shared] {
        for is_lost in [false, true] {
            let mut kills = 0;
            while check(context, is_lost, kills, FOREVER).await {
                kills += 1;
            }
            assert!(kills > 40, "{context:?}: {kills} records");
        }
    }
}

/// OM9, OM11, R12: the same at any moment.
#[tokio::test(start_paused = true)]
async fn om9_a_flow_killed_at_any_moment_goes_on() {
    for context in [StepContext::Isolated, StepContext::Shared] {
        for is_lost in [false, true] {
            let mut moment = 0;
            while check(context, is_lost, usize::MAX, ms(moment)).await {
                moment += 5;
            }
            assert!(moment >= 150, "{context:?}: {moment} ms");
        }
    }
}

/// OM9, R12: killed again and again, it comes to its end.
#[tokio::test(start_paused = true)]
async fn om9_a_flow_that_is_killed_often_comes_to_its_end() {
    for context in [StepContext::Isolated, StepContext::Shared] {
        let (lives, mut kept) = (Lives::new(context), Keeping::new());
        let mut deaths = 0;
        let report = loop {
            if let Some(report) = lives.live(usize::MAX, ms(15), &mut kept).await {
                break report;
            }
            deaths += 1;
            assert!(deaths < 100, "{context:?}: it does not get on");
            kept = kept.reopened();
        };
        assert!(deaths > 5, "{context:?}: {deaths}");
        assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
        assert!(lives.called.lock().values().all(|times| *times <= 2), "{:?}", lives.called.lock());
    }
}

/// OM11: an attempt in which the model refused to continue stays failed when the flow is resumed, although
/// no journal has the refusal as an answer: what came after it is kept.
#[tokio::test]
async fn om11_a_refused_attempt_is_not_made_again() {
    let journal = Arc::new(MemoryJournal::default());
    let mut kept = Keeping::new();
    let too_long = || ModelError::new(ModelErrorKind::ContextLength, "300000 tokens");
    let gone = || ModelError::new(ModelErrorKind::Unavailable, "gone");
    let mut lives = Vec::new();
    for is_second in [false, true] {
        let model = Arc::new(ScriptedModel::answering(move |request| match &*name(request) {
            "flow/plan" => planning(&["一"]),
            "step-1.1/react/1" if is_second => "done after all".into(),
            "step-1.1/react/1" => too_long().into(),
            "step-1.2/react/1" if !is_second => gone().into(),
            other => Answer::text(other),
        }));
        let executor = Executor::new(Toolbox::default()).with_journal(journal.clone());
        let agent = running(&model, executor);
        let report = agent.run(&Flow::default(), &mut kept, &task("go")).await.unwrap();
        kept = kept.reopened();
        lives.push((names(&model), report.trajectory.outcome.stop));
    }
    let gone = Stop::ModelFailed { message: "gone".to_owned() };
    let first = ["flow/plan", "step-1.1/react/1", "step-1.2/react/1"].map(str::to_owned).to_vec();
    let second = ["step-1.2/react/1", "summary/summary"].map(str::to_owned).to_vec();
    assert_eq!(lives, [(first, gone), (second, Stop::Answered)]);
}

/// OM11, R12: an attempt that ran out of steps stays failed when the flow is resumed with more steps or fewer, and
/// so do its conversation, its spending and what came after it.
#[tokio::test]
async fn om11_an_attempt_without_steps_left_stays_failed() {
    for context in [StepContext::Isolated, StepContext::Shared] {
        for steps in [1, 2, 9] {
            let journal = Arc::new(MemoryJournal::default());
            let mut kept = Keeping::new();
            let mut lives = Vec::new();
            for (most, is_second) in [(2, false), (steps, true)] {
                let model =
                    Arc::new(ScriptedModel::answering(move |request| match &*name(request) {
                        "flow/plan" => planning(&["一", "二"]),
                        name if name.starts_with("step-1.1/") => {
                            calling("look", json!({"q": "潮位"}))
                        }
                        "step-2.1/react/1" if !is_second => {
                            ModelError::new(ModelErrorKind::Unavailable, "gone").into()
                        }
                        other => Answer::text(other),
                    }));
                let look = crate::script::says("look", 0, "nothing yet");
                let executor = Executor::new(Toolbox::new([look]).unwrap());
                let agent = running(&model, executor.with_journal(journal.clone()));
                let react = React::new(ReactSettings::default().with_max_steps(most));
                let flow =
                    FlowSettings::default().with_strategy(Arc::new(react)).with_context(context);
                let task = task("go");
                let report = agent.run(&Flow::new(flow), &mut kept, &task).await;
                let report = report.unwrap_or_else(|error| panic!("{context:?} {most}: {error}"));
                kept = kept.reopened();
                let calls = task.spend.spent().model_calls;
                lives.push((names(&model), report.trajectory.outcome.stop, calls));
            }
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let gone = Stop::ModelFailed { message: "gone".to_owned() };
            let before = ["step-1.1/react/1", "step-1.1/react/2", "step-1.2/react/1"];
            let before = [&["flow/plan"], &before[..], &["step-2.1/react/1"]].concat();
            let after = names(&["step-2.1/react/1", "summary/summary"]);
            let expected = [(names(&before), gone, 5), (after, Stop::Answered, 6)];
            assert_eq!(lives, expected, "{context:?}, {steps} steps");
        }
    }
}
