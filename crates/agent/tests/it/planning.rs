//! The planning tool, compared with the one that it takes after.

use crate::script::{agent, full, model, task};
use crate::toolkit::{executor, options, plan};
use foldback_agent::{
    Executor, FileJournal, Journal, MemoryJournal, PlanCommand, PlanningTool, Plans, React,
    StepStatus, TextPlan,
};
use foldback_core::ToolCall;
use foldback_llm::Answer;
use foldback_planner::{StepId, StepResult, lower_calls};
use foldback_tool::{CallContext, FailureKind, Tool, ToolErrorKind, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the reference answers to a session of commands, one a line: written down by a run of its own
/// code (FoundationAgents/OpenManus, `app/tool/planning.py`) over these commands.
const SESSION: &str = include_str!("planning/session.jsonl");

/// Its percentages of 0 to all steps done, for plans of 16, 48, 80 and 160 steps: where halves are.
const PERCENTAGES: &str = include_str!("planning/percentages.txt");

#[derive(serde::Deserialize)]
struct Exchange {
    arguments: Value,
    output: Option<String>,
    error: Option<String>,
}

/// The commands of the session, with what is answered.
fn session() -> Vec<Exchange> {
    SESSION.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn command(arguments: Value) -> PlanCommand {
    PlanCommand::from_json(&arguments.to_string()).unwrap()
}

fn create(id: &str, steps: &[&str]) -> PlanCommand {
    command(json!({"command": "create", "plan_id": id, "title": "T", "steps": steps}))
}

/// The error of a command.
#[track_caller]
fn refused(plans: &mut Plans, arguments: Value) -> String {
    let before = plans.clone();
    let error = plans.apply(&command(arguments)).unwrap_err();
    assert_eq!(*plans, before, "a refused command changes nothing");
    error.to_string()
}

async fn call(tool: &PlanningTool, key: &str, arguments: Value) -> Result<String, String> {
    let context = CallContext { idempotency_key: key.to_owned(), ..CallContext::default() };
    let answer = tool.call(&arguments.to_string(), &context).await;
    answer.map(|output| output.data.text).map_err(|error| error.message)
}

/// OM1: the schema: seven commands, the arguments and their types, one that is required, no others.
#[test]
fn om1_the_schema_is_that_of_the_reference() {
    let tool = PlanningTool::new();
    let definition = &tool.spec().definition;
    assert_eq!(definition.name, "planning");
    let mut schema: Value = serde_json::from_str(&definition.parameters).unwrap();
    for property in schema["properties"].as_object_mut().unwrap().values_mut() {
        let description = property.as_object_mut().unwrap().remove("description").unwrap();
        assert!(!description.as_str().unwrap().is_empty());
    }
    let expected = json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["create", "update", "list", "get", "set_active", "mark_step", "delete"],
            },
            "plan_id": {"type": "string"},
            "title": {"type": "string"},
            "steps": {"type": "array", "items": {"type": "string"}},
            "step_index": {"type": "integer"},
            "step_status": {
                "type": "string",
                "enum": ["not_started", "in_progress", "completed", "blocked"],
            },
            "step_notes": {"type": "string"},
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    assert_eq!(schema, expected);
}

/// OM2, OM3, OM4, OM5, OM6, OM7: the same commands are answered with the same text, good and bad ones.
#[test]
fn om7_every_answer_equals_the_references() {
    let mut plans = Plans::default();
    let mut commands = std::collections::BTreeSet::new();
    for Exchange { arguments, output, error } in session() {
        let command = command(arguments);
        commands.insert(command.command.clone());
        match plans.apply(&command) {
            Ok(told) => assert_eq!((Some(told), None), (output, error), "{command:?}"),
            Err(told) => {
                assert_eq!((None, Some(told.to_string())), (output, error), "{command:?}");
            }
        }
    }
    assert_eq!(commands.len(), 8, "all commands, and one that is none: {commands:?}");
}

/// OM7: percentages are rounded as the reference rounds them, halves included.
#[test]
fn om7_percentages_equal_the_references() {
    for line in PERCENTAGES.lines() {
        let expected: Vec<&str> = line.split(' ').collect();
        let mut plan = TextPlan::new("p", "T", (1..expected.len()).map(|n| n.to_string()));
        for (done, percent) in expected.iter().enumerate() {
            if done > 0 {
                plan.steps[done - 1].status = StepStatus::Completed;
            }
            let shown = format!("steps completed ({percent}%)\n");
            assert!(plan.to_string().contains(&shown), "{shown} in {plan}");
        }
    }
    let empty = TextPlan::new("p", "T", [""; 0]);
    assert!(empty.to_string().contains("Progress: 0/0 steps completed (0%)\n"), "{empty}");
}

/// OM7: the rule is as long as the title line in characters, whatever they are.
#[test]
fn om7_the_rule_counts_characters() {
    for title in ["T", "杭州两日游", "e\u{301}té", "👩‍👩‍👧", "カタカナ"] {
        let text = TextPlan::new("计划", title, ["x"]).to_string();
        let mut lines = text.lines();
        let (head, rule) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(rule.chars().count(), head.chars().count() + 1);
        assert!(rule.chars().all(|c| c == '='));
    }
}

/// OM2: what a new plan needs; the second of one id is told what to do instead; it becomes active.
#[test]
fn om2_a_plan_is_made_once() {
    let mut plans = Plans::default();
    plans.apply(&create("a", &["一"])).unwrap();
    plans.apply(&create("b", &["二"])).unwrap();
    assert_eq!(plans.active().unwrap().id, "b");
    let told = refused(
        &mut plans,
        json!({"command": "create", "plan_id": "a", "title": "U", "steps": ["x"]}),
    );
    assert!(told.contains("Use 'update'"), "{told}");
    for (missing, arguments) in [
        ("plan_id", json!({"title": "T", "steps": ["x"]})),
        ("title", json!({"plan_id": "c", "steps": ["x"]})),
        ("steps", json!({"plan_id": "c", "title": "T"})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": []})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": "x"})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": ["x", 1]})),
    ] {
        let mut arguments = arguments;
        arguments["command"] = json!("create");
        let told = refused(&mut plans, arguments);
        assert!(told.contains(&format!("`{missing}`")), "{missing}: {told}");
    }
}

/// OM3: status and notes stay where the text at a place is the same, and only there.
#[test]
fn om3_only_a_step_that_stays_in_its_place_keeps_its_status() {
    let mut plans = Plans::default();
    plans.apply(&create("p", &["查", "写", "发"])).unwrap();
    for (at, status) in [(0, "completed"), (1, "blocked"), (2, "in_progress")] {
        let mark = json!({"command": "mark_step", "step_index": at, "step_status": status, "step_notes": status});
        plans.apply(&command(mark)).unwrap();
    }
    let update = json!({"command": "update", "plan_id": "p", "steps": ["查", "发", "写", "改"]});
    plans.apply(&command(update)).unwrap();
    let plan = plans.get("p").unwrap();
    let kept: Vec<(&str, StepStatus, &str)> =
        plan.steps.iter().map(|step| (&*step.text, step.status, &*step.notes)).collect();
    let open = StepStatus::NotStarted;
    assert_eq!(
        kept,
        [
            ("查", StepStatus::Completed, "completed"),
            ("发", open, ""),
            ("写", open, ""),
            ("改", open, "")
        ]
    );
    // Without steps only the title changes.
    let update = json!({"command": "update", "plan_id": "p", "title": "新"});
    plans.apply(&command(update)).unwrap();
    let plan = plans.get("p").unwrap();
    assert_eq!((&*plan.title, plan.count(StepStatus::Completed)), ("新", 1));
    assert!(refused(&mut plans, json!({"command": "update"})).contains("`plan_id`"));
}

/// OM4: the list tells the active plan and how far each one is; without any it says how one is made.
#[test]
fn om4_the_list_tells_how_far_plans_are() {
    let mut plans = Plans::default();
    let list = command(json!({"command": "list"}));
    assert_eq!(
        plans.apply(&list).unwrap(),
        "No plans available. Create a plan with the 'create' command."
    );
    plans.apply(&create("a", &["x", "y"])).unwrap();
    plans
        .apply(&command(
            json!({"command": "mark_step", "step_index": 1, "step_status": "completed"}),
        ))
        .unwrap();
    plans.apply(&create("计划", &["z"])).unwrap();
    let told = plans.apply(&list).unwrap();
    assert_eq!(
        told,
        "Available plans:\n• a: T - 1/2 steps completed\n• 计划 (active): T - 0/1 steps completed\n"
    );
}

/// OM5: without an id the active plan is meant; empty values do not overwrite; numbers and names are
/// checked.
#[test]
fn om5_steps_are_marked_in_the_active_plan() {
    let mut plans = Plans::default();
    for missing in [json!({"command": "get"}), json!({"command": "mark_step", "step_index": 0})] {
        assert!(refused(&mut plans, missing).starts_with("No active plan."));
    }
    plans.apply(&create("p", &["一", "二"])).unwrap();
    let mark = json!({"command": "mark_step", "step_index": 0, "step_status": "blocked", "step_notes": "断网"});
    plans.apply(&command(mark)).unwrap();
    let empty =
        json!({"command": "mark_step", "step_index": 0, "step_status": "", "step_notes": ""});
    plans.apply(&command(empty)).unwrap();
    let step = &plans.active().unwrap().steps[0];
    assert_eq!((step.status, &*step.notes), (StepStatus::Blocked, "断网"));
    for (index, part) in [
        (json!(2), "range from 0 to 1"),
        (json!(-1), "range from 0 to 1"),
        (Value::Null, "`step_index`"),
    ] {
        let told = refused(&mut plans, json!({"command": "mark_step", "step_index": index}));
        assert!(told.contains(part), "{told}");
    }
    let told = refused(
        &mut plans,
        json!({"command": "mark_step", "step_index": 0, "step_status": "done"}),
    );
    assert!(
        told.contains("Valid statuses are: not_started, in_progress, completed, blocked"),
        "{told}"
    );
    assert!(
        refused(&mut plans, json!({"command": "get", "plan_id": "q"}))
            .contains("No plan found with ID: q")
    );
}

/// OM6: a plan is made active and deleted by its id; with the active plan deleted none is active.
#[test]
fn om6_the_active_plan_can_be_changed_and_deleted() {
    let mut plans = Plans::default();
    plans.apply(&create("a", &["x"])).unwrap();
    plans.apply(&create("b", &["y"])).unwrap();
    for name in ["set_active", "delete"] {
        assert!(refused(&mut plans, json!({"command": name})).contains("`plan_id`"));
        assert!(
            refused(&mut plans, json!({"command": name, "plan_id": "c"})).contains("No plan found")
        );
    }
    plans.apply(&command(json!({"command": "set_active", "plan_id": "a"}))).unwrap();
    assert_eq!(plans.active().unwrap().id, "a");
    plans.apply(&command(json!({"command": "delete", "plan_id": "b"}))).unwrap();
    assert_eq!(plans.active().unwrap().id, "a", "another plan was deleted");
    plans.apply(&command(json!({"command": "delete", "plan_id": "a"}))).unwrap();
    assert_eq!((plans.active(), plans.get("a")), (None, None));
}

/// OM2, OM5: what is wrong is told to the model as what it is: wrong arguments.
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

/// OM1: arguments that do not fit the schema never come to the tool.
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

/// OM3, N3: the plans are what their changes make of none, so they survive the end of the process, in a
/// file as in memory; a call that is made again after it was killed is answered as it was, and changes
/// nothing twice.
#[tokio::test]
async fn om3_plans_are_kept_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let open = || -> Arc<dyn Journal> { Arc::new(FileJournal::open(&path).unwrap()) };
    let mut answers = Vec::new();
    let mut kept = Plans::default();
    for (n, Exchange { arguments, .. }) in session().into_iter().enumerate() {
        let n = n.to_string();
        // Another process for every command, which is killed before the answer is written down.
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

/// OM2: a change that cannot be written down is not made.
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

/// OM1: a call that is made again in the same life is answered again, and changes nothing twice.
#[tokio::test]
async fn om1_a_call_made_again_changes_nothing() {
    let tool = PlanningTool::new();
    let create = json!({"command": "create", "plan_id": "p", "title": "T", "steps": ["看"]});
    let made = call(&tool, "k1", create.clone()).await.unwrap();
    assert_eq!(call(&tool, "k1", create.clone()).await, Ok(made));
    assert!(call(&tool, "k2", create).await.unwrap_err().contains("already exists"));
}
