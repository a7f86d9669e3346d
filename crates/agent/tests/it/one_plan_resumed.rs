//! Runs that are killed and resumed: nothing that was answered is asked again, nothing that ran runs again.

use crate::script::{answering, asked, full, running, says, task, text};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{Executor, MemoryJournal, OnePlan, React, Report, Stop, Strategy};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolError, ToolOutput, Toolbox};
use std::sync::Arc;

const NOTHING_MORE: &str = r#"{"action_plan": {}}"#;

/// A run over several processes.
struct Lives {
    journal: Arc<MemoryJournal>,
    tools: Vec<Arc<dyn Tool>>,
    step_by_step: bool,
}

impl Lives {
    fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { journal: Arc::default(), tools, step_by_step: false }
    }

    /// One process: with these answers, killed after ten seconds.
    async fn live(
        &self,
        answers: impl IntoIterator<Item = Answer>,
    ) -> (Arc<ScriptedModel>, Option<Report>) {
        let model = Arc::new(ScriptedModel::new(answers));
        let executor = Executor::new(Toolbox::new(self.tools.clone()).unwrap());
        let agent = running(&model, executor.with_journal(self.journal.clone()));
        let (mut context, task) = (full(), task("go"));
        let strategy: &dyn Strategy = match self.step_by_step {
            true => &React::default(),
            false => &OnePlan::default(),
        };
        let run = agent.run(strategy, context.as_mut(), &task);
        let report = tokio::time::timeout(ms(10_000), run).await;
        (model, report.ok().map(Result::unwrap))
    }
}

/// No answer: the run is killed while it waits.
fn never() -> Answer {
    Answer::text("never").after(ms(1_000_000_000))
}

fn unreadable() -> Answer {
    ModelError::new(ModelErrorKind::Response, "no JSON").into()
}

/// A tool that counts its calls and answers its arguments.
fn counted(name: &str, effect: Effect) -> (Arc<dyn Tool>, Counter) {
    let counter = Counter::default();
    let count = counter.clone();
    let tool = tool(spec(name, effect), move |arguments, _| {
        count.add();
        async move { Ok(ToolOutput::text(arguments)) }
    });
    (tool, counter)
}

/// R12, OP14: an unreadable answer is recorded: the repair that followed is found again.
#[tokio::test(start_paused = true)]
async fn r12_a_repair_is_found_again() {
    let (act, count) = counted("a", Effect::Effectful);
    let run = Lives::new(vec![act]);
    let repaired = r#"{"action_plan": {"step1": {"function": "a", "args": {"q": "沈阳"}}}}"#;
    let (_, report) = run.live([unreadable(), repaired.into(), never()]).await;
    assert!(report.is_none());
    let (model, report) = run.live(["done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.calls(), count.get()), (Some("done"), 1, 1));
    assert_eq!(text(&report, 1), r#"{"q":"沈阳"}"#);
}

/// R12, OP8: if a run was killed while a plan was being written, the steps that had started are facts, and the
/// remaining work is planned beside them, however often the run is killed again.
#[tokio::test(start_paused = true)]
async fn r12_a_plan_that_broke_off_is_gone_on_from() {
    let (look, count) = counted("look", Effect::ReadOnly);
    let run = Lives::new(vec![look]);
    let written = [
        (ms(1_000), r#"{"action_plan": {"step1": {"function": "look", "args": {"q": "一"}},"#),
        (ms(1_000_000_000), "}}"),
    ];
    let (_, report) = run.live([Answer::pieces(written)]).await;
    assert!(report.is_none() && count.get() == 1);

    let (model, report) = run.live([never()]).await;
    assert!(report.is_none());
    let told = asked(&model.requests()[0]);
    let fact = r#"{"step":1,"function":"look","args":{"q":"一"},"status":"success","#;
    for part in [fact, "broke off", "Number new steps from 2."] {
        assert!(told.contains(part), "{part}\nin\n{told}");
    }

    // Another model plans differently, with the step that ran written again, or not.
    let other = r#"{"action_plan": {"step2": {"function": "look", "args": {"q": "$$step1.result.q$$二"}, "dependence": [1]}}}"#;
    let (_, report) = run.live([other.into(), never()]).await;
    assert_eq!((report.is_none(), count.get()), (true, 2));
    let (model, report) = run.live(["done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.calls(), count.get()), (Some("done"), 1, 2));
    assert_eq!(text(&report, 2), r#"{"q":"一二"}"#);
}

/// R12, OP8: killed at the repair of a streamed plan of which some steps had started.
#[tokio::test(start_paused = true)]
async fn r12_a_streamed_plan_is_repaired_after_a_kill() {
    for killed_at in [1, 2] {
        let (look, count) = counted("look", Effect::ReadOnly);
        let run = Lives::new(vec![look]);
        let written = [
            (ms(100), r#"{"action_plan": {"step1": {"function": "look", "args": {"q": "一"}}, "#),
            (ms(100), r#""step2": {"function": "lok", "args": {}}}}"#),
        ];
        let repaired = r#"{"action_plan": {"step2": {"function": "look", "args": {"q": "$$step1.result.q$$"}, "dependence": [1]}}}"#;
        let answers = || [Answer::pieces(written), repaired.into(), "done".into()].into_iter();
        let (_, report) = run.live(answers().take(killed_at).chain([never()])).await;
        assert!(report.is_none());
        let (model, report) = run.live(answers().skip(killed_at)).await;
        let report = report.unwrap();
        assert_eq!((report.answer(), model.left()), (Some("done"), 0), "killed at {killed_at}");
        assert_eq!((text(&report, 2), count.get()), (r#"{"q":"一"}"#, 2), "killed at {killed_at}");
    }
}

/// R12, OP10, OP20: a failure after a new plan was accepted neither changes that plan nor is forgotten.
#[tokio::test(start_paused = true)]
async fn r12_failures_beside_a_new_plan_are_told_after_a_kill() {
    let first = r#"{"action_plan": {
        "step1": {"function": "late", "args": {}},
        "step2": {"function": "anchor_function", "args": {"task": "定"}}}}"#;
    let decided = r#"{"action_plan": {
        "step3": {"function": "pay", "args": {}},
        "step4": {"function": "pay", "args": {"of": "$$step1.result$$"}, "dependence": [1]},
        "step5": {"function": "quick", "args": {}, "dependence": [1]}}}"#;
    let (pay, paid) = counted("pay", Effect::Effectful);
    let late = tool(spec("late", Effect::ReadOnly), |_, _| async {
        tokio::time::sleep(ms(1_000)).await;
        Err(ToolError::permanent("坏了"))
    });
    let run = Lives::new(vec![pay, late, says("quick", 1, "q")]);
    let (model, report) = run.live([first.into(), decided.into(), never()]).await;
    assert!(report.is_none() && paid.get() == 1);
    assert!(
        asked(&model.requests()[2]).contains("step1 failed"),
        "{}",
        asked(&model.requests()[2])
    );

    let (model, report) = run.live([NOTHING_MORE.into(), "done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.left(), paid.get()), (Some("done"), 0, 1));
    assert!(
        asked(&model.requests()[0]).contains("step1 failed"),
        "{}",
        asked(&model.requests()[0])
    );
}

/// R12, OP16: a decision that `fail_fast` had overtaken is not carried out after a kill either, and the failure has
/// its new plan.
#[tokio::test(start_paused = true)]
async fn r12_a_decision_that_was_overtaken_is_passed_over_after_a_kill() {
    let first = r#"{"action_plan": {
        "step1": {"function": "late", "args": {}, "on_failure": "fail_fast"},
        "step2": {"function": "anchor_function", "args": {"task": "定"}}}}"#;
    let decided = r#"{"action_plan": {"step3": {"function": "pay", "args": {}}}}"#;
    let anew = r#"{"action_plan": {"step3": {"function": "pay", "args": {"q": "二"}}}}"#;
    let answers = || {
        let decided = Answer::from(decided).after(ms(2_000));
        [first.into(), decided, anew.into(), "done".into()].into_iter()
    };
    for killed_at in [2, 3] {
        let (pay, paid) = counted("pay", Effect::Effectful);
        let late = tool(spec("late", Effect::ReadOnly), |_, _| async {
            tokio::time::sleep(ms(1_000)).await;
            Err(ToolError::permanent("坏了"))
        });
        let run = Lives::new(vec![pay, late]);
        let (_, report) = run.live(answers().take(killed_at).chain([never()])).await;
        assert!(report.is_none() && paid.get() == killed_at - 2, "killed at {killed_at}");
        let (model, report) = run.live(answers().skip(killed_at)).await;
        let report = report.unwrap();
        assert_eq!((report.answer(), model.left()), (Some("done"), 0), "killed at {killed_at}");
        assert_eq!((text(&report, 3), paid.get()), (r#"{"q":"二"}"#, 1), "killed at {killed_at}");
    }
}

/// R12: a killed step-by-step run repeats no request and no call, whatever the next model would have said.
#[tokio::test(start_paused = true)]
async fn r12_a_killed_run_step_by_step_goes_on() {
    use foldback_core::ToolCall;
    let (act, count) = counted("a", Effect::Effectful);
    let mut run = Lives::new(vec![act, answering(spec("b", Effect::Effectful), 1, "ok")]);
    run.step_by_step = true;
    let call = |tool: &str, q: &str| Answer::from(ToolCall::new("c", tool, q));
    let (_, report) = run.live([unreadable(), call("a", r#"{"q": "一"}"#), never()]).await;
    assert!(report.is_none() && count.get() == 1);
    let (model, report) = run.live([call("b", r#"{"q": "二"}"#), "done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.left(), count.get()), (Some("done"), 0, 1));
    let messages = &model.requests()[0].messages;
    assert_eq!(messages.last().unwrap().text(), r#"{"q":"一"}"#);
    // Once more, from the end: nothing is asked at all.
    let (model, report) = run.live([]).await;
    assert_eq!((report.unwrap().answer(), model.calls()), (Some("done"), 0));
}

/// R12, OP14: a run that was killed after it had continued step by step reaches that point again.
#[tokio::test(start_paused = true)]
async fn r12_a_degraded_run_goes_on() {
    use foldback_core::ToolCall;
    let (act, count) = counted("a", Effect::Effectful);
    let run = Lives::new(vec![act]);
    let react = r#"{"mode": "react", "reason": "未知"}"#;
    let call = ToolCall::new("c", "a", "{}");
    let (_, report) = run.live([react.into(), call.into(), never()]).await;
    assert!(report.is_none() && count.get() == 1);
    let (model, report) = run.live(["done".into()]).await;
    assert_eq!((report.unwrap().answer(), model.calls(), count.get()), (Some("done"), 1, 1));
}

/// R12, OP14: a run that received no answer asks for one again when it is resumed, once for each process; an answer
/// that was cut off stays.
#[tokio::test(start_paused = true)]
async fn r12_an_answer_that_was_of_no_use_is_asked_for_again() {
    let run = Lives::new(Vec::new());
    let (model, report) = run.live([NOTHING_MORE.into(), "".into(), unreadable()]).await;
    let failed = |report: Option<Report>| {
        let stop = report.unwrap().trajectory.outcome.stop;
        assert!(matches!(stop, Stop::ModelFailed { .. }), "{stop:?}");
    };
    failed(report);
    assert_eq!(model.left(), 0);
    for (answer, is_last) in [("", false), ("三米", true)] {
        let (model, report) = run.live([answer.into()]).await;
        assert_eq!(model.calls(), 1);
        match is_last {
            true => assert_eq!(report.unwrap().answer(), Some("三米")),
            false => failed(report),
        }
    }
    let (model, report) = run.live([]).await;
    assert_eq!((model.calls(), report.unwrap().answer()), (0, Some("三米")));
}

/// R12: a plan in place of the answer is found again, and its steps do not run twice.
#[tokio::test(start_paused = true)]
async fn r12_a_plan_in_place_of_the_answer_is_found_again() {
    let (act, count) = counted("a", Effect::Effectful);
    let run = Lives::new(vec![act]);
    let plan = |q: &str| {
        Answer::from(format!(
            r#"{{"action_plan": {{"step1": {{"function": "a", "args": {{"q": "{q}"}}}}}}}}"#
        ))
    };
    let (_, report) = run.live([plan("一"), plan("二"), never()]).await;
    assert_eq!((report.is_none(), count.get()), (true, 2));
    let (model, report) = run.live(["done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.calls(), count.get()), (Some("done"), 1, 2));
    assert_eq!(text(&report, 2), r#"{"q":"二"}"#);
}
