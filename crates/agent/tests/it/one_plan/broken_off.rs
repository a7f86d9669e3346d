//! OP8: a plan whose stream breaks off: steps that started early are neither lost nor run twice.

use crate::script::{answering, asked, conversation, full, says, task, text, times};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{Agent, Executor, MemoryJournal, OnePlan, Report, Stop};
use foldback_core::Message;
use foldback_llm::{Answer, ModelError, ModelErrorKind, RetryPolicy, Retrying, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use std::sync::Arc;

/// A model that is asked again if its answer breaks off, and an executor with these tools.
struct Runs {
    executor: Executor,
}

impl Runs {
    fn with(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { executor: Executor::new(Toolbox::new(tools).unwrap()) }
    }

    /// Runs once, and returns the contents of the context at the end; killed after ten seconds.
    async fn run(
        &self,
        answers: impl IntoIterator<Item = Answer>,
    ) -> (Arc<ScriptedModel>, Option<Report>, Vec<Arc<Message>>) {
        let model = Arc::new(ScriptedModel::new(answers));
        let policy = RetryPolicy::default().with_first_wait(ms(1_000));
        let agent =
            Agent::new(Arc::new(Retrying::new(model.clone(), policy)), self.executor.clone());
        let (mut context, task, one_plan) = (full(), task("go"), OnePlan::default());
        let run = agent.run(&one_plan, context.as_mut(), &task);
        let report = tokio::time::timeout(ms(10_000), run).await.ok().map(Result::unwrap);
        let said = if report.is_some() { conversation(context.as_ref()) } else { Vec::new() };
        (model, report, said)
    }
}

/// A plan that breaks off after its first step.
fn broken(kind: ModelErrorKind) -> Answer {
    let written = [
        (ms(100), r#"{"action_plan": {"step1": {"function": "look", "args": {"q": "一"}}, "#),
        (ms(100), r#""step2": {"function": "lo"#),
    ];
    Answer::pieces(written).failing(ModelError::new(kind, "断了"))
}

/// A tool that counts its calls and answers its arguments.
fn look() -> (Arc<dyn Tool>, Counter) {
    let counter = Counter::default();
    let count = counter.clone();
    let look = tool(spec("look", Effect::ReadOnly), move |arguments, _| {
        count.add();
        async move { Ok(ToolOutput::text(arguments)) }
    });
    (look, counter)
}

/// The rest of the plan, from the step that ran.
const THE_REST: &str = r#"{"action_plan": {"step2": {"function": "look", "args": {"q": "$$step1.result.q$$二"}, "dependence": [1]}}}"#;

#[tokio::test(start_paused = true)]
async fn op8_what_began_of_a_plan_that_broke_off_is_a_fact() {
    let (look, count) = look();
    let runs = Runs::with(vec![look]);
    let answers = [broken(ModelErrorKind::Unavailable), THE_REST.into(), "done".into()];
    let (model, report, said) = runs.run(answers).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.left(), count.get()), (Some("done"), 0, 2));
    assert_eq!(text(&report, 2), r#"{"q":"一二"}"#);
    let told = asked(&model.requests()[1]);
    let fact = r#"{"step":1,"function":"look","args":{"q":"一"},"status":"success","#;
    for part in [fact, "broke off", "Number new steps from 2."] {
        assert!(told.contains(part), "{part}\nin\n{told}");
    }
    let calls: Vec<usize> = said.iter().map(|message| message.tool_calls().len()).collect();
    assert_eq!(calls.iter().sum::<usize>(), 2, "each call is in the conversation once: {said:?}");
}

/// The same if the process is killed while the rest is being planned, and again after that.
#[tokio::test(start_paused = true)]
async fn op8_r12_a_plan_that_broke_off_is_gone_on_from_after_a_kill() {
    let (look, count) = look();
    let mut runs = Runs::with(vec![look]);
    runs.executor = runs.executor.with_journal(Arc::new(MemoryJournal::default()));
    let never = || Answer::text("never").after(ms(1_000_000_000));
    let (model, report, _) = runs.run([broken(ModelErrorKind::Unavailable), never()]).await;
    assert_eq!((report.is_none(), model.left(), count.get()), (true, 0, 1));
    let (_, report, _) = runs.run([THE_REST.into(), never()]).await;
    assert_eq!((report.is_none(), count.get()), (true, 2));
    let (model, report, _) = runs.run(["done".into()]).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.calls(), count.get()), (Some("done"), 1, 2));
    assert_eq!(text(&report, 2), r#"{"q":"一二"}"#);
}

/// If nothing had begun, the plan that is written again counts, and is read as it is written.
#[tokio::test(start_paused = true)]
async fn op8_a_plan_of_which_nothing_began_is_written_anew() {
    let act = answering(spec("act", Effect::Effectful), 50, "done");
    let runs = Runs::with(vec![act, says("look", 50, "ok")]);
    let effectful = [(ms(100), r#"{"action_plan": {"step1": {"function": "act", "args": {}}, "#)];
    let effectful = Answer::pieces(effectful);
    let unavailable = ModelError::new(ModelErrorKind::Unavailable, "断了");
    let anew = [
        (ms(100), r#"{"action_plan": {"step1": {"function": "look", "args": {}}, "#),
        (ms(400), r#""step2": {"function": "act", "args": {}, "dependence": [1]}}}"#),
    ];
    let answers = [effectful.failing(unavailable), Answer::pieces(anew), "done".into()];
    let (model, report, _) = runs.run(answers).await;
    let report = report.unwrap();
    assert_eq!((report.answer(), model.left()), (Some("done"), 0));
    let [look, act] = [times(&report, 1), times(&report, 2)];
    assert_eq!((look.1 - look.0, act.1 - act.0), (50, 50));
    assert_eq!(act.0 - look.0, 400, "the first began while the rest was still to come");
    assert_eq!(report.trajectory.plan.len(), 1);
}

/// A run that ends because its model does not answer again has the calls that were made in its conversation.
#[tokio::test(start_paused = true)]
async fn op8_what_began_is_recorded_where_no_plan_comes() {
    let (look, count) = look();
    let (_, report, said) = Runs::with(vec![look]).run([broken(ModelErrorKind::Quota)]).await;
    let stop = report.unwrap().trajectory.outcome.stop;
    assert_eq!((stop, count.get()), (Stop::ModelFailed { message: "断了".to_owned() }, 1));
    let calls: Vec<_> = said.iter().flat_map(|message| message.tool_calls()).collect();
    assert_eq!((calls.len(), calls[0].arguments.as_str()), (1, r#"{"q":"一"}"#));
}
