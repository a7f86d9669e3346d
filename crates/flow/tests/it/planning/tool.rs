//! The tool as a model uses it: its answers, their order, and what a journal keeps.

use super::{Exchange, call, session};
use crate::script::{agent, full, model, task};
use crate::toolkit::{executor, options, plan};
use foldback_agent::{Executor, FileJournal, Journal, MemoryJournal, React};
use foldback_core::ToolCall;
use foldback_flow::{PlanningTool, Plans, StepStatus};
use foldback_llm::Answer;
use foldback_planner::{StepId, StepResult, lower_calls};
use foldback_tool::{CallContext, FailureKind, Tool, ToolErrorKind, Toolbox};
use serde_json::json;
use std::sync::Arc;

/// OM2, OM5: a mistake is reported to the model as what it is: wrong arguments.
#[tokio::test]
async fn om2_an_error_of_the_model_is_told_to_it() {
    let tool = PlanningTool::new();
    let wrong = r#"{"command": "get"}"#;
    let error = tool.call(wrong, &CallContext::default()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Arguments);
    assert!(
        call(&tool, "1", json!({"command": "get", "step_index": "one"}))
            .await
            .unwrap_err()
            .contains("cannot be read")
    );
    assert!(call(&tool, "2", json!([])).await.is_err());
}

/// OM1: arguments that do not fit the schema never reach the tool.
#[tokio::test]
async fn om1_the_executor_keeps_to_the_schema() {
    let tool = Arc::new(PlanningTool::new());
    let executor = executor([tool.clone() as Arc<dyn Tool>]);
    for wrong in [
        json!({"command": "fly"}),
        json!({"plan_id": "p"}),
        json!({"command": "list", "x": 1}),
        json!({"command": "get", "plan_id": 1}),
    ] {
        let calls = [ToolCall::new("c", "planning", &wrong.to_string())];
        let outcome =
            executor.run(&plan(lower_calls(&calls).plan.steps), options("run")).await.unwrap();
        let StepResult::Error { failure } = &outcome.results[&StepId(1)] else { panic!("{wrong}") };
        assert_eq!(failure.kind, FailureKind::Arguments, "{}", failure.message);
    }
    assert_eq!(tool.plans(), Plans::default());
}

/// OM2, OM5: commands of one turn are carried out in their order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn om5_commands_of_one_turn_keep_their_order() {
    let mark = |at: u32, status: &str| {
        let arguments = json!({"command": "mark_step", "step_index": at, "step_status": status});
        ToolCall::new(&format!("m{at}{status}"), "planning", &arguments.to_string())
    };
    for _ in 0..20 {
        let make =
            json!({"command": "create", "plan_id": "p", "title": "T", "steps": ["一", "二"]});
        let calls = vec![
            ToolCall::new("c", "planning", &make.to_string()),
            mark(0, "in_progress"),
            mark(0, "completed"),
            mark(1, "in_progress"),
        ];
        let tool = Arc::new(PlanningTool::new());
        let model = model([Answer::from(calls), "done".into()]);
        let agent = agent(&model, vec![tool.clone()]);
        agent.run(&React::default(), full().as_mut(), &task("plan")).await.unwrap();
        let plans = tool.plans();
        let statuses: Vec<StepStatus> =
            plans.active().unwrap().steps.iter().map(|step| step.status).collect();
        assert_eq!(statuses, [StepStatus::Completed, StepStatus::InProgress]);
    }
}

/// OM3, N3: the plans are rebuilt from their changes, so they survive the end of the process, in a file
/// as in memory; a call that is repeated after a kill is answered as before, and changes nothing twice.
#[tokio::test]
async fn om3_plans_are_kept_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let open = || -> Arc<dyn Journal> { Arc::new(FileJournal::open(&path).unwrap()) };
    let mut answers = Vec::new();
    let mut kept = Plans::default();
    for (n, Exchange { arguments, .. }) in session().into_iter().enumerate() {
        let n = n.to_string();
        // Another process for every command, killed before the answer is recorded.
        let tool = PlanningTool::kept_in(open(), "run").unwrap();
        assert_eq!(tool.plans(), kept, "{arguments}");
        let answer = call(&tool, &n, arguments.clone()).await;
        kept = tool.plans();
        drop(tool);
        let tool = PlanningTool::kept_in(open(), "run").unwrap();
        assert_eq!(
            (call(&tool, &n, arguments.clone()).await, tool.plans()),
            (answer.clone(), kept.clone()),
            "{arguments}"
        );
        answers.push(answer);
    }
    for (answer, Exchange { output, error, .. }) in answers.into_iter().zip(session()) {
        assert_eq!(answer.ok(), output);
        assert!(error.is_none() || output.is_none());
    }
    let other = PlanningTool::kept_in(open(), "another").unwrap();
    assert_eq!(other.plans(), Plans::default(), "another run has plans of its own");
}

/// OM2: a change that cannot be recorded is not made.
#[tokio::test]
async fn om2_a_change_that_cannot_be_kept_is_not_made() {
    struct Full;
    impl Journal for Full {
        fn append(
            &self,
            _: &str,
            _: &foldback_agent::Record,
        ) -> Result<(), foldback_agent::JournalError> {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            Err(foldback_agent::JournalError::Io { action: "write", path: "j".into(), source })
        }

        fn sync(&self) -> futures::future::BoxFuture<'_, Result<(), foldback_agent::JournalError>> {
            Box::pin(async { Ok(()) })
        }

        fn records(
            &self,
            _: &str,
        ) -> Result<Vec<foldback_agent::Record>, foldback_agent::JournalError> {
            Ok(Vec::new())
        }
    }
    let tool = PlanningTool::kept_in(Arc::new(Full), "run").unwrap();
    let made = json!({"command": "create", "plan_id": "p", "title": "T", "steps": ["x"]});
    let told = call(&tool, "k", made).await.unwrap_err();
    assert!(told.starts_with("the plan was not changed: cannot write the journal"), "{told}");
    assert_eq!(tool.plans(), Plans::default());
    assert!(call(&tool, "l", json!({"command": "list"})).await.is_ok(), "looking writes nothing");
}

/// OM2: an agent that was killed between two commands finds its plan again, though the journal answers the
/// first command without calling the tool.
#[tokio::test]
async fn om2_a_resumed_agent_has_its_plan() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let make = json!({"command": "create", "plan_id": "p", "title": "T", "steps": ["一", "二"]});
    let mark = json!({"command": "mark_step", "step_index": 1, "step_status": "completed"});
    let live = async |answers: Vec<Answer>| {
        let tool = Arc::new(PlanningTool::kept_in(journal.clone(), "run").unwrap());
        let model = model(answers);
        let tools = Toolbox::new([tool.clone() as Arc<dyn Tool>]).unwrap();
        let agent =
            crate::script::running(&model, Executor::new(tools).with_journal(journal.clone()));
        let report = agent.run(&React::default(), full().as_mut(), &task("plan")).await.unwrap();
        (report.answer().map(str::to_owned), tool.plans())
    };
    // The model is gone after the first turn.
    let gone = foldback_llm::ModelError::new(foldback_llm::ModelErrorKind::Unavailable, "gone");
    let first = ToolCall::new("c", "planning", &make.to_string());
    let (answer, _) = live(vec![first.into(), gone.into()]).await;
    assert_eq!(answer, None);
    let second = ToolCall::new("d", "planning", &mark.to_string());
    let (answer, plans) = live(vec![second.into(), "done".into()]).await;
    assert_eq!(answer.as_deref(), Some("done"));
    assert_eq!(plans.active().unwrap().count(StepStatus::Completed), 1);
}

/// OM1: a call that is repeated in the same process is answered again, and changes nothing twice.
#[tokio::test]
async fn om1_a_call_made_again_changes_nothing() {
    let tool = PlanningTool::new();
    let create = json!({"command": "create", "plan_id": "p", "title": "T", "steps": ["看"]});
    let made = call(&tool, "k1", create.clone()).await.unwrap();
    assert_eq!(call(&tool, "k1", create.clone()).await, Ok(made));
    assert!(call(&tool, "k2", create).await.unwrap_err().contains("already exists"));
}
